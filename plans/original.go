package plans

import (
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Original is what the migration changes of a set or a budget once for the whole plan, as it was. The journal
// has it too; on the object it outlives the journal.
type Original struct {
	Retention *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy `json:"retention,omitempty"`
	// Slice is that of a destination set that existed before the plan.
	Slice          *Slice              `json:"slice,omitempty"`
	MinAvailable   *intstr.IntOrString `json:"minAvailable,omitempty"`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// NumbersOf is what of a budget's spec the migration changes.
func NumbersOf(spec policyv1.PodDisruptionBudgetSpec) Original {
	return Original{MinAvailable: spec.MinAvailable, MaxUnavailable: spec.MaxUnavailable}
}

// Put notes it on an object that is about to be sent, unless it has been noted: the first value is the user's.
func (b Original) Put(o metav1.Object) {
	if _, noted := o.GetAnnotations()[BeforeAnnotation]; noted {
		return
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return // numbers and words only: it cannot fail
	}
	annotate(o, BeforeAnnotation, string(raw))
}

// OriginalOf reads what is noted on an object; nil means that nothing is.
func OriginalOf(o metav1.Object) (*Original, error) {
	raw, noted := o.GetAnnotations()[BeforeAnnotation]
	if !noted {
		return nil, nil
	}
	var b Original
	if err := json.Unmarshal([]byte(raw), &b); err != nil {
		return nil, fmt.Errorf("annotation %s of %s/%s is not what this program has written: %w", BeforeAnnotation, o.GetNamespace(), o.GetName(), err)
	}
	return &b, nil
}

// MarkSet notes on a set the course that the plan is on and, as far as it is known, what the set is to be given
// back at the end. Both stand beside the stamp, in the same write.
func MarkSet(set *appsv1.StatefulSet, p *Plan, side Side, direction Direction, s Saved) {
	annotate(set, DirectionAnnotation, string(direction))
	of := side
	if side == Destination && !p.Existed() {
		of = Source // one that the migration made gets the policy of the source's
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

// With gives what is saved together with what is about to be. Old values are never replaced.
func (s Saved) With(u Saved) Saved {
	s.Retention, s.Budgets = maps.Clone(s.Retention), maps.Clone(s.Budgets)
	s.keep(u)
	return s
}

// Direction is the one that a step of this kind belongs to.
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

// Saved is what the migration changes once for the whole plan, as it was.
type Saved struct {
	Retention map[Side]appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy `json:"retention,omitempty"`
	// Slice is that of a destination set that existed before.
	Slice   *Slice                                    `json:"slice,omitempty"`
	Budgets map[Side]policyv1.PodDisruptionBudgetSpec `json:"budgets,omitempty"`
	// SourceUID is that of a source set that was made again, and that a person has vouched for.
	SourceUID types.UID `json:"sourceUID,omitempty"`
}

func (s *Saved) keep(u Saved) {
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
	if u.SourceUID != "" { // no old value: the latest one holds
		s.SourceUID = u.SourceUID
	}
}

// Source returns the UID of the set that is the source: that of the plan, or of the one that was made again.
func (s Saved) Source(p *Plan) types.UID {
	if s.SourceUID != "" {
		return s.SourceUID
	}
	return p.Seen.SourceUID
}
