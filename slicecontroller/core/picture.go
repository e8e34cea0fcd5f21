package core

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// picture is what one pass has read of a set, and every question that it answers. Nothing here has an effect.
type picture struct {
	set   *Set
	world World

	versions
	// currentTemplate and targetTemplate are those of the two revisions.
	currentTemplate, targetTemplate *corev1.PodTemplateSpec
	// living are the existing pods of the range, ascending. condemned are the others, descending.
	living, condemned []replica
	// lowestDown is the lowest ordinal that is unavailable, of the range first and else of the condemned
	// (OR-6).
	lowestDown string
	// unsure is the error for which the target is the newest existing revision, and not that of the
	// template: missing pods are made from it, and no pod is replaced.
	unsure error
}

// hopelessAt returns the time from which a new pod that is not available counts as stuck: the deadline after
// it stopped being ready, or after its creation if it never was ready. If it is ready, minReadySeconds come
// first. A good pod that is not ready for a moment must not end the update, however old it is.
func (p *picture) hopelessAt(pod *corev1.Pod) time.Time {
	if at := p.set.availableAt(pod, p.world.Now); !at.IsZero() {
		return at.Add(p.set.deadline())
	}
	return notReadySince(pod).Add(p.set.deadline())
}

// hopeless reports whether a pod that is not available will stay so.
func (p *picture) hopeless(pod *corev1.Pod) bool {
	return broken(pod) || !p.world.Now.Before(p.hopelessAt(pod))
}

// leaving returns a claim of the pod that is about to be deleted with a former pod that was scaled away, or with a
// former set, and the reference to it. expected means that the policy requires that, and that its deletion wakes the
// set. The policy may be Retain by now, but the garbage collector decides by the reference.
func (p *picture) leaving(r replica) (_ *corev1.PersistentVolumeClaim, with *metav1.OwnerReference, expected bool) {
	whenScaled, _ := p.set.claimsGo()
	for _, t := range p.set.Spec.VolumeClaimTemplates {
		c := p.world.Claim(p.set.claimName(t.Name, r.ordinal))
		if c == nil {
			continue
		}
		with = p.set.former(c, r.Pod)
		expected = whenScaled && with != nil && with.Kind == "Pod"
		if with != nil && (expected || c.DeletionTimestamp == nil) { // else makeClaims reports it (CP-3)
			return c, with, expected
		}
	}
	return nil, nil, false
}

// rested reports whether nothing was waited for when the set was last reconciled.
func (p *picture) rested() bool {
	c := meta.FindStatusCondition(p.set.Status.Told, Progressing)
	return c == nil || !slices.Contains([]string{waiting, failing, deadlineExceeded}, c.Reason)
}

func (p *picture) controls(pod *corev1.Pod) bool { return metav1.IsControlledBy(pod, p.set) }

func (p *picture) inForeground() bool {
	return slices.Contains(p.set.Finalizers, metav1.FinalizerDeleteDependents)
}

// count counts the pods as they were read (ST-1). Pods that this pass creates do not count. Terminating pods
// count as replicas, ready and available, but not as current or updated.
func (p *picture) count() appsv1.StatefulSetStatus {
	s := appsv1.StatefulSetStatus{
		ObservedGeneration: max(p.set.Generation, p.set.Status.ObservedGeneration), // ST-4
		CurrentRevision:    cmp.Or(p.wayGone, p.current.Name),
		UpdateRevision:     p.asked.Name,
		CollisionCount:     &p.collisions,
		Conditions:         p.set.Status.Conditions, // ST-6
	}
	for _, list := range [][]replica{p.living, p.condemned} {
		for _, r := range list {
			s.Replicas++
			if _, ready := readySince(r.Pod); ready {
				s.ReadyReplicas++
			}
			if p.set.available(r.Pod, p.world.Now) {
				s.AvailableReplicas++
			}
			if terminating(r.Pod) {
				continue
			}
			if revisionOf(r.Pod) == s.CurrentRevision {
				s.CurrentReplicas++
			}
			if revisionOf(r.Pod) == s.UpdateRevision && !p.astray() { // astray: then the target is not the wanted template
				s.UpdatedReplicas++
			}
		}
	}
	return s
}

// astray reports whether the target revision is not that of the set's template. Then no pod is replaced.
func (p *picture) astray() bool { return p.set.Fault != nil || p.unsure != nil }

func (p *picture) templates() (err error) {
	if p.targetTemplate, err = template(p.target); err != nil {
		return err
	}
	p.currentTemplate = p.targetTemplate
	if p.current.Name != p.target.Name {
		p.currentTemplate, err = template(p.current)
	}
	return err
}

// sort divides the pods into living and condemned.
func (p *picture) sort(pods []*corev1.Pod) {
	for _, pod := range pods {
		ordinal, _ := Ordinal(p.set.Name, pod.Name)
		if r := (replica{pod, ordinal}); p.set.has(ordinal) {
			p.living = append(p.living, r)
		} else {
			p.condemned = append(p.condemned, r)
		}
	}
	slices.SortFunc(p.living, func(a, b replica) int { return cmp.Compare(a.ordinal, b.ordinal) })
	slices.SortFunc(p.condemned, func(a, b replica) int { return cmp.Compare(b.ordinal, a.ordinal) })
	if r := p.firstDown(); r != nil {
		p.lowestDown = r.Name
		return
	}
	for _, r := range slices.Backward(p.condemned) {
		if p.set.down(r.Pod, p.world.Now) {
			p.lowestDown = r.Name
			return
		}
	}
}

// at returns the pod of an ordinal of the range. A missing pod has nothing but its name and namespace; it is
// made on demand, since any number of pods may be missing.
func (p *picture) at(ordinal int32) replica {
	k, found := slices.BinarySearchFunc(p.living, ordinal, func(r replica, o int32) int { return cmp.Compare(r.ordinal, o) })
	if found {
		return p.living[k]
	}
	return replica{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.set.Namespace, Name: p.set.podName(ordinal)}}, ordinal}
}

// firstDown returns the lowest ordinal of the range that is missing or not available, or nil.
func (p *picture) firstDown() *replica {
	for o := range p.set.ordinals() {
		if r := p.at(o); p.set.down(r.Pod, p.world.Now) {
			return &r
		}
	}
	return nil
}

// madeFrom returns the template and the revision for the missing pod of an ordinal (RV-11).
func (p *picture) madeFrom(ordinal int32) (*corev1.PodTemplateSpec, *appsv1.ControllerRevision) {
	protected := false
	switch ru := p.set.Spec.UpdateStrategy.RollingUpdate; {
	case p.set.strategy() == appsv1.OnDeleteStatefulSetStrategyType:
	case ru == nil:
		protected = ordinal-p.set.start() < p.set.Status.CurrentReplicas // RV-12
	default:
		protected = !p.set.staged(ordinal)
	}
	if protected {
		return p.currentTemplate, p.current
	}
	return p.targetTemplate, p.target
}

// unavailable counts the ordinals of the range that are down (MU-3).
func (p *picture) unavailable() int {
	n := p.missing()
	for _, r := range p.living {
		if p.set.down(r.Pod, p.world.Now) {
			n++
		}
	}
	return n
}

// missing counts the ordinals of the range without a pod.
func (p *picture) missing() int { return int(p.set.replicas()) - len(p.living) }

// decisive returns the pods that are not available, and that halt the update or roll it back if they stay so.
func (p *picture) decisive() []replica {
	var out []replica
	if c := p.canary(); c != nil && p.enforced() && created(c.Pod) && p.set.down(c.Pod, p.world.Now) {
		out = append(out, *c)
	}
	for _, r := range p.living {
		if p.set.RollsBack && p.mayFail(r) {
			out = append(out, r)
		}
	}
	return out
}
