package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// describe updates the conditions.
func (p *pass) describe(failed error) {
	if !p.set.Conditioned {
		return
	}
	p.status.Told = slices.Clone(p.set.Status.Told)
	p.status.Ordinals = &Range{int64(p.set.start()), p.set.end()}
	if p.set.Fault != nil {
		p.tellFault(*p.set.Fault)
	}
	progress := p.progress(failed)
	followed := p.followed()
	p.giveUp(progress)
	p.say(progress)
	p.say(followed)
	p.sayTools(progress, failed)
	p.sayIf(Invalid, "", "")
	p.sayIf(IdentityConflict, "NameTaken", p.conflict)
	p.sayIf(StorageMismatch, "OtherVolumes", p.mismatch())
	p.sayIf(ClaimsNotKept, "UpdateRefused", brief(errors.Join(p.unkept...)))
	reason, held := p.heldBack()
	p.sayIf(DeletionHeld, reason, held)
	p.sayIf(ClaimsOutdated, "FormerSize", brief(errors.Join(p.ungrown...)))
	p.sayIf(EvictionRefused, "TooManyRequests", p.refused)
	p.sayIf(PartitionOutOfRange, "OutOfRange", p.offRange())
}

// tellFault records once, in an Event, why the spec cannot be acted on. A fault that may pass by itself is
// not recorded.
func (p *pass) tellFault(f Fault) {
	if f.Passing {
		return
	}
	p.do.Tell(Event{Type: corev1.EventTypeWarning, Reason: f.Reason, Message: f.Message, Once: f.Message})
}

// refuse records why nothing is done for the set, and does nothing else.
func (p *pass) refuse(ctx context.Context) (Outcome, error) {
	p.tellFault(*p.set.Fault)
	if !p.set.Conditioned {
		return Outcome{}, nil
	}
	p.untouched()
	progress := p.progress(nil)
	p.say(progress)
	p.sayTools(progress, nil)
	return Outcome{}, p.write(ctx)
}

// untouched keeps the former status of a set for which nothing is done, except for the generation of its
// conditions.
func (p *pass) untouched() {
	p.status = p.set.Status
	p.status.Told = slices.Clone(p.set.Status.Told)
	p.status.ObservedGeneration = max(p.set.Generation, p.status.ObservedGeneration)
}

// stop records the refusal of the API server for which a pass ends before anything of the set was compared with its
// spec: of its first revision, or of an orphan that has to be adopted. What the next look settles is not recorded.
func (p *pass) stop(ctx context.Context, err error) (Outcome, error) {
	refused := func(e error) bool {
		return apierrors.ReasonForError(e) != metav1.StatusReasonUnknown && !apierrors.IsConflict(e) && !apierrors.IsNotFound(e)
	}
	if !p.set.Conditioned || !slices.ContainsFunc(parts(err), refused) {
		return Outcome{}, err
	}
	p.untouched()
	p.retried = true
	stalled, reconciling := brief(lasting(err)), ""
	if stalled == "" {
		reconciling = brief(err)
	}
	p.say(metav1.Condition{Type: Progressing, Status: metav1.ConditionTrue, Reason: failing, Message: brief(err)})
	p.sayIf(Stalled, failing, stalled)
	p.sayIf(Reconciling, failing, reconciling)
	p.status.ObservedGeneration = p.set.Status.ObservedGeneration // only these conditions are about the present spec
	return Outcome{}, errors.Join(err, p.write(ctx))
}

// Refuse records the fault of a set for which nothing can be done, and does nothing else.
func Refuse(ctx context.Context, set *Set, now time.Time, do Effects) error {
	p := &pass{set: set, world: World{Set: set, Now: now}, do: do}
	_, err := p.refuse(ctx)
	return err
}

func (p *pass) say(c metav1.Condition) {
	c.ObservedGeneration, c.LastTransitionTime, c.Message = p.status.ObservedGeneration, metav1.NewTime(p.world.Now), Cut(c.Message, maxMessageBytes)
	meta.SetStatusCondition(&p.status.Told, c)
}

func (p *pass) sayIf(kind, reason, message string) {
	if message == "" {
		meta.RemoveStatusCondition(&p.status.Told, kind)
		return
	}
	p.say(metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message})
}

// sayTools sets Stalled or Reconciling, or removes both.
func (p *pass) sayTools(progress metav1.Condition, failed error) {
	stalled := brief(lasting(failed))
	switch {
	case stalled != "":
	case p.holds:
		_, stalled = p.heldBack()
	case p.conflict != "":
		stalled = p.conflict
	case p.set.Fault != nil && !p.set.Fault.Passing:
		stalled = p.set.Fault.Message
	case p.status.Failed != "":
		stalled = meta.FindStatusCondition(p.status.Told, RolledBack).Message // giveUp has set the condition
	case p.enforced() && p.stuck():
		stalled = p.sentence(halted)
	case progress.Reason == deadlineExceeded:
		stalled = progress.Message
	}
	reconciling := ""
	if stalled == "" && (p.waits || progress.Status == metav1.ConditionTrue) {
		reconciling = progress.Message
	}
	p.sayIf(Stalled, progress.Reason, stalled)
	p.sayIf(Reconciling, progress.Reason, reconciling)
}

// waitsFor names what must happen before the set is as its spec requires, or returns "" (3335-63).
func (p *pass) waitsFor() string {
	if r := p.firstDown(); r != nil {
		switch {
		case !created(r.Pod):
			if c, with, _ := p.leaving(*r); c != nil {
				return fmt.Sprintf("pod %s will be created once claim %s is gone: the claim goes with a former %s %s", r.Name, c.Name, with.Kind, with.Name)
			}
			return fmt.Sprintf("pod %s will be created", r.Name)
		case terminating(r.Pod):
			return fmt.Sprintf("pod %s is terminating", r.Name)
		}
		return fmt.Sprintf("pod %s is not available: %s", r.Name, p.reason(r.Pod))
	}
	if len(p.condemned) > 0 {
		return fmt.Sprintf("pod %s is outside the range and still there", p.condemned[0].Name)
	}
	if p.refused != "" {
		return p.refused
	}
	for _, r := range slices.Backward(p.living) {
		if p.due(r) && p.set.strategy() != appsv1.OnDeleteStatefulSetStrategyType {
			return fmt.Sprintf("pod %s is of revision %s and will be replaced", r.Name, revisionOf(r.Pod))
		}
	}
	return ""
}

func (p *pass) mismatch() string {
	for _, r := range p.living {
		if why := p.set.foreignVolume(r.Pod, r.ordinal); why != "" {
			return why
		}
	}
	return ""
}

func (p *pass) offRange() string {
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
func (p *pass) stage() string {
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

func (p *pass) sentence(stage string) string { return "the update to " + p.target.Name + " " + stage }

// followed returns the condition UpdateStrategy.
func (p *pass) followed() metav1.Condition {
	c := metav1.Condition{Type: UpdateStrategy, Status: metav1.ConditionTrue, Reason: string(p.set.strategy())}
	if p.set.Spec.UpdateStrategy.Type == EnforcedRollingUpdate && !p.enforced() {
		c.Reason = "FeatureDisabled"
	}
	stage := p.stage()
	if p.begins && stage == "" {
		stage = begun
		p.do.Tell(Event{Type: corev1.EventTypeNormal, Reason: "EnforcedRollingUpdateStarted", Message: p.sentence(begun)}) // ER-16
	}
	if c := p.canary(); stage == halted && c != nil && created(c.Pod) && !p.set.down(c.Pod, p.world.Now) {
		stage = begun // the update goes on
	}
	if p.enforced() && stage != halted && p.stuck() {
		stage = halted
		p.outcome.Halted = true
		p.do.Tell(Event{Type: corev1.EventTypeWarning, Reason: "EnforcedRollingUpdateHalted", Related: p.canary().Pod, Message: fmt.Sprintf("%s (pod %s: %s)", p.sentence(halted), p.canary().Name, condition(p.canary().Pod))})
	}
	if stage != "" {
		c.Message = p.sentence(stage)
	}
	return c
}

// stuck reports whether the canary of the new revision will not become available, while other pods must
// still be replaced.
func (p *pass) stuck() bool {
	c := p.canary()
	if c == nil || !created(c.Pod) || terminating(c.Pod) || p.outdated(*c) || !p.set.down(c.Pod, p.world.Now) {
		return false
	}
	others := slices.ContainsFunc(p.living, p.due)
	return others && (p.stage() == halted || p.hopeless(c.Pod))
}

// hopelessAt returns the time from which a new pod that is not available counts as stuck: the deadline after
// it stopped being ready, or after its creation if it never was ready. If it is ready, minReadySeconds come
// first. A good pod that is not ready for a moment must not end the update, however old it is.
func (p *pass) hopelessAt(pod *corev1.Pod) time.Time {
	if at := p.set.availableAt(pod, p.world.Now); !at.IsZero() {
		return at.Add(p.set.deadline())
	}
	return notReadySince(pod).Add(p.set.deadline())
}

// hopeless reports whether a pod that is not available will stay so.
func (p *pass) hopeless(pod *corev1.Pod) bool {
	return broken(pod) || !p.world.Now.Before(p.hopelessAt(pod))
}

// broken reports whether a pod has certainly failed, and is not just starting. A pod that no node can take may only
// wait for an autoscaler, or for the pods that it displaces.
func broken(pod *corev1.Pod) bool {
	return ended(pod) || slices.Contains([]string{
		"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
	}, condition(pod))
}
