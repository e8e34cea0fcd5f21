package build_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// one returns a dependency that is not optional.
func one(kind, name string) plans.Dependency { return plans.Dependency{Kind: kind, Name: name} }

func maybe(kind, name string) plans.Dependency {
	return plans.Dependency{Kind: kind, Name: name, Optional: true}
}

func TestEveryReferenceOfThePodTemplateIsFound(t *testing.T) {
	env := func(c string) string { return "containers: [{name: web, " + c + "}]" }
	volume := func(v string) string { return "volumes: [{name: v, " + v + "}]" }
	tests := map[string]struct {
		spec string
		want []plans.Dependency
	}{
		"nothing":                        {"{}", nil},
		"service account":                {"serviceAccountName: web", []plans.Dependency{one("ServiceAccount", "web")}},
		"what every namespace has":       {"{serviceAccountName: default, " + volume("configMap: {name: kube-root-ca.crt}") + "}", nil},
		"pull secrets":                   {"imagePullSecrets: [{name: b}, {name: a}, {}]", []plans.Dependency{one("Secret", "a"), one("Secret", "b")}},
		"envFrom":                        {env("envFrom: [{configMapRef: {name: a}}, {secretRef: {name: a}}]"), []plans.Dependency{one("ConfigMap", "a"), one("Secret", "a")}},
		"env":                            {env("env: [{name: A, valueFrom: {configMapKeyRef: {name: a, key: k}}}, {name: B, valueFrom: {secretKeyRef: {name: b, key: k}}}, {name: C, value: c}]"), []plans.Dependency{one("ConfigMap", "a"), one("Secret", "b")}},
		"init containers":                {"initContainers: [{name: i, envFrom: [{secretRef: {name: a}}]}]", []plans.Dependency{one("Secret", "a")}},
		"optional env":                   {env("env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: k, optional: true}}}], envFrom: [{configMapRef: {name: b, optional: true}}]"), []plans.Dependency{maybe("ConfigMap", "b"), maybe("Secret", "a")}},
		"optional here, required there":  {env("envFrom: [{secretRef: {name: a, optional: true}}, {secretRef: {name: a}}, {secretRef: {name: a, optional: true}}]"), []plans.Dependency{one("Secret", "a")}},
		"configMap volume":               {volume("configMap: {name: a}"), []plans.Dependency{one("ConfigMap", "a")}},
		"secret volume, optional":        {volume("secret: {secretName: a, optional: true}"), []plans.Dependency{maybe("Secret", "a")}},
		"projected":                      {volume("projected: {sources: [{configMap: {name: a}}, {secret: {name: b, optional: true}}, {serviceAccountToken: {path: t}}, {downwardAPI: {}}, {clusterTrustBundle: {name: t, path: t}}]}"), []plans.Dependency{one("ConfigMap", "a"), maybe("Secret", "b")}},
		"csi":                            {volume("csi: {driver: d, nodePublishSecretRef: {name: a}}"), []plans.Dependency{one("Secret", "a")}},
		"csi without a Secret":           {volume("csi: {driver: d}"), nil},
		"cephfs":                         {volume("cephfs: {secretRef: {name: a}}"), []plans.Dependency{one("Secret", "a")}},
		"cinder":                         {volume("cinder: {secretRef: {name: a}}"), []plans.Dependency{one("Secret", "a")}},
		"rbd":                            {volume("rbd: {secretRef: {name: a}}"), []plans.Dependency{one("Secret", "a")}},
		"iscsi":                          {volume("iscsi: {secretRef: {name: a}}"), []plans.Dependency{one("Secret", "a")}},
		"flexVolume":                     {volume("flexVolume: {secretRef: {name: a}}"), []plans.Dependency{one("Secret", "a")}},
		"scaleIO":                        {volume("scaleIO: {secretRef: {name: a}}"), []plans.Dependency{one("Secret", "a")}},
		"storageos":                      {volume("storageos: {secretRef: {name: a}}"), []plans.Dependency{one("Secret", "a")}},
		"azureFile":                      {volume("azureFile: {secretName: a}"), []plans.Dependency{one("Secret", "a")}},
		"the template of an ephemeral":   {volume("ephemeral: {volumeClaimTemplate: {metadata: {name: a}}}"), nil},
		"a claim is none of these":       {volume("persistentVolumeClaim: {claimName: a}"), nil},
		"volumes that name nothing here": {volume("hostPath: {path: /a}"), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var set appsv1.StatefulSet
			if err := yaml.UnmarshalStrict([]byte(tt.spec), &set.Spec.Template.Spec); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, build.Dependencies(&set)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestClaimsThatAllOrdinalsShare(t *testing.T) {
	var set appsv1.StatefulSet
	for _, name := range []string{"z", "a", "z"} {
		set.Spec.Template.Spec.Volumes = append(set.Spec.Template.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	if diff := cmp.Diff([]string{"a", "z"}, build.SharedClaims(&set)); diff != "" {
		t.Error(diff)
	}
}
