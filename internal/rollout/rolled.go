package rollout

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// Rolled is the progress of the update of a set.
type Rolled struct {
	// Done is true if nothing is waited for. Summary then describes the result.
	Done    bool
	Summary string
	// Stuck is the reason why the update does not continue by itself, or "".
	Stuck string
	// Waits lists what is waited for: a sentence about the set, and then one for each pod.
	Waits []string
	// Notes lists other facts about the set.
	Notes []string
}

// rolling is a set whose update is examined.
type rolling struct {
	plans.Ref
	set    *appsv1.StatefulSet
	paused bool
	// conditions are those of a slice: a StatefulSet has none.
	conditions []metav1.Condition
	pods       map[string]*corev1.Pod
	// left are the ordinals that a slice leaves out.
	left []int32
	// again has the flags of the next command.
	again string
}

// Watch signals w whenever the set, or a pod of its namespace, has changed, until ctx ends.
func (r Rollout) Watch(ctx context.Context, w *clusters.ChangeSignal, on *clusters.Watches) {
	w.Follow(ctx, on, plans.Source, r.Set.Namespace, clusters.Kinds{"Pod": {Version: "v1", Resource: "pods"}, "StatefulSet": clusters.ResourceOf(r.Set)})
}

// Look reads the progress of the update of the set. It fails if the set does not exist.
func (r Rollout) Look(ctx context.Context) (Rolled, error) {
	seen, err := r.see(ctx)
	if err != nil {
		return Rolled{}, err
	}
	return seen.judge(), nil
}

func (r Rollout) see(ctx context.Context) (*rolling, error) {
	seen := &rolling{Ref: r.Set, pods: map[string]*corev1.Pod{}, again: r.Again}
	var err error
	if r.Set.IsSlice() {
		var slice v1alpha1.StatefulSetSlice
		found, err := clusters.FoundSet(&slice, r.Set, r.On.Get(ctx, client.ObjectKey{Namespace: r.Set.Namespace, Name: r.Set.Name}, &slice))
		if err != nil {
			return nil, err
		}
		if found != nil {
			seen.set, seen.paused, seen.conditions, seen.left = slice.Native(), slice.Spec.Paused, slice.Status.Conditions, slice.Spec.ReserveOrdinals
		}
	} else if seen.set, err = clusters.ReadSet(ctx, r.On, r.Set); err != nil {
		return nil, err
	}
	if seen.set == nil {
		return nil, fmt.Errorf("%s does not exist: check name, --namespace and --context", r.Set.Set())
	}
	if was, held := seen.set.Annotations[pausedFrom]; held && !r.Set.IsSlice() {
		seen.paused = true
		seen.aim(was)
	}
	selector, err := metav1.LabelSelectorAsSelector(seen.set.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("%s: its selector: %w", r.Set.Set(), err)
	}
	var pods corev1.PodList
	if err := r.On.List(ctx, &pods, client.InNamespace(r.Set.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", r.Set.Namespace, err)
	}
	for _, pod := range pods.Items {
		if metav1.IsControlledBy(&pod, seen.set) {
			seen.pods[pod.Name] = &pod
		}
	}
	return seen, nil
}

// aim sets on a paused StatefulSet the partition that it gets when it resumes.
func (r *rolling) aim(was string) {
	ru := r.set.Spec.UpdateStrategy.RollingUpdate
	if ru == nil || ru.Partition == nil || int64(*ru.Partition) != protectsAll {
		return
	}
	ru.Partition = nil
	if partition, err := strconv.ParseInt(was, 10, 32); err == nil {
		next := int32(partition)
		ru.Partition = &next
	}
}

func (r *rolling) judge() Rolled {
	out := Rolled{Notes: r.notes()}
	if r.set.DeletionTimestamp != nil {
		out.Stuck = r.Set() + " is being deleted"
		return out
	}
	stalled := meta.FindStatusCondition(r.conditions, "Stalled")
	if stalled != nil && stalled.Status != metav1.ConditionTrue {
		stalled = nil
	}
	unseen := r.set.Status.ObservedGeneration < r.set.Generation || r.set.Status.UpdateRevision == ""
	if unseen && (stalled == nil || stalled.ObservedGeneration < r.set.Generation) {
		out.Waits = []string{fmt.Sprintf("%s: its controller has not seen generation %d yet", r.Set(), r.set.Generation)}
		if stalled != nil {
			out.Waits[0] += "; it reported for an earlier generation: " + stalled.Message
		}
		return out
	}
	if stalled != nil {
		out.Stuck = r.Set() + ": " + stalled.Message
		return out
	}
	waits, outdated, updated := r.podsWaitedFor()
	n := int(r.set.Status.AvailableReplicas)
	all := int(plans.SliceOf(r.set).Replicas)
	if len(outdated) > 0 && r.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		out.Stuck = fmt.Sprintf("%s has the update strategy OnDelete, and replaces no pod by itself: delete those that are not of revision %s: %s", r.Set(), r.set.Status.UpdateRevision, strings.Join(outdated, " "))
		return out
	}
	if len(waits) == 0 && n >= all {
		out.Done, out.Summary = true, fmt.Sprintf("%s is rolled out: %d of %d pods are of revision %s, and all are available", r.Set(), updated, all, r.set.Status.UpdateRevision)
		return out
	}
	first := fmt.Sprintf("%s: %d of %d pods are of revision %s, %d of %d are available", r.Set(), updated, all, r.set.Status.UpdateRevision, n, all)
	if r.paused {
		first += "; it is paused, and replaces no pod until it is resumed: stsmigrate rollout resume " + r.Typed() + r.again
	}
	out.Waits = slices.Concat([]string{first}, r.refused(), waits)
	return out
}

// refused returns what keeps a slice from going on, and is neither the state of a pod nor a fault of the spec: a budget
// that refuses an eviction, or requests that fail.
func (r *rolling) refused() (out []string) {
	for _, c := range r.conditions {
		if c.Type == "EvictionRefused" && c.Status == metav1.ConditionTrue || c.Type == "Progressing" && c.Reason == "Failing" {
			out = append(out, c.Message)
		}
	}
	return out
}

// maxAbsent is of how many pods that do not exist it is said that they are waited for. The range may have been mistyped.
const maxAbsent = 100

// ordinals returns those of the set's range, without those that it leaves out: the lowest, so many as there are pods, and
// some more.
func (r *rolling) ordinals() []int32 {
	all := plans.SliceOf(r.set)
	var out []int32
	for o := all.Start; len(out) < min(int(all.Replicas), len(r.pods)+maxAbsent); o++ {
		if !slices.Contains(r.left, o) {
			out = append(out, o)
		}
	}
	return out
}

// podsWaitedFor returns what is waited for of each pod, with the pods that only wait for their turn last;
// the pods that must be replaced; and the number of pods of the range that are of the latest revision.
func (r *rolling) podsWaitedFor() (waits, outdated []string, updated int) {
	var turns, outside []string
	start := plans.SliceOf(r.set).Start
	for _, o := range r.ordinals() {
		name := fmt.Sprintf("%s-%d", r.Name, o)
		pod, there := r.pods[name]
		delete(r.pods, name)
		revision := ""
		if there {
			revision = pod.Labels[appsv1.ControllerRevisionHashLabelKey]
		}
		if revision == r.set.Status.UpdateRevision {
			updated++
		}
		old := there && pod.DeletionTimestamp == nil && revision != r.set.Status.UpdateRevision && r.staged(o, start)
		if old {
			outdated = append(outdated, name)
		}
		switch why := sets.Ready(pod); {
		case !there:
			waits = append(waits, "pod "+name+" will be created")
		case old && why != "":
			waits = append(waits, fmt.Sprintf("pod %s %s; it is of revision %s and will be replaced", name, why, revision))
		case why != "":
			waits = append(waits, "pod "+name+" "+why)
		case old:
			turns = append(turns, fmt.Sprintf("pod %s is of revision %s and will be replaced", name, revision))
		}
	}
	for name := range r.pods {
		outside = append(outside, "pod "+name+" is outside the range and still there")
	}
	slices.Sort(outside)
	slices.Reverse(turns) // the highest ordinal is replaced first
	return slices.Concat(waits, outside, turns), outdated, updated
}

// staged reports whether an ordinal is on the updated side of the partition. The partition of a StatefulSet
// is an offset, that of a slice an ordinal.
func (r *rolling) staged(ordinal, start int32) bool {
	ru := r.set.Spec.UpdateStrategy.RollingUpdate
	if ru == nil || ru.Partition == nil {
		return true
	}
	if !r.IsSlice() {
		ordinal -= start
	}
	return ordinal >= *ru.Partition
}

func (r *rolling) notes() (out []string) {
	if s, marked := plans.Stamped(r.set); marked {
		out = append(out, fmt.Sprintf("%s is being moved by plan %s: this is the status of the part on this side, %s", r.Set(), s.Plan, plans.SliceOf(r.set)))
	}
	return out
}
