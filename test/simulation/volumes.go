package simulation

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// binder is the PV controller: one write on a volume or a claim per call.
func (w *world) binder(s *store) bool {
	if s.name == w.unbound {
		return false
	}
	for claim := range shuffle(w, all[*corev1.PersistentVolumeClaim](s)) {
		if w.syncClaim(s, claim) {
			return true
		}
	}
	for pv := range shuffle(w, all[*corev1.PersistentVolume](s)) {
		if w.syncVolume(s, pv) {
			return true
		}
	}
	return false
}

func (w *world) syncClaim(s *store, claim *corev1.PersistentVolumeClaim) bool {
	if claim.Spec.VolumeName == "" {
		return claim.DeletionTimestamp == nil && w.choose(s, claim)
	}
	pv, ok := get[*corev1.PersistentVolume](s, "", claim.Spec.VolumeName)
	misbound := ok && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID != claim.UID
	switch {
	case isCompleted(claim) && (!ok || misbound):
		return setPhase(s, claim, corev1.ClaimLost)
	case !ok:
		return false
	case pv.Spec.ClaimRef == nil || names(pv, claim) && pv.Spec.ClaimRef.UID == "":
		if !suits(pv, claim) {
			return false
		}
		next := clone(pv)
		next.Spec.ClaimRef = refTo(claim)
		s.put(next)
		return true
	case misbound:
		return false // looked at again when the volume is free, which may never happen
	case pv.Status.Phase != corev1.VolumeBound:
		return setVolumePhase(s, pv, corev1.VolumeBound)
	default: // a claim that was lost is found again
		return setPhase(s, claim, corev1.ClaimBound)
	}
}

// suits reports whether a volume may be bound to a claim that names it: one that is not reserved for it, if it is of its
// class. A claim that had it before gets it back.
func suits(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return pv.Spec.ClaimRef != nil || isCompleted(claim) || pv.Spec.StorageClassName == classOf(claim)
}

// isCompleted reports whether a claim has been bound before.
func isCompleted(claim *corev1.PersistentVolumeClaim) bool {
	_, is := claim.Annotations[bindCompleted]
	return is
}

const bindCompleted = "pv.kubernetes.io/bind-completed"

func classOf(claim *corev1.PersistentVolumeClaim) string {
	if claim.Spec.StorageClassName == nil {
		return ""
	}
	return *claim.Spec.StorageClassName
}

func names(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return pv.Spec.ClaimRef.Namespace == claim.Namespace && pv.Spec.ClaimRef.Name == claim.Name
}

func refTo(claim *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
}

func setPhase(s *store, claim *corev1.PersistentVolumeClaim, phase corev1.PersistentVolumeClaimPhase) bool {
	if claim.Status.Phase == phase {
		return false
	}
	next := clone(claim)
	next.Status.Phase = phase
	if phase == corev1.ClaimBound {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, bindCompleted, "yes")
	}
	s.put(next)
	return true
}

func setVolumePhase(s *store, pv *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) bool {
	if pv.Status.Phase == phase {
		return false
	}
	next := clone(pv)
	next.Status.Phase = phase
	s.put(next)
	return true
}

// choose finds a volume for a claim that names none: one that is reserved for it, any free one of its class, or a new and
// EMPTY one, if there is a provisioner for the class. Thus a claim that the wrong process has created is detected at once.
func (w *world) choose(s *store, claim *corev1.PersistentVolumeClaim) bool {
	for _, pv := range all[*corev1.PersistentVolume](s) {
		ref := pv.Spec.ClaimRef
		if pv.Spec.StorageClassName != classOf(claim) || pv.DeletionTimestamp != nil {
			continue
		}
		if ref == nil && pv.Status.Phase == corev1.VolumeAvailable || ref != nil && names(pv, claim) && (ref.UID == "" || ref.UID == claim.UID) {
			next := clone(claim)
			next.Spec.VolumeName = pv.Name
			s.put(next)
			return true
		}
	}
	if classOf(claim) != className {
		return false
	}
	handle := fmt.Sprintf("disk-%d", len(w.disks)+1)
	w.disks[handle] = disk{}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + handle, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "sim"}}}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	pv.Spec.StorageClassName = className
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "sim", VolumeHandle: handle}
	pv.Spec.ClaimRef = refTo(claim)
	must(s.Create(context.TODO(), pv))
	return true
}

func (w *world) syncVolume(s *store, pv *corev1.PersistentVolume) bool {
	ref := pv.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return setVolumePhase(s, pv, corev1.VolumeAvailable)
	}
	claim, ok := get[*corev1.PersistentVolumeClaim](s, ref.Namespace, ref.Name)
	if !ok || claim.UID != ref.UID {
		return setVolumePhase(s, pv, corev1.VolumeReleased)
	}
	return false
}

// provisioner destroys the disk of a volume whose policy is Delete when its claim is gone, and also when the
// volume object is deleted.
func (w *world) provisioner(s *store) bool {
	for pv := range shuffle(w, all[*corev1.PersistentVolume](s)) {
		going := pv.DeletionTimestamp != nil && pv.Status.Phase != corev1.VolumeBound
		wanted := pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete
		switch {
		case !wanted && (going || pv.Status.Phase == corev1.VolumeReleased):
			d := w.disks[diskOf(pv)]
			d.destroyed = true
			w.disks[diskOf(pv)] = d
			s.remove(keyOf(pv))
			return true
		case going:
			s.remove(keyOf(pv))
			return true
		}
	}
	return false
}

// protection ends a claim that is being deleted once no pod that has a node names it: one without a node gets none until
// the claim is gone.
func (w *world) protection(s *store) bool {
	for claim := range shuffle(w, all[*corev1.PersistentVolumeClaim](s)) {
		mounted := slices.ContainsFunc(all[*corev1.Pod](s), func(p *corev1.Pod) bool {
			return p.Namespace == claim.Namespace && p.Spec.NodeName != "" && slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
				return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
			})
		})
		protected := slices.Index(claim.Finalizers, "kubernetes.io/pvc-protection")
		if claim.DeletionTimestamp != nil && !mounted && protected >= 0 {
			next := clone(claim)
			next.Finalizers = slices.Delete(next.Finalizers, protected, protected+1)
			s.put(next)
			return true
		}
	}
	return false
}
