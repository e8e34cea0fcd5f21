//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// slice returns the data application as a StatefulSetSlice of the west.
func (s fixture) slice(t *testing.T, change func(spec map[string]any)) *unstructured.Unstructured {
	t.Helper()
	raw, err := json.Marshal(s.dataSet(cluster.SharedClass))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetAPIVersion("apps.stsmigrate.dev/v1alpha1")
	o.SetKind("StatefulSetSlice")
	delete(o.Object, "status")
	spec, _ := o.Object["spec"].(map[string]any)
	change(spec)
	return o
}

// sliced returns a fixture of a slice in the west that does not move.
func sliced(t *testing.T, namespace string, replicas int32) fixture {
	t.Helper()
	s := between(t, namespace)
	s.from, s.replicas = s.to, replicas
	return s
}

func patched(t *testing.T, s fixture, o *unstructured.Unstructured, patch string) {
	t.Helper()
	if err := s.to.Client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// The template has an image that no node has. The update halts at the highest ordinal, and nothing
// else is touched. A corrected template repairs the set without a manual step, and the data is
// unchanged (3541-42).
func TestAnEnforcedUpdateRecoversFromABadImage(t *testing.T) {
	shipped(t)
	s := sliced(t, "mended", 3)
	o := s.slice(t, func(spec map[string]any) {
		spec["podManagementPolicy"] = "OrderedReady"
		spec["updateStrategy"] = map[string]any{"type": "EnforcedRollingUpdate"}
	})
	s.create(t, append(s.around(true, 8080), o)...)
	s.available(t, s.places()[0])
	s.acquainted(t)
	before := s.states(t.Context())
	good, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	bad := bytes.ReplaceAll(mustJSON(t, good), []byte(":e2e"), []byte(":missing"))
	patched(t, s, o, `{"spec":{"template":{"spec":{"containers":`+string(bad)+`}}}}`)
	waiting := func(ctx context.Context) error {
		var pod corev1.Pod
		if err := s.to.Client.Get(ctx, client.ObjectKey{Namespace: s.source, Name: "web-2"}, &pod); err != nil {
			return err
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Waiting != nil && strings.Contains(c.State.Waiting.Reason, "ErrImage") {
				return nil
			}
		}
		return fmt.Errorf("pod web-2 is %s", pod.Status.Phase)
	}
	eventually(t, 5*time.Minute, "the highest pod has no image", waiting)
	if states := s.states(t.Context()); len(states) != 2 {
		t.Errorf("%d members answer, expected that the other two do", len(states))
	}
	patched(t, s, o, `{"spec":{"template":{"metadata":{"annotations":{"mended":"yes"}},"spec":{"containers":`+string(mustJSON(t, good))+`}}}}`)
	eventually(t, 5*time.Minute, "all pods have the mended template", func(ctx context.Context) error {
		pods := s.pods(ctx)
		for _, p := range pods {
			if p.Annotations["mended"] != "yes" {
				return fmt.Errorf("pod %s has not", p.Name)
			}
		}
		return nil
	})
	s.available(t, s.places()[0])
	s.nothingLost(t, before)
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A pod is available when it has been ready for minReadySeconds without a crash of its container.
// The initial delay of the probe is added to that (2599-02, 2599-04).
func TestAvailabilityOfRealPodsIsATime(t *testing.T) {
	shipped(t)
	s := sliced(t, "timed", 1)
	const delay, ready = 3, 5
	o := s.slice(t, func(spec map[string]any) {
		spec["minReadySeconds"] = int64(ready)
		containers, _, _ := unstructured.NestedSlice(spec, "template", "spec", "containers")
		c, _ := containers[0].(map[string]any)
		_ = unstructured.SetNestedField(c, int64(delay), "readinessProbe", "initialDelaySeconds")
		_ = unstructured.SetNestedSlice(spec, containers, "template", "spec", "containers")
	})
	s.create(t, append(s.around(true, 8080), o)...)
	ran := func() time.Duration { // from the start of the container until the pod is available
		s.available(t, s.places()[0])
		at := time.Now()
		pods := s.pods(t.Context())
		if len(pods) != 1 || len(pods[0].Status.ContainerStatuses) != 1 || pods[0].Status.ContainerStatuses[0].State.Running == nil {
			t.Fatalf("its pod is not running: %v", pods)
		}
		return at.Sub(pods[0].Status.ContainerStatuses[0].State.Running.StartedAt.Time)
	}
	if took := ran(); took < (delay+ready-1)*time.Second { // the kubelet's times have whole seconds
		t.Errorf("available %s after the container began, expected %d s and %d s", took, delay, ready)
	}
	if err := s.places()[0].ask(t.Context(), "POST", "web-0", "crash", nil, nil); err == nil {
		t.Error("the container was to crash, and answered")
	}
	eventually(t, 5*time.Minute, "the pod counts no longer", func(ctx context.Context) error {
		if set, err := s.places()[0].find(ctx, s.set); err != nil || set.Status.AvailableReplicas > 0 {
			return fmt.Errorf("%v available: %w", set, err)
		}
		return nil
	})
	if took := ran(); took < (delay+ready-1)*time.Second {
		t.Errorf("available %s after the crash, expected %d s and %d s", took, delay, ready)
	}
}

// stateless returns the template of the data application with folders that end with the pod.
func (s fixture) stateless() corev1.PodTemplateSpec {
	set := s.dataSet(cluster.SharedClass)
	pod := set.Spec.Template
	for _, v := range set.Spec.VolumeClaimTemplates {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	return pod
}

// A pod of a slice is counted as ready and as available at the same moments as the pod of a
// Deployment, a ReplicaSet and a DaemonSet: after it began, after its crash, and after the restart
// (2599-07).
func TestAvailabilityIsThatOfTheOtherControllers(t *testing.T) {
	shipped(t)
	s := sliced(t, "compared", 1)
	const patience = 10
	pod := s.stateless()
	selected := func(kind string) (metav1.ObjectMeta, *metav1.LabelSelector, corev1.PodTemplateSpec) {
		labels := map[string]string{"app": s.set, "of": strings.ToLower(kind)}
		template := *pod.DeepCopy()
		template.Labels = labels
		return metav1.ObjectMeta{Namespace: s.source, Name: strings.ToLower(kind)}, &metav1.LabelSelector{MatchLabels: labels}, template
	}
	deployment, replicaSet, daemonSet := &appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.DaemonSet{}
	deployment.ObjectMeta, deployment.Spec.Selector, deployment.Spec.Template = selected("Deployment")
	deployment.Spec.MinReadySeconds = patience
	replicaSet.ObjectMeta, replicaSet.Spec.Selector, replicaSet.Spec.Template = selected("ReplicaSet")
	replicaSet.Spec.MinReadySeconds = patience
	daemonSet.ObjectMeta, daemonSet.Spec.Selector, daemonSet.Spec.Template = selected("DaemonSet")
	daemonSet.Spec.MinReadySeconds = patience
	daemonSet.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: s.to.Name + "-worker"}
	slice := s.slice(t, func(spec map[string]any) {
		spec["minReadySeconds"] = int64(patience)
		delete(spec, "volumeClaimTemplates")
		var template map[string]any
		if err := json.Unmarshal(mustJSON(t, pod), &template); err != nil {
			t.Fatal(err)
		}
		spec["template"] = template
	})
	s.create(t)
	counted := map[string]func() []string{}
	for kind, o := range map[string]client.Object{"Deployment": deployment, "ReplicaSet": replicaSet, "DaemonSet": daemonSet, "StatefulSetSlice": slice} {
		if err := s.to.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if kind != "StatefulSetSlice" { // it is removed as every set is
			t.Cleanup(func() {
				if err := s.to.Client.Delete(context.WithoutCancel(t.Context()), o, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
					t.Error(err)
				}
			})
		}
		counted[kind] = s.counts(t, o, kind)
	}
	once := []string{"ready 0, available 0", "ready 1, available 0", "ready 1, available 1"}
	until := func(what string, expected []string) {
		t.Helper()
		eventually(t, 5*time.Minute, what, func(context.Context) error {
			for kind, seen := range counted {
				if got := seen(); !slices.Equal(got, expected) {
					return fmt.Errorf("the pod of the %s was counted as %q, expected %q", kind, got, expected)
				}
			}
			return nil
		})
	}
	until("all pods are available", once)
	for _, p := range s.pods(t.Context()) {
		if err := s.places()[0].ask(t.Context(), "POST", p.Name, "crash", nil, nil); err == nil {
			t.Errorf("the container of %s was to crash, and answered", p.Name)
		}
	}
	until("all pods are available again", append(once, once...))
}

// counts collects what the status of an object says about its pods. Repetitions are left out.
func (s fixture) counts(t *testing.T, o client.Object, kind string) func() []string {
	t.Helper()
	group := map[bool]string{true: "apps.stsmigrate.dev/v1alpha1", false: "apps/v1"}[kind == "StatefulSetSlice"]
	fields := map[bool][2]string{true: {"numberReady", "numberAvailable"}, false: {"readyReplicas", "availableReplicas"}}[kind == "DaemonSet"]
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(group)
	list.SetKind(kind + "List")
	watching, err := client.NewWithWatch(s.to.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := watching.Watch(t.Context(), list, client.InNamespace(s.source), client.MatchingFields{"metadata.name": o.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	var seen []string
	return func() []string {
		for {
			select {
			case e, open := <-w.ResultChan():
				if !open {
					t.Fatalf("the watch of %s ended", kind)
				}
				found, ok := e.Object.(*unstructured.Unstructured)
				if !ok || e.Type == watch.Deleted {
					t.Fatalf("the watch of %s: %v", kind, e)
				}
				ready, _, _ := unstructured.NestedInt64(found.Object, "status", fields[0])
				available, _, _ := unstructured.NestedInt64(found.Object, "status", fields[1])
				if said := fmt.Sprintf("ready %d, available %d", ready, available); len(seen) == 0 || seen[len(seen)-1] != said {
					seen = append(seen, said)
				}
			default:
				return seen
			}
		}
	}
}

// No deletion during an update, and none during scaling in order, leaves fewer pods available than
// maxUnavailable allows; a pod counts when it has been ready for minReadySeconds (961-32, 961-33).
func TestUpdatesOfRealPodsKeepMaxUnavailable(t *testing.T) {
	shipped(t)
	for policy, name := range map[string]string{"OrderedReady": "updated-in-order", "Parallel": "updated-at-once"} {
		t.Run(policy, func(t *testing.T) {
			s := sliced(t, name, 5)
			const patience, unavailable = 4, 2
			o := s.slice(t, func(spec map[string]any) {
				spec["minReadySeconds"], spec["podManagementPolicy"] = int64(patience), policy
				spec["updateStrategy"] = map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": int64(unavailable)}}
			})
			s.create(t, append(s.around(true, 8080), o)...)
			s.available(t, s.places()[0])
			s.acquainted(t)
			before, deletions := s.states(t.Context()), s.deletions(t, patience*time.Second)
			patched(t, s, o, `{"spec":{"template":{"metadata":{"annotations":{"updated":"yes"}}}}}`)
			eventually(t, 5*time.Minute, "all pods have the new template", func(ctx context.Context) error {
				for _, p := range s.pods(ctx) {
					if p.Annotations["updated"] != "yes" {
						return fmt.Errorf("pod %s has not", p.Name)
					}
				}
				return nil
			})
			s.available(t, s.places()[0])
			most := 0
			all := deletions()
			for _, d := range all {
				most = max(most, len(d.others)-len(d.available)+1)
				if len(d.available) < int(s.replicas)-unavailable {
					t.Errorf("%s was deleted while only %v were available", d.pod, d.available)
				}
			}
			if len(all) != int(s.replicas) || most != unavailable {
				t.Errorf("%d pods were deleted, %d at once, expected %d and %d", len(all), most, s.replicas, unavailable)
			}
			s.nothingLost(t, before)
			if policy == "OrderedReady" {
				s.scaledInOrder(t, o, deletions)
			}
		})
	}
}

// scaledInOrder takes a pod away while another one is not available, which has to be waited for.
func (s fixture) scaledInOrder(t *testing.T, o *unstructured.Unstructured, deletions func() []deletion) {
	t.Helper()
	if err := s.places()[0].ask(t.Context(), "POST", s.set+"-0", "crash", nil, nil); err == nil {
		t.Error("the container was to crash, and answered")
	}
	eventually(t, 5*time.Minute, "the pod counts no longer", func(ctx context.Context) error {
		if set, err := s.places()[0].find(ctx, s.set); err != nil || set.Status.AvailableReplicas == s.replicas {
			return fmt.Errorf("%v: %w", set, err)
		}
		return nil
	})
	patched(t, s, o, fmt.Sprintf(`{"spec":{"replicas":%d}}`, s.replicas-1))
	s.replicas--
	eventually(t, 5*time.Minute, "the pod is gone", func(ctx context.Context) error {
		if pods := s.pods(ctx); len(pods) != int(s.replicas) {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	all := deletions()
	if len(all) != 1 || len(all[0].available) != int(s.replicas) {
		t.Errorf("expected one deletion, with %d others available: %+v", s.replicas, all)
	}
}

// deletion is one pod that was deleted, with the others at that moment.
type deletion struct {
	pod               string
	others, available []string
}

// deletions collects the deletions of the set's pods. A call returns those since the last one, when the watch has
// shown all that the pods are now.
func (s fixture) deletions(t *testing.T, patience time.Duration) func() []deletion {
	t.Helper()
	watching, err := client.NewWithWatch(s.to.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := watching.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(s.source), client.MatchingLabels{"app": s.set})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	there := map[string]*corev1.Pod{}
	current := func() bool {
		pods := s.pods(t.Context())
		return len(pods) == len(there) && !slices.ContainsFunc(pods, func(p corev1.Pod) bool {
			return there[p.Name] == nil || there[p.Name].ResourceVersion != p.ResourceVersion
		})
	}
	return func() (all []deletion) {
		for late := time.After(time.Minute); !current(); {
			var e watch.Event
			select {
			case e = <-w.ResultChan():
			case <-late:
				t.Fatalf("the watch does not show what the pods are: %v", slices.Sorted(maps.Keys(there)))
			}
			pod, ok := e.Object.(*corev1.Pod)
			if !ok {
				t.Fatalf("the watch of the pods ended: %v", e)
			}
			was := there[pod.Name]
			if there[pod.Name] = pod; e.Type == watch.Deleted {
				delete(there, pod.Name)
			}
			if pod.DeletionTimestamp == nil || was != nil && was.DeletionTimestamp != nil {
				continue
			}
			all = append(all, deleted(pod, there, patience))
		}
		return all
	}
}

// deleted returns the deletion of a pod beside others.
func deleted(pod *corev1.Pod, there map[string]*corev1.Pod, patience time.Duration) deletion {
	d := deletion{pod: pod.Name}
	at := pod.DeletionTimestamp.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
	for name, other := range there {
		if name == pod.Name {
			continue
		}
		d.others = append(d.others, name)
		if other.DeletionTimestamp == nil && readyFor(other, at) >= patience-time.Second { // both times have whole seconds
			d.available = append(d.available, name)
		}
	}
	return d
}

// readyFor returns for how long a pod had been ready.
func readyFor(pod *corev1.Pod, at time.Time) time.Duration {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return at.Sub(c.LastTransitionTime.Time)
		}
	}
	return -1
}

// nothingLost checks that the members have all records of earlier states.
func (s fixture) nothingLost(t *testing.T, before map[string]memberState) {
	t.Helper()
	h := observed{from: s.source, records: map[string]map[string]int{}, wrong: map[string]bool{}}
	for _, states := range []map[string]memberState{before, s.states(t.Context())} {
		for pod, state := range states {
			h.take(pod, state)
		}
	}
	for w := range h.wrong {
		t.Error(w)
	}
}

// A set with a start ordinal goes from the built-in controller to the other one and back: no process
// restarts, and each member keeps its volumes (3335-61).
func TestASetWithDataChangesItsController(t *testing.T) {
	shipped(t)
	s := sliced(t, "adopted", 3)
	s.start = 2
	set := s.dataSet(cluster.AttachedClass)
	set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: s.start}
	s.create(t, append(s.around(true, 8080), set)...)
	s.available(t, s.places()[0])
	s.acquainted(t)
	before, running := s.states(t.Context()), s.processes(t)
	for _, what := range []string{s.set, "stss/" + s.set} {
		out, err := command("", suite.binary, "adopt", what, "--yes", "-n", s.source, "--kubeconfig", s.to.Kubeconfig)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		s.available(t, s.places()[0])
		if now := s.processes(t); !slices.Equal(now, running) {
			t.Errorf("after adopt %s the processes are %v, expected %v", what, now, running)
		}
		s.nothingLost(t, before)
	}
}

// processes returns the identity of the pods' containers, in order.
func (s fixture) processes(t *testing.T) (all []string) {
	t.Helper()
	for _, p := range s.pods(t.Context()) {
		for _, c := range p.Status.ContainerStatuses {
			all = append(all, p.Name+" "+c.ContainerID)
		}
	}
	slices.Sort(all)
	return all
}
