package storage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// reimporting hands a disk over between two clusters that share its backend: each side has a PersistentVolume object of its
// own, both Retain, and the one of the side that does not have the ordinal is open to no claim.
type reimporting struct{ keeper }

func byReimport(k keeper) handover {
	v := reimporting{k}
	return handover{missing: v.underivable, prepare: v.sealed, release: v.going, back: v.sealedAgain, create: v.reimport, adopt: v.learn, settle: v.forget}
}

// underivable returns the reason why the object of the receiving side could not be made of the one that leaves, or "".
func (v reimporting) underivable(m plans.StepContext, vol plans.Volume, own *corev1.PersistentVolume) string {
	if m.To() == plans.Destination || v.Plan.Storage.None() || own.Annotations[plans.VolumeAnnotation] != "" {
		return ""
	}
	return fmt.Sprintf("volume %s of the %s is gone, and its fields cannot be derived from the volume object of the other side; recreate it", vol.Name, m.To())
}

// sealed waits until the binder has seen the volume of a wave that is still up: it says that the volume has been released.
func (v reimporting) sealed(m plans.StepContext, pv *corev1.PersistentVolume) plans.Observation {
	if phase := pv.Status.Phase; phase != corev1.VolumeReleased {
		return plans.Wait(reasons.BinderBehind, fmt.Sprintf("volume %s on the %s is %s; waiting for the binder to see that no claim can have it yet", pv.Name, m.To(), cmp.Or(phase, "new")))
	}
	return plans.Done()
}

// sealedAgain seals the volume object of the side that was only about to take the ordinal, in another cluster. A process
// that was fenced may still create its claim there, and the ordinal will be up on the other side (S20).
func (v reimporting) sealedAgain(ctx context.Context, m plans.StepContext, vol plans.Volume) (plans.Observation, error) {
	pv, err := v.volumeOf(ctx, m.From, vol.Name)
	if err != nil || pv == nil || !m.Stamp.Mine(pv) || !v.named(pv.Spec.ClaimRef, m.From, vol) || pv.Spec.ClaimRef.UID != "" {
		return plans.Done(), err // it cannot be had, or is for others to settle
	}
	if why := m.Stamp.Barred(pv); why != "" {
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("volume %s on the %s %s", pv.Name, m.From, why)), nil
	}
	return v.point(m, vol, pv, m.From, vol.Claim), nil
}

// going waits for the pods that mount a claim that is being deleted, and not for the end of the claim: the other side has
// a volume object of its own. The scheduler and the kubelet admit no pod with a claim that is being deleted, so once none mounts it,
// none ever will. The pod of the ordinal counts until its own watch has reported its end: what else mounts the claim
// has been reported by then (S1).
func (v reimporting) going(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	pods, err := v.EveryPod(ctx, m.From)
	if err != nil {
		return plans.Observation{}, err
	}
	if users := Users(pods, claim.Name); users != "" {
		return v.terminating(ctx, m, claim)
	}
	return plans.Done(), nil
}

// reimport creates the volume object of the other cluster from the protected one of the first cluster.
func (v reimporting) reimport(_ context.Context, m plans.StepContext, vol plans.Volume, held *corev1.PersistentVolume) (plans.Observation, error) {
	uid := vol.Claim
	if m.InFlight() {
		uid = ""
	}
	next, why, err := v.rewritten(held, m.To(), RefTo(v.Plan.On(m.To()).Namespace, v.claim(m.To(), vol), uid))
	if err != nil || why != "" {
		return plans.Stop(reasons.VolumeNotTranslated, why), err
	}
	sign(m, vol, next)
	v.label(next)
	return plans.Write(fmt.Sprintf("%s: create volume %s for disk %s", m.To(), next.Name, vol.Handle),
		plans.Undo{}, func(ctx context.Context) error { return writes.Copy(ctx, v.On[m.From], held, v.On[m.To()], next) }), nil
}

// learn returns the write that updates the volume object of the side that takes the ordinal back. The write
// records what became of the disk and of its claim on the other side: the disk itself was expanded, and a
// claim for less than the disk would lose that. There is nothing to learn from a side that was only about to
// take the ordinal.
func (v reimporting) learn(ctx context.Context, m plans.StepContext, vol plans.Volume, pv *corev1.PersistentVolume) (plans.Observation, error) {
	if m.Reversed {
		return plans.Done(), nil
	}
	there, err := v.volumeOf(ctx, m.From, vol.Name)
	if err != nil || there == nil || !m.Stamp.Mine(there) {
		return plans.Done(), err
	}
	next := pv.DeepCopy()
	next.Spec.Capacity, next.Spec.VolumeAttributesClassName = there.Spec.Capacity, there.Spec.VolumeAttributesClassName
	if saved := there.Annotations[plans.ClaimAnnotation]; isClaim(saved) { // else the claim that is saved here is all there is of it (S14)
		next.Annotations[plans.ClaimAnnotation] = saved
	}
	if equality.Semantic.DeepEqual(pv.Spec, next.Spec) && maps.Equal(pv.Annotations, next.Annotations) {
		return plans.Done(), nil
	}
	m.Stamp.Put(next)
	return plans.Write(fmt.Sprintf("volume %s on the %s: size %s, and its claim as it was on the %s", pv.Name, m.To(), next.Spec.Capacity.Storage(), m.From),
		plans.Undo{}, func(ctx context.Context) error { return writes.Change(ctx, v.On[m.To()], pv, next) }), nil
}

// rewritten translates the volume object of one side for the other. If the names differ, the source's object
// is saved on the destination's. It could not be derived from the destination's object again, because two
// names may have become one. why is the reason why there is no such object.
func (v reimporting) rewritten(held *corev1.PersistentVolume, to plans.Side, ref corev1.ObjectReference) (next *corev1.PersistentVolume, why string, err error) {
	if to == plans.Source {
		if kept, ok := held.Annotations[plans.VolumeAnnotation]; ok {
			next, err = recalled(held, kept, ref)
			return next, "", err
		}
		if !v.Plan.Storage.None() {
			return nil, fmt.Sprintf("volume %s is gone, and annotation %s of the destination's volume does not contain a copy of it; recreate it by hand, for claim %s/%s", held.Name, plans.VolumeAnnotation, ref.Namespace, ref.Name), nil
		}
		return VolumeFrom(held, ref, plans.Storage{}), "", nil
	}
	csi, err := AsCSI(held)
	if err != nil {
		return nil, err.Error() + "; define the volume with a csi source", nil //nolint:nilerr // trying again would not mend it
	}
	next = VolumeFrom(csi, ref, v.Plan.Storage)
	if v.Plan.Storage.None() && csi == held {
		return next, "", nil
	}
	was := VolumeFrom(held, *held.Spec.ClaimRef, plans.Storage{})
	plans.Unmark(was)
	raw, err := json.Marshal(was)
	next.Annotations[plans.VolumeAnnotation] = string(raw)
	return next, "", err
}

// forget deletes the volume object of the side that released the ordinal. A live read must show it as Retain
// at that moment: with Delete, the disk itself would be destroyed.
func (v reimporting) forget(ctx context.Context, m plans.StepContext, claim *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	old, err := v.volumeOf(ctx, m.From, claim.Spec.VolumeName)
	if err != nil {
		return plans.Observation{}, err
	}
	if old == nil || !m.Stamp.Mine(old) {
		return plans.Done(), nil
	}
	kept, err := v.Live().Volume(ctx, m.To(), claim.Spec.VolumeName)
	if err != nil {
		return plans.Observation{}, err
	}
	return v.dropVolume(ctx, m, old, kept, claim.Name)
}
