package plans

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// Original holds the old values of the fields of a set or a budget that the migration changes once
// for the whole plan. The journal has them too; on the object they outlive the journal.
type Original struct {
	Retention *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy `json:"retention,omitempty"`
	// Slice is the range of a destination set that existed before the plan.
	Slice          *Slice              `json:"slice,omitempty"`
	MinAvailable   *intstr.IntOrString `json:"minAvailable,omitempty"`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// NumbersOf returns the fields of a budget's spec that the migration changes.
func NumbersOf(spec policyv1.PodDisruptionBudgetSpec) Original {
	return Original{MinAvailable: spec.MinAvailable, MaxUnavailable: spec.MaxUnavailable}
}

// Put writes the old values on an object that will be sent, unless the object already has some: the
// first value is the user's.
func (b Original) Put(o metav1.Object) {
	if _, noted := o.GetAnnotations()[BeforeAnnotation]; noted {
		return
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return // cannot fail: only numbers and strings
	}
	annotate(o, BeforeAnnotation, string(raw))
}

// OriginalOf reads the old values from an object; nil means that it has none.
func OriginalOf(o metav1.Object) (*Original, error) {
	raw, noted := o.GetAnnotations()[BeforeAnnotation]
	if !noted {
		return nil, nil
	}
	var b Original
	if err := weight.Unmarshal([]byte(raw), &b); err != nil {
		return nil, fmt.Errorf("annotation %s of %s/%s was not written by this program: %w", BeforeAnnotation, o.GetNamespace(), o.GetName(), err)
	}
	return &b, nil
}

// MarkSet writes on a set the direction of the plan and, if they are known, the old values that the set
// gets back at the end. Both stand beside the stamp, in the same write.
func MarkSet(set *appsv1.StatefulSet, p *Plan, side Side, direction Direction, s Saved) {
	annotate(set, DirectionAnnotation, string(direction))
	of := side
	if side == Destination && !p.Existed() {
		of = Source // a set that the migration created gets the policy of the source's
	}
	policy, known := s.Retention[of]
	if !known {
		return
	}
	b := Original{Retention: &policy}
	if side == Destination {
		b.Slice = s.Slice
	}
	b.Put(set)
}

// With returns the saved values together with those of u. Old values are never replaced.
func (s Saved) With(u Saved) Saved {
	s.Retention, s.Budgets = maps.Clone(s.Retention), maps.Clone(s.Budgets)
	s.Keep(u)
	return s
}

// Direction returns the direction to which a step of this kind belongs.
func (s Step) Direction() Direction {
	switch {
	case s.From == Destination:
		return Abort
	case s.Op.Closes():
		return Finalize
	}
	return Move
}

func annotate(o metav1.Object, name, value string) {
	a := o.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[name] = value
	o.SetAnnotations(a)
}

// Saved holds the old values of everything that the migration changes once for the whole plan.
type Saved struct {
	// Retention has the claim retention policy of each side's set.
	Retention map[Side]appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy `json:"retention,omitempty"`
	// Slice is the range of a destination set that existed before the plan.
	Slice *Slice `json:"slice,omitempty"`
	// Budgets has the spec of each side's PodDisruptionBudget.
	Budgets map[Side]policyv1.PodDisruptionBudgetSpec `json:"budgets,omitempty"`
	// SourceUID is the UID of a recreated source set for which the user has vouched.
	SourceUID types.UID `json:"sourceUID,omitempty"`
	// Retired is the UID of the set that the closing steps delete. It is written BEFORE the deletion is sent: from then on
	// the plan cannot be turned.
	Retired types.UID `json:"retired,omitempty"`
	// Left names the volumes that the plan let go at its end although no claim of the set was bound to them.
	Left []string `json:"left,omitempty"`
}

// Keep adds the saved values of u. Values that are saved already stay as they are.
func (s *Saved) Keep(u Saved) {
	for side, v := range u.Retention {
		if _, have := s.Retention[side]; !have {
			if s.Retention == nil {
				s.Retention = map[Side]appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{}
			}
			s.Retention[side] = v
		}
	}
	for side, v := range u.Budgets {
		if _, have := s.Budgets[side]; !have {
			if s.Budgets == nil {
				s.Budgets = map[Side]policyv1.PodDisruptionBudgetSpec{}
			}
			s.Budgets[side] = v
		}
	}
	if s.Slice == nil {
		s.Slice = u.Slice
	}
	if u.SourceUID != "" { // not an old value: the latest one is valid
		s.SourceUID = u.SourceUID
	}
	if s.Retired == "" {
		s.Retired = u.Retired
	}
	s.Left = slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.Left, u.Left))))
}

// Source returns the UID of the source set: the plan's, or that of the recreated set.
func (s Saved) Source(p *Plan) types.UID {
	if s.SourceUID != "" {
		return s.SourceUID
	}
	return p.Seen.SourceUID
}
