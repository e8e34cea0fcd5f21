package preflight

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/plans"
)

func custom(t *testing.T, text string) client.Object {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestWhatVolumesNeedOfTheOldNamespaceIsNamed(t *testing.T) {
	const plain = "spec: {csi: {driver: d, volumeHandle: a}}"
	staged := "spec: {csi: {driver: d, volumeHandle: a, nodeStageSecretRef: {namespace: shop, name: key}, controllerExpandSecretRef: {namespace: kube-system, name: root}}}"
	snapshot := func(name, claim string) client.Object {
		return custom(t, "{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {namespace: shop, name: "+name+"}, spec: {source: {persistentVolumeClaimName: "+claim+"}}}")
	}
	replicated := func(claim string) client.Object {
		return custom(t, "{apiVersion: volsync.backube/v1alpha1, kind: ReplicationSource, metadata: {namespace: shop, name: nightly}, spec: {sourcePVC: "+claim+"}}")
	}
	for name, c := range map[string]struct {
		estate
		want []string
	}{
		"nothing": {estate{volumes: []string{plain}}, nil},
		"Secrets, named once for all volumes": {
			estate{volumes: []string{staged, staged}},
			[]string{"WARN ...volumes pv-0, pv-1: they name namespace shop: Secret key (csi.nodeStageSecretRef)...keep namespace shop"},
		},
		"a Secret of an annotation": {
			estate{volumes: []string{"metadata: {annotations: {volume.kubernetes.io/provisioner-deletion-secret-name: p, volume.kubernetes.io/provisioner-deletion-secret-namespace: shop}}\n" + plain}},
			[]string{"WARN ...Secret p (annotation volume.kubernetes.io/provisioner-deletion-secret-namespace)"},
		},
		"an attribute": {
			estate{volumes: []string{"spec: {csi: {driver: file.csi.azure.com, volumeHandle: a, volumeAttributes: {secretnamespace: shop}}}"}},
			[]string{"WARN ...they name namespace shop: csi.volumeAttributes.secretnamespace"},
		},
		"a source of Kubernetes' own": {
			estate{volumes: []string{"spec: {azureFile: {secretName: key, shareName: a, secretNamespace: shop}}"}},
			[]string{"WARN ...azureFile.secretNamespace"},
		},
		"snapshots of its claims": {
			estate{volumes: []string{plain}, here: []client.Object{snapshot("b", "data-web-0"), snapshot("a", "data-web-0"), snapshot("c", "other")}},
			[]string{"WARN ...VolumeSnapshots a, b of namespace shop...deletionPolicy Delete...claims in mall first...kubectl -n shop get volumesnapshots"},
		},
		"a replication of a claim": {
			estate{volumes: []string{plain}, here: []client.Object{replicated("data-web-0")}},
			[]string{"WARN ...ReplicationSources nightly of namespace shop...anew in namespace mall"},
		},
		"a replication of another": {estate{volumes: []string{plain}, here: []client.Object{replicated("other")}}, nil},
		"snapshots that nobody may list": {
			estate{volumes: []string{plain}, forbids: "*unstructured.UnstructuredList"},
			[]string{"WARN ...VolumeSnapshots of namespace shop: you may not look at volumesnapshots", "WARN ...ReplicationSources of namespace shop"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.one = true
			c.finds(t, namespaceKept, c.want...)
		})
	}
	estate{volumes: []string{staged}}.finds(t, namespaceKept) // of another cluster
}

func TestTheEndOfAPlanSaysWhatTheOldNamespaceIsNeededFor(t *testing.T) {
	const staged = "spec: {csi: {driver: d, volumeHandle: a, nodeStageSecretRef: {namespace: shop, name: key}}}"
	e := estate{one: true, volumes: []string{staged}}
	i := e.inspected(t)
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name, claim.Spec.VolumeName = "mall", "data-web-0", "pv-0"
	if err := i.On[plans.Destination].Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	found, err := Farewell(t.Context(), i.Plan, i.On)
	if err != nil {
		t.Fatal(err)
	}
	expectFindings(t, found, "WARN namespace-kept: volumes pv-0: they name namespace shop: Secret key")
}
