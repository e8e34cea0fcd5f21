package storage

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

func TestAClusterAgreesToAllOfAVolume(t *testing.T) {
	const rest = "{volumeMode: Filesystem, capacity: {storage: 1Gi}, volumeAttributesClassName: fast, persistentVolumeReclaimPolicy: Retain, claimRef: {kind: PersistentVolumeClaim, apiVersion: v1, namespace: mall, name: data-web-0, uid: u, resourceVersion: '7'}}"
	for name, c := range map[string]struct {
		spec, notes, err string
		told             map[string]string
	}{
		"a disk": {spec: "{csi: {driver: d.example.com, volumeHandle: vol-1}}"},
		"what the driver is told": {
			spec: `{csi: {driver: d.example.com, volumeHandle: vol-1, fsType: xfs, readOnly: true, volumeAttributes: {"a=b": c, a: "b=c\nd", e: ''}}}`,
		},
		"how and where it is mounted": {
			spec: "{nfs: {server: files, path: /a, readOnly: true}, mountOptions: [nosuid], volumeMode: Block, accessModes: [ReadWriteOnce], storageClassName: disks, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a, b]}]}]}}}",
		},
		"all its Secrets, by their roles": {
			spec:  "{csi: {driver: d, volumeHandle: v, controllerPublishSecretRef: {namespace: ns, name: a}, nodeStageSecretRef: {namespace: ns, name: b}, nodePublishSecretRef: {namespace: ns, name: c}, controllerExpandSecretRef: {namespace: ns, name: d}, nodeExpandSecretRef: {namespace: ns, name: e}}}",
			notes: "{volume.kubernetes.io/provisioner-deletion-secret-name: f, volume.kubernetes.io/provisioner-deletion-secret-namespace: ns, pv.kubernetes.io/provisioned-by: d}",
			told:  map[string]string{"volume.kubernetes.io/provisioner-deletion-secret-name": "f", "volume.kubernetes.io/provisioner-deletion-secret-namespace": "ns"},
		},
		"a path of a node": {spec: "{hostPath: {path: /}}", err: "volume pv-1 is hostPath^/: a plan makes volumes only of the source csi or nfs"},
	} {
		t.Run(name, func(t *testing.T) {
			pv := &corev1.PersistentVolume{}
			pv.Name = "pv-1"
			var want map[string]any
			for _, into := range []struct {
				text string
				o    any
			}{{rest, &pv.Spec}, {c.spec, &pv.Spec}, {c.notes, &pv.Annotations}, {c.spec, &want}} {
				if err := yaml.UnmarshalStrict([]byte(into.text), into.o); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Agreed("web-1a2b", pv)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, expected %q", err, c.err)
				}
				return
			}
			want["claimRef"] = map[string]any{"namespace": "mall", "name": "data-web-0"}
			var spec map[string]any
			if err := json.Unmarshal(got.Spec.Raw, &spec); err != nil {
				t.Fatal(err)
			}
			if err != nil || got.Plan != "web-1a2b" || got.Name != "pv-1" || !reflect.DeepEqual(spec, want) || !maps.Equal(got.Annotations, c.told) {
				t.Errorf("%v: %+v: %s", err, got, got.Spec.Raw)
			}
			if pv.Spec.Capacity.Storage().Cmp(resource.MustParse("1Gi")) != 0 || pv.Spec.ClaimRef.UID != "u" {
				t.Errorf("the volume itself has changed: %+v", pv.Spec)
			}
		})
	}
}
