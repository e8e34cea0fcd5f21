package storage

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestAClusterAgreesToAllThatNamesADisk(t *testing.T) {
	for name, c := range map[string]struct {
		spec, notes string
		want        []string
		err         string
	}{
		"a disk": {spec: "csi: {driver: d.example.com, volumeHandle: vol-1}", want: []string{"csi d.example.com vol-1"}},
		"what the driver is told, in order": {
			spec: "csi: {driver: d.example.com, volumeHandle: vol-1, volumeAttributes: {b: x=y, a: ''}}",
			want: []string{"csi d.example.com vol-1", "attribute a=", "attribute b=x=y"},
		},
		"all its Secrets": {
			spec:  "csi: {driver: d, volumeHandle: v, controllerPublishSecretRef: {namespace: ns, name: a}, nodeStageSecretRef: {namespace: ns, name: b}, nodePublishSecretRef: {namespace: ns, name: c}, controllerExpandSecretRef: {namespace: ns, name: d}, nodeExpandSecretRef: {namespace: ns, name: e}}",
			notes: "{volume.kubernetes.io/provisioner-deletion-secret-name: f, volume.kubernetes.io/provisioner-deletion-secret-namespace: ns}",
			want:  []string{"csi d v", "secret ns/a", "secret ns/b", "secret ns/c", "secret ns/d", "secret ns/e", "secret ns/f"},
		},
		"a share":                       {spec: "nfs: {server: files, path: /a}", want: []string{"nfs files:/a"}},
		"a path of a node":              {spec: "hostPath: {path: /}", err: "volume pv-1 is hostPath^/: a plan makes volumes only of the source csi or nfs"},
		"a second fact within a value":  {spec: `csi: {driver: d, volumeHandle: v, volumeAttributes: {a: "x\nclaim kube-system/y"}}`, err: "has control characters"},
		"a second fact within a handle": {spec: `csi: {driver: d, volumeHandle: "v\nattribute a=b"}`, err: "has control characters"},
	} {
		t.Run(name, func(t *testing.T) {
			pv := &corev1.PersistentVolume{}
			pv.Name = "pv-1"
			for text, into := range map[string]any{c.spec: &pv.Spec, c.notes: &pv.Annotations} {
				if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			ref := RefTo("mall", "data-web-0", "")
			pv.Spec.ClaimRef = &ref
			got, err := Facts("web-1a2b", pv)
			switch {
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("%v, %v, expected %q", got, err, c.err)
			case c.err == "" && (err != nil || !slices.Equal(got, append([]string{"plan web-1a2b", "claim mall/data-web-0"}, c.want...))):
				t.Errorf("%v: %q", err, got)
			}
		})
	}
}
