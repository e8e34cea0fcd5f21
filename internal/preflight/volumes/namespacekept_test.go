package volumes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

func TestWhatVolumesNeedOfTheOldNamespaceIsNamed(t *testing.T) {
	const plain = "spec: {csi: {driver: d, volumeHandle: a}}"
	staged := "spec: {csi: {driver: d, volumeHandle: a, nodeStageSecretRef: {namespace: shop, name: key}, controllerExpandSecretRef: {namespace: kube-system, name: root}}}"
	snapshot := func(name, claim string) client.Object {
		return checktest.CustomObject(t, "{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {namespace: shop, name: "+name+"}, spec: {source: {persistentVolumeClaimName: "+claim+"}}}")
	}
	replicated := func(claim string) client.Object {
		return checktest.CustomObject(t, "{apiVersion: volsync.backube/v1alpha1, kind: ReplicationSource, metadata: {namespace: shop, name: nightly}, spec: {sourcePVC: "+claim+"}}")
	}
	for name, c := range map[string]struct {
		checktest.Estate
		want []string
	}{
		"nothing": {checktest.Estate{Volumes: []string{plain}}, nil},
		"Secrets, named once for all volumes": {
			checktest.Estate{Volumes: []string{staged, staged}},
			[]string{"WARN ...volumes pv-0, pv-1: they name namespace shop: Secret key (csi.nodeStageSecretRef)...keep namespace shop"},
		},
		"a Secret of an annotation": {
			checktest.Estate{Volumes: []string{"metadata: {annotations: {volume.kubernetes.io/provisioner-deletion-secret-name: p, volume.kubernetes.io/provisioner-deletion-secret-namespace: shop}}\n" + plain}},
			[]string{"WARN ...Secret p (annotation volume.kubernetes.io/provisioner-deletion-secret-namespace)"},
		},
		"an attribute": {
			checktest.Estate{Volumes: []string{"spec: {csi: {driver: file.csi.azure.com, volumeHandle: a, volumeAttributes: {secretnamespace: shop}}}"}},
			[]string{"WARN ...they name namespace shop: csi.volumeAttributes.secretnamespace"},
		},
		"a source of Kubernetes' own": {
			checktest.Estate{Volumes: []string{"spec: {azureFile: {secretName: key, shareName: a, secretNamespace: shop}}"}},
			[]string{"WARN ...azureFile.secretNamespace"},
		},
		"snapshots of its claims": {
			checktest.Estate{Volumes: []string{plain}, Here: []client.Object{snapshot("b", "data-web-0"), snapshot("a", "data-web-0"), snapshot("c", "other")}},
			[]string{"WARN ...VolumeSnapshots a, b of namespace shop...deletionPolicy Delete...claims in mall first...kubectl --context my-east -n shop get volumesnapshots"},
		},
		"a replication of a claim": {
			checktest.Estate{Volumes: []string{plain}, Here: []client.Object{replicated("data-web-0")}},
			[]string{"WARN ...ReplicationSources nightly of namespace shop...recreate them in namespace mall"},
		},
		"a replication of another": {checktest.Estate{Volumes: []string{plain}, Here: []client.Object{replicated("other")}}, nil},
		"snapshots that nobody may list": {
			checktest.Estate{Volumes: []string{plain}, Forbids: "*unstructured.UnstructuredList"},
			[]string{"WARN ...VolumeSnapshots of namespace shop: you may not look at volumesnapshots", "WARN ...ReplicationSources of namespace shop"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.One = true
			c.Finds(t, NamespaceKept, c.want...)
		})
	}
	checktest.Estate{Volumes: []string{staged}}.Finds(t, NamespaceKept) // in another cluster
}

func TestTheEndSaysWhyTheOldNamespaceIsNeeded(t *testing.T) {
	const staged = "spec: {csi: {driver: d, volumeHandle: a, nodeStageSecretRef: {namespace: shop, name: key}}}"
	e := checktest.Estate{One: true, Volumes: []string{staged}}
	i := e.Inspected(t)
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name, claim.Spec.VolumeName = "mall", "data-web-0", "pv-0"
	if err := i.On[plans.Destination].Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	found, err := Farewell(t.Context(), i.Plan, i.On, i.Caller)
	if err != nil {
		t.Fatal(err)
	}
	checktest.ExpectFindings(t, found, "WARN namespace-kept: volumes pv-0: they name namespace shop: Secret key")
}
