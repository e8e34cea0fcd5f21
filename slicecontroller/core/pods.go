package core

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// created reports whether the API server has the pod: it gives every pod a phase.
func created(p *corev1.Pod) bool { return p.Status.Phase != "" }

func terminating(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }

// ended reports whether a pod has stopped for good, which no pod of a set ever should.
func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

// readySince returns the time at which a pod became ready, and whether it is ready (AVAIL-1).
func readySince(p *corev1.Pod) (since metav1.Time, ready bool) {
	if p.Status.Phase != corev1.PodRunning {
		return metav1.Time{}, false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime, c.Status == corev1.ConditionTrue
		}
	}
	return metav1.Time{}, false
}

func ready(p *corev1.Pod) bool {
	_, is := readySince(p)
	return is
}

// availableAt returns when a ready pod becomes available, if it is not yet (KEP-2599). It is zero for a pod
// that is available, and for one that will not become available in its present state.
func (s *Set) availableAt(p *corev1.Pod, now time.Time) time.Time {
	since, ready := readySince(p)
	if !ready || s.Spec.MinReadySeconds == 0 || since.IsZero() {
		return time.Time{}
	}
	at := since.Add(time.Duration(s.Spec.MinReadySeconds) * time.Second)
	if !at.After(now) {
		return time.Time{}
	}
	return at
}

// Available reports whether a pod counts as available at a time. A terminating pod does not.
func (s *Set) Available(p *corev1.Pod, now time.Time) bool { return !s.down(p, now) }

// available reports whether a pod has been ready for minReadySeconds (AV-1 to AV-3).
func (s *Set) available(p *corev1.Pod, now time.Time) bool {
	since, ready := readySince(p)
	if !ready || s.Spec.MinReadySeconds == 0 {
		return ready
	}
	return !since.IsZero() && s.availableAt(p, now).IsZero()
}

// down reports whether an ordinal counts as unavailable: its pod is missing, not available or terminating.
func (s *Set) down(p *corev1.Pod, now time.Time) bool {
	return terminating(p) || !s.available(p, now)
}

func revisionOf(p *corev1.Pod) string { return p.Labels[appsv1.StatefulSetRevisionLabel] }

// newPod returns the pod of an ordinal, made from a template (ID-3, ID-5 to ID-7). Where both set a field,
// the set wins over the template. generateName is set although no name is generated: service meshes treat
// pods without it as workloads of their own.
func (s *Set) newPod(template *corev1.PodTemplateSpec, revision string, ordinal int32) *corev1.Pod {
	t := template.DeepCopy()
	name := s.podName(ordinal)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: name, GenerateName: s.Name + "-", Labels: map[string]string{}, Annotations: t.Annotations, Finalizers: t.Finalizers,
			OwnerReferences: []metav1.OwnerReference{s.owner()},
		},
		Spec: t.Spec,
	}
	maps.Copy(p.Labels, t.Labels)
	maps.Copy(p.Labels, identity(p.Name, ordinal))
	p.Labels[appsv1.StatefulSetRevisionLabel] = revision
	p.Spec.Hostname, p.Spec.Subdomain = name, s.Spec.ServiceName
	var volumes []corev1.Volume
	for _, c := range s.Spec.VolumeClaimTemplates {
		volumes = append(volumes, corev1.Volume{Name: c.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.claimName(c.Name, ordinal)},
		}})
	}
	for _, v := range t.Spec.Volumes {
		if !slices.ContainsFunc(s.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == v.Name }) {
			volumes = append(volumes, v)
		}
	}
	p.Spec.Volumes = volumes
	return p
}

// identity returns the labels that identify the pod.
func identity(name string, ordinal int32) map[string]string {
	return map[string]string{appsv1.StatefulSetPodNameLabel: name, appsv1.PodIndexLabel: strconv.Itoa(int(ordinal))}
}

// identified returns the pod with its labels repaired, or nil if they are right (ID-4).
func identified(p *corev1.Pod, ordinal int32) *corev1.Pod {
	want := identity(p.Name, ordinal)
	wrong := false
	for k, v := range want {
		wrong = wrong || p.Labels[k] != v
	}
	if !wrong {
		return nil
	}
	next := p.DeepCopy()
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	maps.Copy(next.Labels, want)
	return next
}

// foreignVolume returns a message if the pod mounts another volume than the claim of its ordinal for one of
// the templates, else "". The controller never repairs that: the volumes of a pod cannot be changed (ID-10).
func (s *Set) foreignVolume(p *corev1.Pod, ordinal int32) string {
	for _, c := range s.Spec.VolumeClaimTemplates {
		right := slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Name == c.Name && v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == s.claimName(c.Name, ordinal)
		})
		if !right {
			return fmt.Sprintf("pod %s does not mount claim %s as volume %s; its next replacement will", p.Name, s.claimName(c.Name, ordinal), c.Name)
		}
	}
	return ""
}

// notReadySince returns when a pod stopped being ready, or when it was created if it never was ready.
func notReadySince(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue && c.LastTransitionTime.After(p.CreationTimestamp.Time) {
			return c.LastTransitionTime.Time
		}
	}
	return p.CreationTimestamp.Time
}
