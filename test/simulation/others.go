package simulation

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// foreignWrite is an action of another writer on an object of the plan, at any moment.
type foreignWrite struct {
	// do carries it out. It reports whether there was an object to act on.
	do func(*world) bool
	// undo restores the previous state. It is nil if the user cannot do so.
	undo func(*world)
	// word is what the user can vouch for instead.
	word plans.Assurance
}

// foreignWrites returns the actions of other writers. Each has a way out: to undo it, or the user's word.
func foreignWrites() map[string]foreignWrite {
	out := map[string]foreignWrite{}
	for _, side := range plans.Sides() {
		set := func(name string, d foreignWrite) { out[name+" the set of the "+string(side)] = d }
		set("the mark is taken off", kept(side, "StatefulSet", setName, plans.Assurance{Readopt: true}, bare))
		set("the retention policy is set back on", kept(side, "StatefulSet", setName, plans.Assurance{}, func(o client.Object) {
			o.(*appsv1.StatefulSet).Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: deletes, WhenScaled: deletes}
		}))
		set("somebody deletes and makes again", remade(side))
		out["the volumes of the "+string(side)+" are set back to Delete"] = volumesOn(side, plans.Assurance{}, func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		})
		out["the volumes of the "+string(side)+" lose their marks"] = volumesOn(side, plans.Assurance{}, func(pv *corev1.PersistentVolume) { plans.Unmark(pv) })
		out["the claims of the "+string(side)+" get a finalizer"] = finalized(side)
		out["a stray claim is made on the "+string(side)] = stray(side)
		out["the budget of the "+string(side)+" is edited"] = kept(side, "PodDisruptionBudget", "web-budget", plans.Assurance{}, func(o client.Object) {
			spec := &o.(*policyv1.PodDisruptionBudget).Spec
			spec.MinAvailable, spec.MaxUnavailable = nil, maxUnavailable(intstr.FromInt32(3)).MaxUnavailable
		})
	}
	return out
}

func bare(o client.Object) { plans.Unmark(o) }

// kept edits an object and remembers it, so that exactly its annotations and its spec can be restored.
func kept(side plans.Side, kind, name string, word plans.Assurance, edit func(client.Object)) foreignWrite {
	var was client.Object
	return foreignWrite{
		word: word,
		do: func(w *world) bool {
			o, ok := w.on[side].objects[key{kind, w.namespace(side), name}]
			if _, asked := annotation(o, plans.BudgetAnnotation); !ok || !stamped(o) || kind == "PodDisruptionBudget" && !asked {
				return false // it is still the user's
			}
			was = clone(o)
			next := clone(o)
			edit(next)
			must(w.on[side].Update(context.TODO(), next))
			return true
		},
		undo: func(w *world) { putBack(w.on[side], was) },
	}
}

func stamped(o client.Object) bool {
	_, ok := plans.Stamped(o)
	return ok
}

func annotation(o client.Object, name string) (v string, ok bool) {
	if o != nil {
		v, ok = o.GetAnnotations()[name]
	}
	return v, ok
}

// putBack restores what an object has lost: its annotations, and its spec except the range.
func putBack(s *store, was client.Object) {
	o, ok := s.objects[keyOf(was)]
	if !ok {
		return
	}
	next := clone(o)
	switch next := next.(type) {
	case *appsv1.StatefulSet:
		next.Spec.PersistentVolumeClaimRetentionPolicy = was.(*appsv1.StatefulSet).Spec.PersistentVolumeClaimRetentionPolicy
		if !stamped(next) {
			next.Annotations = was.GetAnnotations()
		}
	case *policyv1.PodDisruptionBudget:
		next.Spec, next.Annotations = was.(*policyv1.PodDisruptionBudget).Spec, was.GetAnnotations()
	}
	must(s.Update(context.TODO(), next))
}

// remade deletes a set with its pods, and recreates it as the user would: as it was, without our marks.
func remade(side plans.Side) foreignWrite {
	var was *appsv1.StatefulSet
	again := func(w *world) {
		if _, there := get[*appsv1.StatefulSet](w.on[side], w.namespace(side), setName); there {
			return
		}
		next := clone(was)
		plans.Unmark(next)
		next.UID, next.ResourceVersion = "", ""
		must(w.on[side].Create(context.TODO(), next))
		w.rest()
	}
	return foreignWrite{
		word: plans.Assurance{Readopt: true},
		do: func(w *world) bool {
			set, ok := get[*appsv1.StatefulSet](w.on[side], w.namespace(side), setName)
			if !ok || !stamped(set) {
				return false
			}
			was = clone(set)
			must(w.on[side].Delete(context.TODO(), clone(set)))
			w.rest()
			again(w)
			return true
		},
	}
}

// claimed reports whether a volume is bound to a claim that stays.
func claimed(s *store, pv *corev1.PersistentVolume) bool {
	if ref := pv.Spec.ClaimRef; pv.Status.Phase == corev1.VolumeBound && ref != nil {
		claim, ok := get[*corev1.PersistentVolumeClaim](s, ref.Namespace, ref.Name)
		return ok && claim.DeletionTimestamp == nil
	}
	return false
}

// volumesOn edits every volume that the plan protects on a side.
func volumesOn(side plans.Side, word plans.Assurance, edit func(*corev1.PersistentVolume)) foreignWrite {
	var was []*corev1.PersistentVolume
	return foreignWrite{
		word: word,
		do: func(w *world) bool {
			was = nil
			for _, pv := range all[*corev1.PersistentVolume](w.on[side]) {
				if !stamped(pv) || !claimed(w.on[side], pv) { // the disk of a volume without a claim would be destroyed by that very writer
					continue
				}
				was = append(was, clone(pv))
				next := clone(pv)
				edit(next)
				must(w.on[side].Update(context.TODO(), next))
			}
			return len(was) > 0
		},
		undo: func(w *world) {
			for _, pv := range was {
				if now, ok := get[*corev1.PersistentVolume](w.on[side], "", pv.Name); ok {
					next := clone(now)
					next.Annotations, next.Spec.PersistentVolumeReclaimPolicy = pv.Annotations, pv.Spec.PersistentVolumeReclaimPolicy
					must(w.on[side].Update(context.TODO(), next))
				}
			}
		},
	}
}

const foreignFinalizer = "snapshot.storage.kubernetes.io/pvc-as-source-protection"

// finalized adds a finalizer to every claim of a side, as a snapshot in progress does.
func finalized(side plans.Side) foreignWrite {
	each := func(w *world, edit func([]string) []string) (some bool) {
		for _, c := range all[*corev1.PersistentVolumeClaim](w.on[side]) {
			if c.Namespace != w.namespace(side) || c.DeletionTimestamp != nil && !slices.Contains(c.Finalizers, foreignFinalizer) {
				continue
			}
			next := clone(c)
			next.Finalizers = edit(slices.Clone(c.Finalizers))
			w.on[side].put(next)
			some = true
		}
		return some
	}
	return foreignWrite{
		do: func(w *world) bool {
			return each(w, func(f []string) []string { return append(f, foreignFinalizer) })
		},
		undo: func(w *world) {
			each(w, func(f []string) []string {
				return slices.DeleteFunc(f, func(s string) bool { return s == foreignFinalizer })
			})
		},
	}
}

// stray creates a claim on a side, with the name that the next ordinal to arrive there needs.
func stray(side plans.Side) foreignWrite {
	var made types.UID
	// free returns the name of the claim that comes next on the side and is not there: that of the next ordinal may be.
	free := func(w *world) string {
		next, step := w.slice(side).End(), int32(1)
		if side == plans.Destination {
			next, step = w.slice(side).Start-1, -1
		}
		for ; w.plan.Ordinals().Has(next); next += step {
			name := w.plan.ClaimName(plans.Source, "data", next)
			if _, there := get[*corev1.PersistentVolumeClaim](w.on[side], w.namespace(side), name); !there {
				return name
			}
		}
		return ""
	}
	return foreignWrite{
		do: func(w *world) bool {
			name := free(w)
			if name == "" {
				return false
			}
			class := className
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace(side), Name: name, Labels: map[string]string{"app": setName}}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}}
			must(w.on[side].Create(context.TODO(), claim))
			made = claim.UID
			w.rest()
			return true
		},
		undo: func(w *world) {
			for _, c := range all[*corev1.PersistentVolumeClaim](w.on[side]) {
				pv, ok := get[*corev1.PersistentVolume](w.on[side], "", c.Spec.VolumeName)
				mounted := slices.ContainsFunc(all[*corev1.Pod](w.on[side]), func(p *corev1.Pod) bool { return p.Namespace == c.Namespace && storage.Mounts(p, c.Name) })
				safe := !ok || w.disks[diskOf(pv)].claim == "" || !mounted && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
				if c.UID == made && safe { // it may have taken a volume that was reserved for a claim of its name
					must(w.on[side].Delete(context.TODO(), clone(c)))
				}
			}
			w.rest()
		},
	}
}

// crash breaks the application in a pod for as long as the pod lives. The node of the pod stays healthy.
func (w *world) crash(side plans.Side, ordinals ...int32) {
	for _, o := range ordinals {
		next := clone(w.pod(side, o))
		next.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		w.on[side].put(next)
		w.crashing = append(w.crashing, next.UID)
	}
	w.rest()
}

// inFlight reports whether an ordinal is in neither range.
func (w *world) inFlight() bool {
	return w.slice(plans.Destination).Start > w.slice(plans.Source).End()
}
