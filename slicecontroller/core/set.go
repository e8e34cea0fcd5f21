package core

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// EnforcedRollingUpdate is the strategy of KEP-3541. Its partition and maxUnavailable are in the block
// RollingUpdate of a Set's strategy.
const EnforcedRollingUpdate appsv1.StatefulSetUpdateStrategyType = "EnforcedRollingUpdate"

// Set is a set of either kind. Its spec has its defaults.
type Set struct {
	metav1.ObjectMeta
	Spec   appsv1.StatefulSetSpec
	Status Status
	Traits
	// Asked names the template as the user wrote it; Spec.Template is that template with defaults filled in.
	Asked string
	// Fault is why the template of the set cannot be used, or nil. Spec.Template is then that of its newest
	// revision: missing pods are made from it, and no pod is replaced.
	Fault *Fault
}

// Status is the status of a set of either kind.
type Status struct {
	appsv1.StatefulSetStatus
	// Told are its conditions, and Ordinals is the range that was acted on; both only with the trait
	// Conditioned.
	Told     []metav1.Condition
	Ordinals *Range
	// Progressed is when the set last made progress towards its spec, or began to differ from it; only with
	// the trait Conditioned.
	Progressed *metav1.Time
	// Failed is the revision whose update was rolled back; only with the trait RollsBack.
	Failed string
}

// Range is the ordinals from Start up to, but not including, End.
type Range struct{ Start, End int64 }

// Traits are the differences between the kinds. The zero value is what the specification requires of a
// slice; apps/v1 sets the traits of the controller that it replaces.
type Traits struct {
	// Kind is that of the owner references of pods, claims and revisions.
	Kind schema.GroupVersionKind
	// OffsetPartition counts the partition from the start of the range, instead of as an ordinal (PT-1,
	// PT-4).
	OffsetPartition bool
	// AdoptOutside adopts orphans outside the range, in order to delete them (CL-6), and revisions that have the name
	// of another set (CL-7).
	AdoptOutside bool
	// CompleteEmpty completes an update of a set without replicas (RV-10).
	CompleteEmpty bool
	// CurrentStays never moves the current revision under OnDelete, as Kubernetes did before 1.37 (RV-9).
	CurrentStays bool
	// Reserved are the ordinals that the range leaves out, ascending and each once.
	Reserved []int32
	// Conditioned writes conditions into the status.
	Conditioned bool
	// RetainClaims keeps all claims, whatever the retention policy is (CP-14).
	RetainClaims bool
	// Protected keeps pods and claims when the set is deleted.
	Protected bool
	// ClaimsGrow lets existing claims grow with their template.
	ClaimsGrow bool
	// Evicts makes updates evict pods instead of deleting them.
	Evicts bool
	// Paused replaces no pod for an update.
	Paused bool
	// RollsBack rolls the pods back to their current revision when an update fails.
	RollsBack bool
	// Deadline is how long the set may make no progress; 0 means the default of 10 minutes.
	Deadline time.Duration
	// OneAtATime ignores maxUnavailable (KEP-961, its gate off).
	OneAtATime bool
	// NotEnforced treats EnforcedRollingUpdate as RollingUpdate (ER-19, its gate off).
	NotEnforced bool
}

// start returns k, the first ordinal.
func (s *Set) start() int32 {
	if s.Spec.Ordinals == nil {
		return 0
	}
	return s.Spec.Ordinals.Start
}

// replicas returns N, the number of ordinals.
func (s *Set) replicas() int32 {
	if s.Spec.Replicas == nil {
		return 1
	}
	return *s.Spec.Replicas
}

// nth returns the ordinal of R after n others, counted from 0: R has the first N ordinals from k on that are not
// reserved. Without reserved ones it is [k, k+N-1]. No other code defines the range.
func (s *Set) nth(n int32) int64 {
	at := int64(s.start()) + int64(n)
	for _, r := range s.Reserved {
		if r >= s.start() && int64(r) <= at {
			at++
		}
	}
	return at
}

// end returns the ordinal after the last one of R.
func (s *Set) end() int64 {
	if s.replicas() == 0 {
		return int64(s.start())
	}
	return s.nth(s.replicas()-1) + 1
}

// RangeOf returns the range [start, end) of a spec that leaves out ordinals.
func RangeOf(spec appsv1.StatefulSetSpec, reserved []int32) (start, end int64) {
	s := Set{Spec: spec, Traits: Traits{Reserved: slices.Compact(slices.Sorted(slices.Values(reserved)))}}
	return int64(s.start()), s.end()
}

// ordinals iterates over R, ascending.
func (s *Set) ordinals() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for o, end := int64(s.start()), s.end(); o < end; o++ {
			if ordinal := int32(o); s.has(ordinal) && !yield(ordinal) { //nolint:gosec // below the end of R
				return
			}
		}
	}
}

// has reports whether an ordinal is in R.
func (s *Set) has(ordinal int32) bool {
	_, left := slices.BinarySearch(s.Reserved, ordinal)
	return ordinal >= s.start() && int64(ordinal) < s.end() && !left
}

// Has reports whether a pod of that name is in the range.
func (s *Set) Has(pod string) bool {
	ordinal, member := Ordinal(s.Name, pod)
	return member && s.has(ordinal)
}

// ordered reports whether pods are created and deleted one after the other.
func (s *Set) ordered() bool { return s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement }

// strategy returns the effective strategy.
func (s *Set) strategy() appsv1.StatefulSetUpdateStrategyType {
	t := s.Spec.UpdateStrategy.Type
	if t == EnforcedRollingUpdate && s.NotEnforced {
		return appsv1.RollingUpdateStatefulSetStrategyType
	}
	return t
}

// staged reports whether an ordinal of R is on the updated side of the partition.
func (s *Set) staged(ordinal int32) bool {
	ru := s.Spec.UpdateStrategy.RollingUpdate
	if ru == nil || ru.Partition == nil {
		return true
	}
	if s.OffsetPartition {
		ordinal -= s.start()
	}
	return ordinal >= *ru.Partition
}

// MaxUnavailable returns M (MU-1): a percentage is of N and rounded down, and the result is at least 1.
func (s *Set) MaxUnavailable() int {
	ru := s.Spec.UpdateStrategy.RollingUpdate
	if ru == nil || ru.MaxUnavailable == nil || s.OneAtATime {
		return 1
	}
	m, err := intstr.GetScaledValueFromIntOrPercent(ru.MaxUnavailable, int(s.replicas()), false)
	if err != nil {
		return 1 // a value that cannot be parsed takes down the least
	}
	return max(m, 1)
}

// claimsGo reports whether claims are deleted with an ordinal that is scaled away, and with the set (CP-5,
// CP-14).
func (s *Set) claimsGo() (whenScaled, whenDeleted bool) {
	p := s.Spec.PersistentVolumeClaimRetentionPolicy
	if p == nil || s.RetainClaims {
		return false, false
	}
	const gone = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	return p.WhenScaled == gone, p.WhenDeleted == gone
}

// owner returns the reference by which the set controls a pod, a claim or a revision.
func (s *Set) owner() metav1.OwnerReference { return *metav1.NewControllerRef(s, s.Kind) }

// podName returns the name of the pod of an ordinal (ID-1).
func (s *Set) podName(ordinal int32) string { return s.Name + "-" + strconv.Itoa(int(ordinal)) }

// claimName returns the name of the claim of an ordinal (ID-8).
func (s *Set) claimName(template string, ordinal int32) string {
	return template + "-" + s.podName(ordinal)
}

// Ordinal returns the ordinal in the name of a pod, and whether the pod is a member of the set. Only the
// canonical form counts (ID-2): web-01 is no member of web.
func Ordinal(set, pod string) (ordinal int32, member bool) {
	digits, found := strings.CutPrefix(pod, set+"-")
	if !found {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != digits {
		return 0, false
	}
	return int32(n), true
}
