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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The conditions of a set (ST-9). Those after the first two are there only while they are True.
const (
	// Progressing is False with reason Complete when there is nothing to do or to wait
	// for; its message names the pod that is waited for. As with Deployments, it is Unknown of a
	// set that is paused, and False with reason ProgressDeadlineExceeded of one that makes none.
	Progressing = "Progressing"
	// UpdateStrategy has the strategy that is acted on as its reason (ER-18), and how far
	// an enforced update is in its message.
	UpdateStrategy = "StatefulSetUpdateStrategy"
	// Reconciling and Stalled are Progressing for tools that know no kind (kstatus): Stalled says
	// that somebody has to do something, with what in its message, and not what mends by itself.
	Reconciling = "Reconciling"
	Stalled     = "Stalled"
	// IdentityConflict says that somebody else has the name of a pod (CL-10).
	IdentityConflict = "IdentityConflict"
	// StorageMismatch says that a pod has other volumes than its claims (ID-10).
	StorageMismatch = "StorageMismatch"
	// Invalid says that nothing is done, since the API server would have refused such a StatefulSet
	// (VA-4): its reason says which rule the spec breaks.
	Invalid = "Invalid"
	// ClaimsNotKept says that a claim goes with the set or its pod, against the policy or a hold: it
	// could not be changed (CP-14).
	ClaimsNotKept = "ClaimsNotKept"
	// EvictionRefused says why a pod is not evicted for an update now.
	EvictionRefused = "EvictionRefused"
	// ClaimsOutdated says which claims are to grow and are still of their former size, and why.
	ClaimsOutdated = "ClaimsOutdated"
	// DeletionHeld says that the set is being deleted and is not gone, since it is protected.
	DeletionHeld = "DeletionHeld"
	// PartitionOutOfRange says that the partition is no ordinal of the range, nor the one
	// behind it (PT-5).
	PartitionOutOfRange = "PartitionOutOfRange"
)

// describe brings the conditions up to date.
func (p *pass) describe(failed error) {
	if !p.set.Conditioned {
		return
	}
	p.status.Told = slices.Clone(p.set.Status.Told)
	p.status.Ordinals = &Range{int64(p.set.start()), int64(p.set.start()) + int64(p.set.replicas())}
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

// tellFault tells once why something in the spec cannot be acted on.
func (p *pass) tellFault(f Fault) {
	if f.Passing {
		return
	}
	p.do.Tell(Event{Type: corev1.EventTypeWarning, Reason: f.Reason, Message: f.Message, Once: f.Message})
}

// refuse tells why nothing is done for the set, and does nothing else.
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

// untouched lets the status be as it was, of a set for which nothing is done, but for the generation that its conditions are about.
func (p *pass) untouched() {
	p.status = p.set.Status
	p.status.Told = slices.Clone(p.set.Status.Told)
	p.status.ObservedGeneration = max(p.set.Generation, p.status.ObservedGeneration)
}

// Refuse tells of the fault of a set that keeps anything from being done for it, and does nothing else.
func Refuse(ctx context.Context, set *Set, now time.Time, do Effects) error {
	p := &pass{set: set, world: World{Set: set, Now: now}, do: do}
	_, err := p.refuse(ctx)
	return err
}

func (p *pass) say(c metav1.Condition) {
	c.ObservedGeneration, c.LastTransitionTime, c.Message = p.status.ObservedGeneration, metav1.NewTime(p.world.Now), cut(c.Message, maxMessageBytes)
	meta.SetStatusCondition(&p.status.Told, c)
}

func (p *pass) sayIf(kind, reason, message string) {
	if message == "" {
		meta.RemoveStatusCondition(&p.status.Told, kind)
		return
	}
	p.say(metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message})
}

// sayTools says Stalled or Reconciling, or neither.
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
		stalled = meta.FindStatusCondition(p.status.Told, RolledBack).Message // giveUp has said it
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

// waitsFor names what has to happen before the set is as its spec says, or "" (3335-63).
func (p *pass) waitsFor() string {
	if r := p.firstDown(); r != nil {
		switch {
		case !created(r.Pod):
			return fmt.Sprintf("pod %s is to be made", r.Name)
		case terminating(r.Pod):
			return fmt.Sprintf("pod %s is terminating", r.Name)
		}
		return fmt.Sprintf("pod %s is not available: %s", r.Name, steady(r.Pod))
	}
	if len(p.condemned) > 0 {
		return fmt.Sprintf("pod %s is outside the range and still there", p.condemned[0].Name)
	}
	if p.refused != "" {
		return p.refused
	}
	for _, r := range slices.Backward(p.living) {
		if p.due(r) && p.set.strategy() != appsv1.OnDeleteStatefulSetStrategyType {
			return fmt.Sprintf("pod %s is of revision %s and is to be replaced", r.Name, revisionOf(r.Pod))
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
	first, end := int64(p.set.start()), int64(p.set.start())+int64(p.set.replicas())
	if at := int64(*ru.Partition); at < first || at > end {
		return fmt.Sprintf("the partition is %d, and the ordinals are from %d to %d: it protects %s", at, first, end-1, map[bool]string{true: "none of them", false: "all of them"}[at < first])
	}
	return ""
}

// How far an enforced update is, in the message of the condition UpdateStrategy: what has
// been told of once is not told of again by the next process.
const (
	begun  = "has begun"
	halted = "has halted: the highest ordinal does not become available"
)

// stage is how far the update to the target revision was when it was last told.
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

func (p *pass) sentence(stage string) string {
	return "the update to " + p.target.Name + " " + stage
}

// followed is the condition UpdateStrategy.
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

// stuck says whether the canary of the new revision is not going to become available, with
// others still to be replaced.
func (p *pass) stuck() bool {
	c := p.canary()
	if c == nil || !created(c.Pod) || terminating(c.Pod) || p.outdated(*c) || !p.set.down(c.Pod, p.world.Now) {
		return false
	}
	others := slices.ContainsFunc(p.living, p.due)
	return others && (p.stage() == halted || broken(c.Pod) || !p.world.Now.Before(p.hopelessAt(c)))
}

// hopelessAt is when a new pod has had its time to become available. One that is ready has until it
// has been so for long enough.
func (p *pass) hopelessAt(r *replica) time.Time {
	if at := p.set.availableAt(r.Pod, p.world.Now); !at.IsZero() {
		return at.Add(p.set.deadline())
	}
	return r.CreationTimestamp.Add(p.set.deadline())
}

// broken says whether a pod has failed for certain, and is not just starting.
func broken(pod *corev1.Pod) bool {
	return ended(pod) || slices.Contains([]string{
		"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
		corev1.PodReasonUnschedulable,
	}, condition(pod))
}
