package core

import (
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// EnforcedRollingUpdate is the strategy of KEP-3541. Its partition and maxUnavailable are
// in the block RollingUpdate of a Set's strategy.
const EnforcedRollingUpdate appsv1.StatefulSetUpdateStrategyType = "EnforcedRollingUpdate"

// Set is a set of either kind. Its spec has its defaults.
type Set struct {
	metav1.ObjectMeta
	Spec   appsv1.StatefulSetSpec
	Status Status
	Traits
	// Asked names the template as it was written, where Spec.Template is what became of it.
	Asked string
	// Fault is why the template of the set cannot be used, or nil. Spec.Template is then that of its newest revision: pods
	// that are missing are made from it, and none is replaced.
	Fault *Fault
}

// Status is that of a set of either kind.
type Status struct {
	appsv1.StatefulSetStatus
	// Told are its conditions, where the traits ask for any, and Ordinals the range that was acted on.
	Told     []metav1.Condition
	Ordinals *Range
	// Progressed is when the set last came nearer to its spec, or began to differ from it,
	// where the traits ask for conditions.
	Progressed *metav1.Time
	// Failed is the revision whose update was rolled back, where the traits ask for that.
	Failed string
}

// Range are the ordinals from Start up to, and without, End.
type Range struct{ Start, End int64 }

// Traits are what differs between the kinds. The zero value is what the specification
// asks of a slice; apps/v1 sets what follows the controller that it replaces.
type Traits struct {
	// Kind is that of the owner references that pods, claims and revisions get.
	Kind schema.GroupVersionKind
	// OffsetPartition counts the partition from the start of the range, and not as an
	// ordinal (PT-1, PT-4).
	OffsetPartition bool
	// AdoptOutside adopts orphans outside the range, to delete them (CL-6).
	AdoptOutside bool
	// CompleteEmpty completes an update of a set without replicas (RV-10).
	CompleteEmpty bool
	// CurrentStays never moves the current revision under OnDelete, as Kubernetes did before 1.37 (RV-9).
	CurrentStays bool
	// Conditioned tells of the set in conditions.
	Conditioned bool
	// HoldClaims keeps all claims, whatever the retention policy says (CP-14).
	RetainClaims bool
	// Protected lets pods and claims live on when the set is deleted.
	Protected bool
	// ClaimsGrow lets claims that are there grow with their template.
	ClaimsGrow bool
	// Evicts lets updates evict pods.
	Evicts bool
	// Paused replaces no pod for an update.
	Paused bool
	// RollsBack gives the pods their current revision again when an update fails.
	RollsBack bool
	// Deadline is for how long the set may come no nearer to its spec; 0 is the default.
	Deadline time.Duration
	// OneAtATime ignores maxUnavailable (KEP-961, its gate off).
	OneAtATime bool
	// NotEnforced takes EnforcedRollingUpdate for RollingUpdate (ER-19, its gate off).
	NotEnforced bool
}

// start is k, the first ordinal.
func (s *Set) start() int32 {
	if s.Spec.Ordinals == nil {
		return 0
	}
	return s.Spec.Ordinals.Start
}

// replicas is N, the number of ordinals.
func (s *Set) replicas() int32 {
	if s.Spec.Replicas == nil {
		return 1
	}
	return *s.Spec.Replicas
}

// has says whether an ordinal is in R, which is [k, k+N-1]. It is the only place that
// knows.
func (s *Set) has(ordinal int32) bool {
	return ordinal >= s.start() && int64(ordinal) < int64(s.start())+int64(s.replicas())
}

// Has says whether a pod of that name is one of the range.
func (s *Set) Has(pod string) bool {
	ordinal, member := Ordinal(s.Name, pod)
	return member && s.has(ordinal)
}

// ordered says that pods come and go one after the other.
func (s *Set) ordered() bool {
	return s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
}

// strategy is the one that is acted on.
func (s *Set) strategy() appsv1.StatefulSetUpdateStrategyType {
	t := s.Spec.UpdateStrategy.Type
	if t == EnforcedRollingUpdate && s.NotEnforced {
		return appsv1.RollingUpdateStatefulSetStrategyType
	}
	return t
}

// staged says whether an ordinal of R is on the side of the partition that is updated.
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

// MaxUnavailable is M (MU-1): a percentage is of N and rounded down, and nothing is
// below 1.
func (s *Set) MaxUnavailable() int {
	ru := s.Spec.UpdateStrategy.RollingUpdate
	if ru == nil || ru.MaxUnavailable == nil || s.OneAtATime {
		return 1
	}
	m, err := intstr.GetScaledValueFromIntOrPercent(ru.MaxUnavailable, int(s.replicas()), false)
	if err != nil {
		return 1 // what is not understood takes down the least
	}
	return max(m, 1)
}

// claimsGo says whether claims are deleted with the ordinal that is scaled away, and with
// the set (CP-5, CP-14).
func (s *Set) claimsGo() (whenScaled, whenDeleted bool) {
	p := s.Spec.PersistentVolumeClaimRetentionPolicy
	if p == nil || s.RetainClaims {
		return false, false
	}
	const gone = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	return p.WhenScaled == gone, p.WhenDeleted == gone
}

// owner is the reference by which the set controls a pod, a claim or a revision.
func (s *Set) owner() metav1.OwnerReference {
	return *metav1.NewControllerRef(s, s.Kind)
}

// podName is the name of the pod of an ordinal (ID-1).
func (s *Set) podName(ordinal int32) string {
	return s.Name + "-" + strconv.Itoa(int(ordinal))
}

// claimName is the name of the claim of an ordinal (ID-8).
func (s *Set) claimName(template string, ordinal int32) string {
	return template + "-" + s.podName(ordinal)
}

// Ordinal reads the ordinal from the name of a member. Only the canonical form counts
// (ID-2): web-01 is no member of web.
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
