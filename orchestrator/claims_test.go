package orchestrator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAClaimAndItsVolumeAgreeBeforeTheyMove(t *testing.T) {
	const volume = "{capacity: {storage: 10Gi}, accessModes: [ReadWriteOnce], storageClassName: fast, volumeAttributesClassName: gold}"
	for name, c := range map[string]struct {
		claim, status string
		want          []string
	}{
		"they do":             {"{resources: {requests: {storage: 10Gi}}, accessModes: [ReadWriteOnce], storageClassName: fast, volumeAttributesClassName: gold}", "{}", nil},
		"a larger size":       {"{resources: {requests: {storage: 11Gi}}, volumeAttributesClassName: gold}", "{}", []string{"FAIL ...asks for 11Gi and volume pv-0 has 10Gi"}},
		"another class":       {"{storageClassName: slow, volumeAttributesClassName: gold}", "{}", []string{`WARN ...StorageClass "slow" and volume pv-0 has "fast"`}},
		"another access mode": {"{accessModes: [ReadWriteMany], volumeAttributesClassName: gold}", "{}", []string{"WARN ...asks for ReadWriteMany"}},
		"another volume mode": {"{volumeMode: Block, volumeAttributesClassName: gold}", "{}", []string{"FAIL ...volume mode Block"}},
		"other attributes":    {"{volumeAttributesClassName: silver}", "{}", []string{`FAIL ...VolumeAttributesClass "silver" and volume pv-0 has "gold"`}},
		"no attributes":       {"{}", "{}", []string{`FAIL ...VolumeAttributesClass "" and volume pv-0 has "gold"`}},
		"a change under way":  {"{volumeAttributesClassName: silver}", "{modifyVolumeStatus: {targetVolumeAttributesClassName: silver, status: InProgress}}", []string{"FAIL ...changed to VolumeAttributesClass silver (InProgress)"}},
		"an expansion that cannot be": {
			"{volumeAttributesClassName: gold}", "{allocatedResourceStatuses: {storage: ControllerResizeInfeasible}}",
			[]string{"FAIL ...its storage is being expanded (ControllerResizeInfeasible)...ask for a size that the volume can have"},
		},
		"an expansion on the node, said once": {
			"{volumeAttributesClassName: gold}", "{allocatedResourceStatuses: {storage: NodeResizePending}, conditions: [{type: FileSystemResizePending, status: 'True'}]}",
			[]string{"FAIL ...is being expanded (FileSystemResizePending)"},
		},
	} {
		pv := &corev1.PersistentVolume{Spec: parsed[corev1.PersistentVolumeSpec](t, volume)}
		pv.Name = "pv-0"
		claim := &corev1.PersistentVolumeClaim{Spec: parsed[corev1.PersistentVolumeClaimSpec](t, c.claim), Status: parsed[corev1.PersistentVolumeClaimStatus](t, c.status)}
		t.Run(name, func(t *testing.T) { expectFindings(t, append(unfinished(claim), mismatch(claim, pv)...), c.want...) })
	}
}
