package simulation

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// A stranger is a pod of another workload that names a claim of the set: a backup that waits for the claim, or one that
// comes at any time.

// nightly is the name and the UID of the Job that owns strangers.
const nightly = "nightly"

// stranger makes a pod on a side that mounts the claim of an ordinal, as a Job of a CronJob does.
func (w *world) stranger(side plans.Side, ordinal int32) *corev1.Pod {
	claim := w.plan.ClaimName(plans.Source, w.options.Templates[0], ordinal)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace(side), Name: fmt.Sprintf("%s-%d-of-%s", nightly, w.version(), claim)}}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: nightly, UID: nightly, Controller: new(true)}}
	pod.Spec.Containers = []corev1.Container{{Name: "backup"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}}
	must(w.on[side].Create(context.TODO(), pod))
	return pod
}

// dismiss deletes the pods of other workloads, as a user does who is told to.
func (w *world) dismiss() {
	for _, s := range w.stores {
		for _, p := range all[*corev1.Pod](s) {
			if strings.HasPrefix(p.Name, nightly) && p.DeletionTimestamp == nil {
				must(s.Delete(context.TODO(), clone(p)))
			}
		}
	}
}

// strangers returns the pods of other workloads on a side that name a claim and have not ended.
func (w *world) strangers(side plans.Side, claim string) (out []*corev1.Pod) {
	for _, p := range all[*corev1.Pod](w.on[side]) {
		if p.Namespace == w.namespace(side) && !w.plan.HasPod(side, p.Name) && storage.Mounts(p, claim) && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded {
			out = append(out, p)
		}
	}
	return out
}

// theirsAlone is S20: no disk can be had by claims of both sides, so that no pod of one side can mount the disk of an
// ordinal of the other.
func (w *world) theirsAlone() {
	for o := range w.plan.Ordinals().All() {
		for _, t := range w.options.Templates {
			name := w.plan.ClaimName(plans.Source, t, o)
			if disk := w.diskFor(plans.Source, name); disk != "" && disk == w.diskFor(plans.Destination, name) && !w.left(name) {
				w.fail("S20", "%s is bound to claims %s of both sides", disk, name)
			}
		}
	}
}

// diskFor returns the disk that a pod on a side gets by the name of a claim, or "".
func (w *world) diskFor(side plans.Side, claim string) string {
	c, ok := get[*corev1.PersistentVolumeClaim](w.on[side], w.namespace(side), claim)
	if !ok || c.DeletionTimestamp != nil || c.Status.Phase != corev1.ClaimBound {
		return ""
	}
	pv, ok := get[*corev1.PersistentVolume](w.on[side], "", c.Spec.VolumeName)
	if !ok {
		return ""
	}
	return diskOf(pv)
}

// alone is S20 at the moments at which an engine can break it: it makes no claim, and lets no set have one, that a pod
// of another workload waits for. Such pods come between two passes, so that a pass that reads live has seen them.
func (r *process) alone(s *store, o client.Object, before plans.Slice) {
	w := r.w
	if w.options.Lag || r.pending != nil || r.pause != nil {
		return
	}
	for _, side := range plans.Sides() {
		if w.on[side] != s || w.namespace(side) != o.GetNamespace() {
			continue
		}
		for ordinal := range w.plan.Ordinals().All() {
			for _, t := range w.options.Templates {
				name := w.plan.ClaimName(plans.Source, t, ordinal)
				if _, claim := o.(*corev1.PersistentVolumeClaim); claim && o.GetName() != name || !claim && !w.gains(side, before, ordinal) || w.left(name) {
					continue
				}
				for _, p := range w.strangers(side, name) {
					w.fail("S20", "%s of %s while pod %s of another workload names claim %s", kindOf(o), o.GetName(), p.Name, name)
				}
			}
		}
	}
}

// gains reports whether a side has an ordinal that it had not before.
func (w *world) gains(side plans.Side, before plans.Slice, ordinal int32) bool {
	return !before.Has(ordinal) && w.slice(side).Has(ordinal)
}
