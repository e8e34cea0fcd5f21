package controller_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

const (
	// quiet is how long nothing may change on a side that counts as being at rest. patience is how long a
	// side may take to come to rest.
	quiet    = 300 * time.Millisecond
	patience = 3 * time.Minute // kube-controller-manager discovers a new kind within two
	// soonAvailable is a value of minReadySeconds that the tests wait for, and
	// neverAvailable is one that they do not.
	soonAvailable, neverAvailable = 1, 3600
)

// rest waits until nothing changes on either side any more, and the statuses agree with the pods.
func (tw *twins) rest() {
	tw.t.Helper()
	end := time.NewTimer(patience)
	defer end.Stop()
	for {
		select {
		case <-tw.sides[0].news:
		case <-tw.sides[1].news:
		case <-end.C:
			tw.t.Fatalf("not at rest after %s: %s; %s", patience, tw.sides[0].unrest(tw.t.Context()), tw.sides[1].unrest(tw.t.Context()))
		case <-time.After(quiet):
			if tw.sides[0].unrest(tw.t.Context())+tw.sides[1].unrest(tw.t.Context()) == "" {
				return
			}
		}
	}
}

// unrest returns why a side is not at rest, or "".
func (s *side) unrest(ctx context.Context) string {
	set, pods, err := s.read(ctx)
	if err != nil {
		return s.name + ": " + err.Error()
	}
	why := cmp.Or(moving(pods), s.missing(ctx, set, pods), s.leaving(ctx, set, pods), s.updating(ctx, set, pods), s.collecting(ctx, pods), s.truncating(ctx, set, pods), untold(set, pods))
	if why == "" {
		return ""
	}
	return s.name + ": " + why
}

// moving names a pod that is starting or terminating.
func moving(pods []corev1.Pod) string {
	for _, p := range pods {
		if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodPending && !stranded(&p) {
			return fmt.Sprintf("pod %s is %s", p.Name, p.Status.Phase)
		}
	}
	return ""
}

// untold returns what the status does not report yet.
func untold(set *appsv1.StatefulSet, pods []corev1.Pod) string {
	ready := int32(0)
	for _, p := range pods {
		if isReady(&p) {
			ready++
		}
	}
	st := set.Status
	if st.ObservedGeneration != set.Generation || st.Replicas != int32(len(pods)) || st.ReadyReplicas != ready {
		return fmt.Sprintf("generation %d, %d pods, %d ready, status %+v", set.Generation, len(pods), ready, st)
	}
	if set.Spec.MinReadySeconds <= soonAvailable && st.AvailableReplicas != ready {
		return fmt.Sprintf("%d pods are ready, and %d available", ready, st.AvailableReplicas)
	}
	return ""
}

// stranded reports whether no node accepts a pod.
func stranded(p *corev1.Pod) bool {
	return len(p.Spec.NodeSelector) > 0 && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	})
}

// missing names a pod that a controller is about to create or recreate: after a failure the
// controller may back off for some time.
func (s *side) missing(ctx context.Context, set *appsv1.StatefulSet, pods []corev1.Pod) string {
	if set.Annotations[refused] != "" {
		return ""
	}
	start := int32(0)
	if set.Spec.Ordinals != nil {
		start = set.Spec.Ordinals.Start
	}
	for o := start; o < start+*set.Spec.Replicas; o++ {
		name := fmt.Sprintf("web-%d", o)
		k := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == name })
		switch {
		case k < 0 && s.waiting(ctx, set, name):
			return "" // a failure also delays the other pods that are created at once
		case k < 0:
			return fmt.Sprintf("pod %s is missing", name)
		case pods[k].Status.Phase == corev1.PodFailed || pods[k].Status.Phase == corev1.PodSucceeded:
			return fmt.Sprintf("pod %s is missing", name)
		case set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement && (!isReady(&pods[k]) || set.Spec.MinReadySeconds == neverAvailable):
			return ""
		}
	}
	return ""
}

// waiting reports whether a claim of a missing pod was deleted and remains.
func (s *side) waiting(ctx context.Context, set *appsv1.StatefulSet, pod string) bool {
	return slices.ContainsFunc(set.Spec.VolumeClaimTemplates, func(t corev1.PersistentVolumeClaim) bool {
		var c corev1.PersistentVolumeClaim
		err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: t.Name + "-" + pod}, &c)
		return err == nil && c.DeletionTimestamp != nil && slices.Contains(c.Finalizers, kept)
	})
}

// stuck reports whether a pod of the range cannot be created, since its former claim remains (3335-08).
func (s *side) stuck(ctx context.Context, set *appsv1.StatefulSet, pods []corev1.Pod) bool {
	for o := range plans.SliceOf(set).All() {
		name := fmt.Sprintf("web-%d", o)
		if !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == name }) && s.waiting(ctx, set, name) {
			return true
		}
	}
	return false
}

// leaving names a pod outside the range whose deletion nothing blocks.
func (s *side) leaving(ctx context.Context, set *appsv1.StatefulSet, pods []corev1.Pod) string {
	start := int32(0)
	if o := set.Spec.Ordinals; o != nil {
		start = o.Start
	}
	held := set.Annotations[refused] != "" || s.stuck(ctx, set, pods) || set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement &&
		(set.Spec.MinReadySeconds == neverAvailable || slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !isReady(&p) }))
	for _, p := range pods {
		ordinal, err := strconv.ParseInt(strings.TrimPrefix(p.Name, "web-"), 10, 32)
		if out := int32(ordinal) < start || int32(ordinal) >= start+*set.Spec.Replicas; err == nil && out && !held {
			return fmt.Sprintf("pod %s is to go", p.Name)
		}
	}
	return ""
}

// updating names a pod whose replacement is due and not blocked: a slow controller is not at rest.
func (s *side) updating(ctx context.Context, set *appsv1.StatefulSet, pods []corev1.Pod) string {
	if set.Annotations[refused] != "" || set.Spec.MinReadySeconds == neverAvailable || set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType || slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !isReady(&p) }) || s.stuck(ctx, set, pods) {
		return ""
	}
	from := 0
	if o := set.Spec.Ordinals; o != nil {
		from = int(o.Start)
	}
	if ru := set.Spec.UpdateStrategy.RollingUpdate; ru != nil && ru.Partition != nil {
		from += int(*ru.Partition)
	}
	for _, p := range pods {
		ordinal, err := strconv.Atoi(strings.TrimPrefix(p.Name, "web-"))
		if err == nil && ordinal >= from && p.Labels[appsv1.StatefulSetRevisionLabel] != set.Status.UpdateRevision {
			return fmt.Sprintf("pod %s is to be replaced", p.Name)
		}
	}
	return ""
}

// collecting names a claim that the garbage collector is about to delete with its pod.
func (s *side) collecting(ctx context.Context, pods []corev1.Pod) string {
	var claims corev1.PersistentVolumeClaimList
	if err := s.List(ctx, &claims, client.InNamespace(s.namespace)); err != nil {
		return err.Error()
	}
	for _, c := range claims.Items {
		owned := slices.ContainsFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool {
			return r.Kind == "Pod" && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == r.UID })
		})
		pod := c.Name[strings.Index(c.Name, "-")+1:]
		used := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == pod }) // then the claim remains as long as the pod
		if (owned || c.DeletionTimestamp != nil) && !used && !slices.Contains(c.Finalizers, kept) {
			return fmt.Sprintf("claim %s is going", c.Name)
		}
	}
	return ""
}

// truncating reports a history that is longer than its limit (RV-7).
func (s *side) truncating(ctx context.Context, set *appsv1.StatefulSet, pods []corev1.Pod) string {
	var all appsv1.ControllerRevisionList
	if err := s.List(ctx, &all, client.InNamespace(s.namespace)); err != nil {
		return err.Error()
	}
	live := map[string]bool{set.Status.CurrentRevision: true, set.Status.UpdateRevision: true}
	for _, p := range pods {
		live[p.Labels[appsv1.StatefulSetRevisionLabel]] = true
	}
	old := slices.DeleteFunc(all.Items, func(r appsv1.ControllerRevision) bool { return live[r.Name] })
	if limit := int(*set.Spec.RevisionHistoryLimit); len(old) > limit {
		return fmt.Sprintf("%d old revisions, expected %d", len(old), limit)
	}
	return ""
}
