package core

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// newClaims makes the claims of an ordinal (ID-8), with the owner that the retention
// policy asks for.
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

// claimOwner is who a claim goes with (CP-6), or nil: the set, or, once it is condemned,
// the pod.
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

// reowned gives a claim with the owner that it should have, or nil if nothing is to be
// changed (CP-6, CP-9). conflict says that a controller of somebody else's keeps it from
// having one. pod is that of the claim's ordinal, and condemned says that it is outside
// the range.
func (s *Set) reowned(c *corev1.PersistentVolumeClaim, pod *corev1.Pod, condemned bool) (next *corev1.PersistentVolumeClaim, conflict bool) {
	var leaving *corev1.Pod
	if condemned {
		leaving = pod
	}
	whenScaled, whenDeleted := s.claimsGo()
	ours := []types.UID{s.UID, pod.UID}
	if s.former(c, pod) != nil {
		return nil, whenScaled || whenDeleted // it goes with somebody who is gone
	}
	if other := metav1.GetControllerOfNoCopy(c); other != nil && !slices.Contains(ours, other.UID) {
		return withOwner(c, ours, nil), whenScaled || whenDeleted
	}
	return withOwner(c, ours, s.claimOwner(leaving)), false
}

// former is the reference of a claim to a namesake of the set or of the pod that is no more, or nil.
func (s *Set) former(c *corev1.PersistentVolumeClaim, pod *corev1.Pod) *metav1.OwnerReference {
	for k, r := range c.OwnerReferences {
		if stranded(r, s.Kind.Kind, s.Name, s.UID) || stranded(r, "Pod", pod.Name, pod.UID) {
			return &c.OwnerReferences[k]
		}
	}
	return nil
}

// stranded reports whether a reference is to an object of that name that is no more. A
// claim of such a pod is on its way out (CP-8).
func stranded(r metav1.OwnerReference, kind, name string, now types.UID) bool {
	return r.Kind == kind && r.Name == name && r.UID != now
}

// claimOf gives the ordinal that a claim is named after (ID-8). A claim of another name is not the
// set's, whoever owns it.
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

// withOwner gives the claim with one of our references, or none, or nil if that is so
// already. References of others stay.
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
