package plans

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The annotations and the label that the migration sets on objects. The annotations are removed at its end.
const (
	// StampAnnotation names the plan, epoch and step that wrote the object last.
	StampAnnotation = "stsmigrate.dev/stamp"
	// PolicyAnnotation on a PersistentVolume holds its original reclaim policy.
	PolicyAnnotation = "stsmigrate.dev/reclaim-policy"
	// ClaimAnnotation on a PersistentVolume holds the whole manifest of the source's claim.
	ClaimAnnotation = "stsmigrate.dev/claim"
	// VolumeAnnotation on a PersistentVolume of the destination holds the source's PersistentVolume,
	// if the two differ: in names (Storage), or because the source's is not a CSI volume.
	VolumeAnnotation = "stsmigrate.dev/volume"
	// ProofAnnotation on a PersistentVolume holds the evidence that it was free before it was handed over.
	ProofAnnotation = "stsmigrate.dev/vacated"
	// BudgetAnnotation on a PodDisruptionBudget holds the numbers that the migration last wrote. A
	// different spec beside it comes from another writer (S12).
	BudgetAnnotation = "stsmigrate.dev/budget"
	// DirectionAnnotation on a set is the direction that the plan was on when the set was last marked.
	DirectionAnnotation = "stsmigrate.dev/direction"
	// BeforeAnnotation on a set or a PodDisruptionBudget holds the old values of the fields that the
	// migration changes (Original).
	BeforeAnnotation = "stsmigrate.dev/before"
	// PlanLabel on the ConfigMaps and the Lease of a plan, and on the volumes that it creates, holds
	// the plan's name.
	PlanLabel = "stsmigrate.dev/plan"
)

// Stamp names the step, epoch and plan that wrote an object. A stamp higher than a process's own
// means that another process has gone further (S9): resourceVersion alone would let a stale process
// undo a later step after a fresh read.
type Stamp struct {
	Plan  string
	Epoch int64
	Seq   int
}

// String returns "plan/epoch/seq".
func (s Stamp) String() string { return fmt.Sprintf("%s/%d/%d", s.Plan, s.Epoch, s.Seq) }

// Put writes the stamp on an object that will be sent.
func (s Stamp) Put(o metav1.Object) {
	a := o.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[StampAnnotation] = s.String()
	o.SetAnnotations(a)
}

// Stamped reads the stamp of an object; ok is false if there is none. A stamp that cannot be read
// counts as another plan's.
func Stamped(o metav1.Object) (s Stamp, ok bool) {
	v, ok := o.GetAnnotations()[StampAnnotation]
	if !ok {
		return Stamp{}, false
	}
	parts := strings.Split(v, "/")
	if len(parts) != 3 {
		return Stamp{Plan: v}, true
	}
	epoch, err1 := strconv.ParseInt(parts[1], 10, 64)
	seq, err2 := strconv.Atoi(parts[2])
	if err1 != nil || err2 != nil {
		return Stamp{Plan: v}, true
	}
	return Stamp{Plan: parts[0], Epoch: epoch, Seq: seq}, true
}

// Mine reports whether the object carries a stamp of this plan.
func (s Stamp) Mine(o metav1.Object) bool {
	have, ok := Stamped(o)
	return ok && have.Plan == s.Plan
}

// Barred returns the reason why a process with this stamp must not write the object: it belongs to
// another plan, or another process has gone further. An empty string means that the write is allowed.
func (s Stamp) Barred(o metav1.Object) string {
	have, ok := Stamped(o)
	switch {
	case !ok:
		return ""
	case have.Plan != s.Plan:
		return fmt.Sprintf("belongs to plan %s; finish or abort that plan first", have.Plan)
	case have.Epoch > s.Epoch || have.Epoch == s.Epoch && have.Seq > s.Seq:
		return fmt.Sprintf("was written by step %d of epoch %d, later than this process (step %d, epoch %d); "+
			"another process has taken the plan over", have.Seq, have.Epoch, s.Seq, s.Epoch)
	}
	return ""
}

// Unmark removes the migration's annotations from the object, and the label of a volume that the
// migration created. It reports whether there was an annotation (S15).
func Unmark(o metav1.Object) bool {
	a := o.GetAnnotations()
	n := len(a)
	for _, k := range []string{StampAnnotation, PolicyAnnotation, ClaimAnnotation, VolumeAnnotation, ProofAnnotation, BudgetAnnotation, DirectionAnnotation, BeforeAnnotation, PinnedAnnotation} {
		delete(a, k)
	}
	o.SetAnnotations(a)
	labels := o.GetLabels()
	delete(labels, PlanLabel)
	o.SetLabels(labels)
	return len(a) != n
}
