package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The conditions of a set (ST-9). All but the first two are present only while they are True.
const (
	// Progressing is True while there is something to do or to wait for; its message names the pod that is
	// waited for. It is False with reason Complete when there is not, and with reason RolledBack after a
	// rollback. As with Deployments, it is Unknown for a paused set, and False with reason
	// ProgressDeadlineExceeded for a set that makes no progress.
	Progressing = "Progressing"
	// UpdateStrategy has the effective strategy as its reason (ER-18), and the stage of an enforced update
	// in its message.
	UpdateStrategy = "StatefulSetUpdateStrategy"
	// Reconciling and Stalled are Progressing for tools that use kstatus and do not know the kind. Stalled
	// means that a user has to act, and its message says how; it does not cover faults that pass by
	// themselves.
	Reconciling = "Reconciling"
	Stalled     = "Stalled"
	// IdentityConflict means that another owner's pod has the name of a pod of the set (CL-10).
	IdentityConflict = "IdentityConflict"
	// StorageMismatch means that a pod has other volumes than its claims (ID-10).
	StorageMismatch = "StorageMismatch"
	// Invalid means that nothing is done, since the API server would have refused such a StatefulSet (VA-4).
	// Its reason is the rule that the spec breaks.
	Invalid = "Invalid"
	// ClaimsNotKept means that a claim will be deleted with the set or its pod, against the retention policy
	// or RetainClaims: it could not be changed (CP-14).
	ClaimsNotKept = "ClaimsNotKept"
	// EvictionRefused has the reason why a pod cannot be evicted for an update now.
	EvictionRefused = "EvictionRefused"
	// ClaimsOutdated lists the claims that must grow and still have their former size, and why.
	ClaimsOutdated = "ClaimsOutdated"
	// DeletionHeld means that the set is being deleted, and that its deletion protection keeps it.
	DeletionHeld = "DeletionHeld"
	// PartitionOutOfRange means that the partition is neither an ordinal of the range nor the one after it
	// (PT-5).
	PartitionOutOfRange = "PartitionOutOfRange"
)

// account is what a pass reports of a set: its status, and the conditions in it.
type account struct {
	*teller
	*claimKeeper
	*protection

	status   Status
	outcome  Outcome
	begins   bool        // an enforced update deletes a pod in this pass
	waits    bool        // something must happen before the set is as its spec requires
	moved    atomic.Bool // a pod was created or deleted in this pass
	made     int         // how many pods were created in this pass
	conflict string      // the message that another owner's pod has the name of one of ours
	// refused is why a pod cannot be evicted now. refusedUntil is when to retry, if the API server names a
	// time.
	refused      string
	refusedUntil time.Time
	// retried means that conditions quote an error, and that what failed is retried in any case.
	retried bool
}

// describe updates the conditions.
func (ac *account) describe(failed error) {
	if !ac.set.Conditioned {
		return
	}
	ac.status.Told = slices.Clone(ac.set.Status.Told)
	ac.status.Ordinals = &Range{int64(ac.set.start()), ac.set.end()}
	if ac.set.Fault != nil {
		ac.tellFault(*ac.set.Fault)
	}
	progress := ac.progress(failed)
	followed := ac.followed()
	ac.giveUp(progress)
	ac.say(progress)
	ac.say(followed)
	ac.sayTools(progress, failed)
	ac.sayIf(Invalid, "", "")
	ac.sayIf(IdentityConflict, "NameTaken", ac.conflict)
	ac.sayIf(StorageMismatch, "OtherVolumes", ac.mismatch())
	ac.sayIf(ClaimsNotKept, "UpdateRefused", brief(errors.Join(ac.unkept...)))
	reason, held := ac.heldBack()
	ac.sayIf(DeletionHeld, reason, held)
	ac.sayIf(ClaimsOutdated, "FormerSize", brief(errors.Join(ac.ungrown...)))
	ac.sayIf(EvictionRefused, "TooManyRequests", ac.refused)
	ac.sayIf(PartitionOutOfRange, "OutOfRange", ac.offRange())
}

// refuse records why nothing is done for the set, and does nothing else.
func (ac *account) refuse(ctx context.Context) (Outcome, error) {
	ac.tellFault(*ac.set.Fault)
	if !ac.set.Conditioned {
		return Outcome{}, nil
	}
	ac.untouched()
	progress := ac.progress(nil)
	ac.say(progress)
	ac.sayTools(progress, nil)
	return Outcome{}, ac.write(ctx)
}

// untouched keeps the former status of a set for which nothing is done, except for the generation of its
// conditions.
func (ac *account) untouched() {
	ac.status = ac.set.Status
	ac.status.Told = slices.Clone(ac.set.Status.Told)
	ac.status.ObservedGeneration = max(ac.set.Generation, ac.status.ObservedGeneration)
}

// stop records the refusal of the API server for which a pass ends before anything of the set was compared with its
// spec: of its first revision, or of an orphan that has to be adopted. What the next look settles is not recorded.
func (ac *account) stop(ctx context.Context, err error) (Outcome, error) {
	refused := func(e error) bool {
		return apierrors.ReasonForError(e) != metav1.StatusReasonUnknown && !apierrors.IsConflict(e) && !apierrors.IsNotFound(e)
	}
	if !ac.set.Conditioned || !slices.ContainsFunc(parts(err), refused) {
		return Outcome{}, err
	}
	ac.untouched()
	ac.retried = true
	stalled, reconciling := brief(lasting(err)), ""
	if stalled == "" {
		reconciling = brief(err)
	}
	ac.say(metav1.Condition{Type: Progressing, Status: metav1.ConditionTrue, Reason: failing, Message: brief(err)})
	ac.sayIf(Stalled, failing, stalled)
	ac.sayIf(Reconciling, failing, reconciling)
	ac.status.ObservedGeneration = ac.set.Status.ObservedGeneration // only these conditions are about the present spec
	return Outcome{}, errors.Join(err, ac.write(ctx))
}

// Refuse records the fault of a set for which nothing can be done, and does nothing else.
func Refuse(ctx context.Context, set *Set, now time.Time, do Effects) error {
	p := newPass(World{Set: set, Now: now}, do)
	_, err := p.refuse(ctx)
	return err
}

func (ac *account) say(c metav1.Condition) {
	c.ObservedGeneration, c.LastTransitionTime, c.Message = ac.status.ObservedGeneration, metav1.NewTime(ac.world.Now), Cut(c.Message, maxMessageBytes)
	meta.SetStatusCondition(&ac.status.Told, c)
}

func (ac *account) sayIf(kind, reason, message string) {
	if message == "" {
		meta.RemoveStatusCondition(&ac.status.Told, kind)
		return
	}
	ac.say(metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message})
}

// sayTools sets Stalled or Reconciling, or removes both.
func (ac *account) sayTools(progress metav1.Condition, failed error) {
	stalled := brief(lasting(failed))
	switch {
	case stalled != "":
	case ac.holds:
		_, stalled = ac.heldBack()
	case ac.conflict != "":
		stalled = ac.conflict
	case ac.set.Fault != nil && !ac.set.Fault.Passing:
		stalled = ac.set.Fault.Message
	case ac.status.Failed != "":
		stalled = meta.FindStatusCondition(ac.status.Told, RolledBack).Message // giveUp has set the condition
	case ac.enforced() && ac.stuck():
		stalled = ac.sentence(halted)
	case progress.Reason == deadlineExceeded:
		stalled = progress.Message
	}
	reconciling := ""
	if stalled == "" && (ac.waits || progress.Status == metav1.ConditionTrue) {
		reconciling = progress.Message
	}
	ac.sayIf(Stalled, progress.Reason, stalled)
	ac.sayIf(Reconciling, progress.Reason, reconciling)
}

// waitsFor names what must happen before the set is as its spec requires, or returns "" (3335-63).
func (ac *account) waitsFor() string {
	if r := ac.firstDown(); r != nil {
		switch {
		case !created(r.Pod):
			if c, with, _ := ac.leaving(*r); c != nil {
				return fmt.Sprintf("pod %s will be created once claim %s is gone: the claim goes with a former %s %s", r.Name, c.Name, with.Kind, with.Name)
			}
			return fmt.Sprintf("pod %s will be created", r.Name)
		case terminating(r.Pod):
			return fmt.Sprintf("pod %s is terminating", r.Name)
		}
		return fmt.Sprintf("pod %s is not available: %s", r.Name, ac.reason(r.Pod))
	}
	if len(ac.condemned) > 0 {
		return fmt.Sprintf("pod %s is outside the range and still there", ac.condemned[0].Name)
	}
	if ac.refused != "" {
		return ac.refused
	}
	for _, r := range slices.Backward(ac.living) {
		if ac.due(r) && ac.set.strategy() != appsv1.OnDeleteStatefulSetStrategyType {
			return fmt.Sprintf("pod %s is of revision %s and will be replaced", r.Name, revisionOf(r.Pod))
		}
	}
	return ""
}

func (p *picture) mismatch() string {
	for _, r := range p.living {
		if why := p.set.foreignVolume(r.Pod, r.ordinal); why != "" {
			return why
		}
	}
	return ""
}

func (p *picture) offRange() string {
	ru := p.set.Spec.UpdateStrategy.RollingUpdate
	if ru == nil || ru.Partition == nil || *ru.Partition == 0 {
		return ""
	}
	first, end := int64(p.set.start()), p.set.end()
	if at := int64(*ru.Partition); at < first || at > end {
		return fmt.Sprintf("the partition is %d, and the ordinals are from %d to %d: it protects %s", at, first, end-1, map[bool]string{true: "none of them", false: "all of them"}[at < first])
	}
	return ""
}

// The stages of an enforced update, in the message of the condition UpdateStrategy: a stage that was
// recorded once is not recorded again by the next process.
const (
	begun  = "has begun"
	halted = "has halted: the highest ordinal does not become available"
)

// stage returns the last recorded stage of the update to the target revision, or "".
func (p *picture) stage() string {
	c := meta.FindStatusCondition(p.set.Status.Told, UpdateStrategy)
	if c == nil {
		return ""
	}
	words, _ := strings.CutPrefix(c.Message, p.sentence(""))
	if words == begun || words == halted {
		return words
	}
	return ""
}

func (p *picture) sentence(stage string) string {
	return "the update to " + p.target.Name + " " + stage
}

// followed returns the condition UpdateStrategy.
func (ac *account) followed() metav1.Condition {
	c := metav1.Condition{Type: UpdateStrategy, Status: metav1.ConditionTrue, Reason: string(ac.set.strategy())}
	if ac.set.Spec.UpdateStrategy.Type == EnforcedRollingUpdate && !ac.enforced() {
		c.Reason = "FeatureDisabled"
	}
	stage := ac.stage()
	if ac.begins && stage == "" {
		stage = begun
		ac.do.Tell(Event{Type: corev1.EventTypeNormal, Reason: "EnforcedRollingUpdateStarted", Message: ac.sentence(begun)}) // ER-16
	}
	if c := ac.canary(); stage == halted && c != nil && created(c.Pod) && !ac.set.down(c.Pod, ac.world.Now) {
		stage = begun // the update goes on
	}
	if ac.enforced() && stage != halted && ac.stuck() {
		stage = halted
		ac.outcome.Halted = true
		ac.do.Tell(Event{Type: corev1.EventTypeWarning, Reason: "EnforcedRollingUpdateHalted", Related: ac.canary().Pod, Message: fmt.Sprintf("%s (pod %s: %s)", ac.sentence(halted), ac.canary().Name, condition(ac.canary().Pod))})
	}
	if stage != "" {
		c.Message = ac.sentence(stage)
	}
	return c
}

// stuck reports whether the canary of the new revision will not become available, while other pods must
// still be replaced.
func (p *picture) stuck() bool {
	c := p.canary()
	if c == nil || !created(c.Pod) || terminating(c.Pod) || p.outdated(*c) || !p.set.down(c.Pod, p.world.Now) {
		return false
	}
	others := slices.ContainsFunc(p.living, p.due)
	return others && (p.stage() == halted || p.hopeless(c.Pod))
}

// broken reports whether a pod has certainly failed, and is not just starting. A pod that no node can take may only
// wait for an autoscaler, or for the pods that it displaces.
func broken(pod *corev1.Pod) bool {
	return ended(pod) || slices.Contains([]string{
		"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
	}, condition(pod))
}

// leave records in the conditions of an invalid set that it is left unchanged, and why (VA-9).
func (ac *account) leave(ctx context.Context, reason, why string) error {
	if ac.set.Conditioned {
		ac.untouched()
		ac.sayIf(Reconciling, "", "")
		for _, kind := range []string{Progressing, Stalled, Invalid} {
			ac.sayIf(kind, reason, why)
		}
		if err := ac.write(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s", ErrInvalid, why)
}

// giveUp decides that an update has failed and is rolled back. The next pass starts the rollback.
func (ac *account) giveUp(progress metav1.Condition) {
	why := ""
	switch {
	case ac.failed() != "":
		if meta.FindStatusCondition(ac.status.Told, RolledBack) == nil { // another writer removed it
			ac.sayIf(RolledBack, updateFailed, ac.wayBack(""))
		}
		return
	case !ac.set.RollsBack, ac.set.Paused, ac.astray(), ac.set.DeletionTimestamp != nil, ac.asked.Name == ac.current.Name, !ac.toBlame():
	case progress.Reason == deadlineExceeded:
		why = " (" + progress.Message + ")"
	case ac.enforced() && ac.stuck():
		why = " (it has halted: pod " + ac.canary().Name + " is not available: " + condition(ac.canary().Pod) + ")"
	}
	if why == "" {
		meta.RemoveStatusCondition(&ac.status.Told, RolledBack)
		return
	}
	ac.status.Failed, ac.status.Progressed = ac.asked.Name, &metav1.Time{Time: ac.world.Now}
	ac.sayIf(RolledBack, updateFailed, ac.wayBack(why))
	ac.do.Tell(Event{Type: corev1.EventTypeWarning, Reason: RolledBack, Message: ac.wayBack(why)})
}

// toBlame reports whether a pod that the update has created, or will create, does not become available. The
// update is not to blame for an unavailable pod of the old revision. The deadline may have passed for such a
// pod: then a new pod that was just created, is not ready for a moment, or waits for its turn, is no failure either.
func (ac *account) toBlame() bool {
	held := false // in order, no pod is created behind one that is missing or not available
	for o := range ac.set.ordinals() {
		switch r := ac.at(o); {
		case ac.set.staged(o) && !created(r.Pod) && ac.made == 0 && !held:
			return true
		case created(r.Pod) && ac.mayFail(r) && (terminating(r.Pod) || ac.hopeless(r.Pod)):
			return true
		case ac.set.ordered() && (!created(r.Pod) || ac.set.down(r.Pod, ac.world.Now) && !ac.exempt(r)):
			held = true
		}
	}
	return false
}
