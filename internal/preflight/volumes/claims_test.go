package volumes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func TestAClaimMustNameItsVolume(t *testing.T) {
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
		pv := &corev1.PersistentVolume{Spec: planstest.Parsed[corev1.PersistentVolumeSpec](t, volume)}
		pv.Name = "pv-0"
		claim := &corev1.PersistentVolumeClaim{Spec: planstest.Parsed[corev1.PersistentVolumeClaimSpec](t, c.claim), Status: planstest.Parsed[corev1.PersistentVolumeClaimStatus](t, c.status)}
		t.Run(name, func(t *testing.T) {
			checktest.ExpectFindings(t, append(unfinished(claim), mismatch(claim, pv)...), c.want...)
		})
	}
}

// A claim that is too large to be written down is found before its ordinal leaves.
func TestAClaimWithLargeAnnotationsIsRefused(t *testing.T) {
	for size, bad := range map[int]bool{0: false, 100 << 10: false, 130 << 10: true, 250 << 10: true} {
		claim, pv := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
		claim.Name, claim.Annotations = "data-web-1", map[string]string{"notes": strings.Repeat(`"`, size)} // it is longer in JSON
		if got := tooLarge(claim, pv); (len(got) > 0) != bad {
			t.Errorf("%d bytes: %v", size, got)
		}
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{plans.ClaimAnnotation: strings.Repeat("x", 200<<10)}}}
	if got := tooLarge(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": strings.Repeat("x", 200<<10)}}}, pv); len(got) > 0 {
		t.Errorf("the manifest of before counts, which is replaced: %v", got)
	}
	pv.Annotations["other"] = strings.Repeat("x", 100<<10)
	if got := tooLarge(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": strings.Repeat("x", 200<<10)}}}, pv); len(got) != 1 {
		t.Errorf("what else is on the volume does not count: %v", got)
	}
}

// Access modes are compared for equality: ReadWriteOncePod does not include ReadWriteOnce.
func TestAClaimIsComparedWithItsVolume(t *testing.T) {
	claim, pv := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	for _, c := range []struct {
		asks, has []corev1.PersistentVolumeAccessMode
		want      int
	}{
		{[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany}, 0},
		{[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, 1},
		{[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteMany}, []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, 2},
	} {
		claim.Spec.AccessModes, pv.Spec.AccessModes = c.asks, c.has
		if found := mismatch(claim, pv); len(found) != c.want {
			t.Errorf("claim %v, volume %v: got %v, expected %d findings", c.asks, c.has, found, c.want)
		}
	}
}
