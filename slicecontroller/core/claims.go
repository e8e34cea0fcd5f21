package core

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// newClaims returns the claims of an ordinal (ID-8), with the owner that the retention policy requires.
func (s *Set) newClaims(ordinal int32) []*corev1.PersistentVolumeClaim {
	var out []*corev1.PersistentVolumeClaim
	for _, t := range s.Spec.VolumeClaimTemplates {
		c := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: s.Namespace, Name: s.claimName(t.Name, ordinal),
				Labels: map[string]string{}, Annotations: maps.Clone(t.Annotations), Finalizers: slices.Clone(t.Finalizers),
			},
			Spec: *t.Spec.DeepCopy(),
		}
		maps.Copy(c.Labels, t.Labels)
		if s.Spec.Selector != nil {
			maps.Copy(c.Labels, s.Spec.Selector.MatchLabels)
		}
		if owner := s.claimOwner(nil); owner != nil {
			c.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		out = append(out, c)
	}
	return out
}

// claimOwner returns the owner with which a claim is deleted (CP-6): the set or, for a condemned pod, that
// pod. It returns nil if the claim is kept.
func (s *Set) claimOwner(condemned *corev1.Pod) *metav1.OwnerReference {
	whenScaled, whenDeleted := s.claimsGo()
	switch {
	case condemned != nil && whenScaled:
		return metav1.NewControllerRef(condemned, corev1.SchemeGroupVersion.WithKind("Pod"))
	case whenDeleted:
		owner := s.owner()
		return &owner
	}
	return nil
}

// reowned returns a claim with the owner that it should have, or nil if no change is needed (CP-6, CP-9).
// conflict reports that the policy requires an owner, and that another controller or a former owner prevents
// it. pod is the pod of the claim's ordinal; condemned means that it is outside the range.
func (s *Set) reowned(c *corev1.PersistentVolumeClaim, pod *corev1.Pod, condemned bool) (next *corev1.PersistentVolumeClaim, conflict bool) {
	var leaving *corev1.Pod
	if condemned {
		leaving = pod
	}
	whenScaled, whenDeleted := s.claimsGo()
	ours := []types.UID{s.UID, pod.UID}
	if s.former(c, pod) != nil {
		return nil, whenScaled || whenDeleted // it will be deleted with an owner that no longer exists
	}
	if other := metav1.GetControllerOfNoCopy(c); other != nil && !slices.Contains(ours, other.UID) {
		return withOwner(c, ours, nil), whenScaled || whenDeleted
	}
	return withOwner(c, ours, s.claimOwner(leaving)), false
}

// former returns the reference of a claim to a former set or pod of the same name, or nil.
func (s *Set) former(c *corev1.PersistentVolumeClaim, pod *corev1.Pod) *metav1.OwnerReference {
	for k, r := range c.OwnerReferences {
		if stranded(r, s.Kind.Kind, s.Name, s.UID) || stranded(r, "Pod", pod.Name, pod.UID) {
			return &c.OwnerReferences[k]
		}
	}
	return nil
}

// stranded reports whether a reference is to a former object of that name. A claim with a reference to a
// former pod is about to be deleted (CP-8).
func stranded(r metav1.OwnerReference, kind, name string, now types.UID) bool {
	return r.Kind == kind && r.Name == name && r.UID != now
}

// claimOf returns the ordinal in the name of a claim (ID-8). A claim of another name does not belong to the
// set, whatever its owners are.
func (s *Set) claimOf(name string) (ordinal int32, named bool) {
	for _, t := range s.Spec.VolumeClaimTemplates {
		if pod, found := strings.CutPrefix(name, t.Name+"-"); found {
			if ordinal, named = Ordinal(s.Name, pod); named {
				return ordinal, true
			}
		}
	}
	return 0, false
}

// withOwner returns the claim with the one wanted reference of ours, or with none, or nil if that is so
// already. References to other objects stay.
func withOwner(c *corev1.PersistentVolumeClaim, ours []types.UID, want *metav1.OwnerReference) *corev1.PersistentVolumeClaim {
	var have []metav1.OwnerReference
	for _, r := range c.OwnerReferences {
		if slices.Contains(ours, r.UID) {
			have = append(have, r)
		}
	}
	switch {
	case want == nil && len(have) == 0:
		return nil
	case want != nil && len(have) == 1 && have[0].UID == want.UID && have[0].APIVersion == want.APIVersion && have[0].Controller != nil && *have[0].Controller:
		return nil
	}
	next := c.DeepCopy()
	next.OwnerReferences = slices.DeleteFunc(next.OwnerReferences, func(r metav1.OwnerReference) bool { return slices.Contains(ours, r.UID) })
	if want != nil {
		next.OwnerReferences = append(next.OwnerReferences, *want)
	}
	return next
}
