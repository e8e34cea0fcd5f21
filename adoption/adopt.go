package adoption

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/sets"
	"github.com/stsmigrate/stsmigrate/writes"
)

// Adoption turns a set into one of the other kind where it is: the set is deleted without its
// pods, a set of the other kind is made, and its controller adopts them. No pod
// restarts. What was is kept in a ConfigMap from before the first write until
// the end, so that another process can go on.
type Adoption struct {
	// On is a live client of the cluster, such as those of Connect.
	On client.Client
	// Set is the set as it is.
	Set plans.Ref
}

// adopted is the annotation of the new set until it has the pods: the UID of the old one.
const adopted = "stsmigrate.dev/adopted-from"

// past is what the ConfigMap has of the set that was.
type past struct {
	// Kind is that of the set, as in a plans.Ref; the Set is in the words of apps/v1.
	Kind string               `json:"kind,omitempty"`
	Set  *appsv1.StatefulSet  `json:"set"`
	Pods map[string]types.UID `json:"pods"`
}

func (a Adoption) record() string { return "stsmigrate-adopt-" + a.Set.Name }

// becomes is the set as it is to be.
func (a Adoption) becomes() plans.Ref { return a.Set.OfOtherKind() }

// as gives a client that sees sets of a kind as StatefulSets.
func (a Adoption) as(set plans.Ref) client.Client { return clusters.InWordsOf(a.On, set) }

// read gives nil if there is no such set.
func (a Adoption) read(ctx context.Context, set plans.Ref) (*appsv1.StatefulSet, error) {
	return clusters.ReadSet(ctx, a.as(set), set)
}

// Look reads where the adoption is and hands out its next write. After means that it is over.
func (a Adoption) Look(ctx context.Context) (plans.Observation, error) {
	before, kept, err := a.past(ctx)
	if err != nil {
		return plans.Observation{}, err
	}
	old, err := a.read(ctx, a.Set)
	if err != nil {
		return plans.Observation{}, err
	}
	next, err := a.read(ctx, a.becomes())
	if err != nil {
		return plans.Observation{}, err
	}
	switch {
	case before == nil:
		return a.begin(ctx, old, next)
	case old != nil && old.DeletionTimestamp != nil:
		return plans.Wait(a.Set.Set() + " is being deleted; its pods stay"), nil
	case old != nil && before.Kind == a.Set.Kind:
		return a.leave(before, kept, old), nil
	case old != nil:
		return a.turnBack(before, old), nil
	case next == nil:
		return a.make(before), nil
	}
	return a.taken(ctx, before, kept, next)
}

// past reads what is kept of the set that was.
func (a Adoption) past(ctx context.Context) (*past, *corev1.ConfigMap, error) {
	var c corev1.ConfigMap
	err := a.On.Get(ctx, client.ObjectKey{Namespace: a.Set.Namespace, Name: a.record()}, &c)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading ConfigMap %s/%s: %w", a.Set.Namespace, a.record(), err)
	}
	var p past
	if err := json.Unmarshal([]byte(c.Data["set"]), &p); err != nil || p.Set == nil {
		return nil, nil, fmt.Errorf("ConfigMap %s/%s is not what this program has written (%w): look at it, and at the set", a.Set.Namespace, a.record(), err)
	}
	return &p, &c, nil
}

// begin wants a set at rest, and keeps what it is before anything is changed.
func (a Adoption) begin(ctx context.Context, old, next *appsv1.StatefulSet) (plans.Observation, error) {
	switch {
	case old == nil && next == nil:
		return plans.Observation{}, fmt.Errorf("%s does not exist: check name, --namespace and --context", a.Set.Set())
	case old == nil:
		return plans.Done(), nil
	case next != nil:
		return plans.Stop(fmt.Sprintf("there is %s too: two sets would want the same pods; delete the one that is not meant, without its pods (--cascade=orphan) if it has any", a.becomes().Set())), nil
	}
	if s, marked := plans.Stamped(old); marked {
		return plans.Stop(fmt.Sprintf("%s is being moved by plan %s: finish that first", a.Set.Set(), s.Plan)), nil
	}
	if why := restless(old); why != "" {
		return plans.Stop(a.Set.Set() + " " + why), nil
	}
	whole, err := writes.Read(ctx, a.as(a.Set), old)
	if err != nil {
		return plans.Observation{}, err
	}
	if fields := whole.Unknown(); len(fields) > 0 {
		return plans.Stop(fmt.Sprintf("%s has fields that this release does not know (%s), and as %s it would lose them: use a newer release", a.Set.Set(), strings.Join(fields, ", "), a.becomes().Set())), nil
	}
	pods, err := a.pods(ctx)
	if err != nil {
		return plans.Observation{}, err
	}
	p := past{Kind: a.Set.Kind, Set: old, Pods: map[string]types.UID{}}
	for _, pod := range pods {
		if metav1.IsControlledBy(&pod, old) {
			p.Pods[pod.Name] = pod.UID
		}
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return plans.Observation{}, err
	}
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.Set.Namespace, Name: a.record()}, Data: map[string]string{"set": string(raw)}}
	return plans.Write("keep what it is in ConfigMap "+c.Name, plans.Undo{}, func(ctx context.Context) error { return a.On.Create(ctx, c) }), nil
}

// restless says why a set cannot change hands now, or "".
func restless(s *appsv1.StatefulSet) string {
	n := plans.SliceOf(s).Replicas
	st := s.Status
	switch {
	case s.DeletionTimestamp != nil:
		return "is being deleted"
	case st.ObservedGeneration < s.Generation, st.Replicas != n, st.ReadyReplicas != n, st.UpdatedReplicas != n, st.CurrentRevision != st.UpdateRevision:
		return fmt.Sprintf("is not at rest: %d pods, %d ready and %d updated of %d; wait for it, or repair it first", st.Replicas, st.ReadyReplicas, st.UpdatedReplicas, n)
	case s.Spec.UpdateStrategy.RollingUpdate != nil && s.Spec.UpdateStrategy.RollingUpdate.Partition != nil && *s.Spec.UpdateStrategy.RollingUpdate.Partition != 0:
		return "has a partition, which means another thing for the other kind: set it to 0 first"
	}
	return ""
}

// leave deletes the set that was kept, if it still is what was kept: the new one is made
// from that, and would undo, with its pods, what was changed since.
func (a Adoption) leave(p *past, kept *corev1.ConfigMap, old *appsv1.StatefulSet) plans.Observation {
	switch {
	case old.UID != p.Set.UID:
		return plans.Stop(fmt.Sprintf("%s was made anew by somebody else; what was is in ConfigMap %s/%s: compare, then delete that ConfigMap", a.Set.Set(), a.Set.Namespace, a.record()))
	case old.ResourceVersion != p.Set.ResourceVersion:
		return a.drop(kept, ", because "+a.Set.Set()+" has changed since")
	}
	return a.letGo(old)
}

// turnBack deletes the set that was made for an adoption that is to be undone before its
// end: what was kept is what is made again, so that nobody may have changed it.
func (a Adoption) turnBack(p *past, made *appsv1.StatefulSet) plans.Observation {
	if made.Annotations[adopted] == string(p.Set.UID) && made.Generation == 1 {
		return a.letGo(made)
	}
	return plans.Stop(fmt.Sprintf("%s is not, or no more, what an adoption made of %s %s (ConfigMap %s/%s), and may have been changed since; finish that first: stsmigrate adopt %s",
		a.Set.Set(), a.becomes().SetKind(), a.Set.Name, a.Set.Namespace, a.record(), a.becomes().Typed()))
}

// letGo deletes a set as it was read. Its pods, claims and revisions stay and have no owner.
func (a Adoption) letGo(old *appsv1.StatefulSet) plans.Observation {
	return plans.Write("delete "+a.Set.Set()+" without its pods", plans.Undo{}, func(ctx context.Context) error {
		return writes.Delete(ctx, a.as(a.Set), old, client.PropagationPolicy(metav1.DeletePropagationOrphan))
	})
}

// drop deletes what was kept.
func (a Adoption) drop(kept *corev1.ConfigMap, why string) plans.Observation {
	return plans.Write("delete ConfigMap "+kept.Name+why, plans.Undo{}, func(ctx context.Context) error {
		return writes.Delete(ctx, a.On, kept)
	})
}

// make makes the new set. It replaces no pods (OnDelete) until it is seen that it takes
// them for its own revision.
func (a Adoption) make(p *past) plans.Observation {
	next := &appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: plans.NativeKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Set.Namespace, Name: a.Set.Name, Labels: p.Set.Labels, Annotations: maps.Clone(p.Set.Annotations), OwnerReferences: p.Set.OwnerReferences, Finalizers: p.Set.Finalizers,
		},
		Spec: *p.Set.Spec.DeepCopy(),
	}
	delete(next.Annotations, corev1.LastAppliedConfigAnnotation) // it is about the other kind
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, adopted, string(p.Set.UID))
	next.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	return plans.Write("make "+a.becomes().Set()+", which adopts the pods", plans.Undo{}, func(ctx context.Context) error {
		return a.as(a.becomes()).Create(ctx, next)
	})
}

// taken waits until the new set has the very pods, and then lets it be as the old one was.
func (a Adoption) taken(ctx context.Context, p *past, kept *corev1.ConfigMap, next *appsv1.StatefulSet) (plans.Observation, error) {
	whose, marked := next.Annotations[adopted]
	pods, err := a.pods(ctx)
	if err != nil {
		return plans.Observation{}, err
	}
	why := a.missing(p, next, pods)
	// The mark is taken off at the end, when the set has its pods.
	stranger := slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return p.Pods[pod.Name] == pod.UID && !metav1.IsControlledBy(&pod, next) })
	switch {
	case marked && whose != string(p.Set.UID), !marked && stranger:
		return plans.Stop(fmt.Sprintf("%s was made by somebody else; what was is in ConfigMap %s/%s", a.becomes().Set(), a.Set.Namespace, a.record())), nil
	case why != "":
		return plans.Wait(a.becomes().Set() + ": " + why), nil
	case next.Status.UpdateRevision != p.Set.Status.UpdateRevision:
		return plans.Stop(fmt.Sprintf("%s takes its template for another revision (%s) than its pods have (%s): it would replace them all. It has the strategy OnDelete and replaces none; set the strategy to go on, "+
			"or turn it back by adopting the other way", a.becomes().Set(), next.Status.UpdateRevision, p.Set.Status.UpdateRevision)), nil
	case marked:
		back := next.DeepCopy()
		delete(back.Annotations, adopted)
		back.Spec.UpdateStrategy = a.becomes().Strategy(p.Set.Spec.UpdateStrategy)
		return plans.Write("give it the update strategy that it had", plans.Undo{}, func(ctx context.Context) error { return writes.Change(ctx, a.as(a.becomes()), next, back) }), nil
	}
	return a.drop(kept, ""), nil
}

// missing says which pod the new set does not have yet, or "".
func (a Adoption) missing(p *past, next *appsv1.StatefulSet, pods []corev1.Pod) string {
	if next.Status.ObservedGeneration < next.Generation {
		return "its controller has not looked at it yet; is the controller of its kind running?"
	}
	for o := range plans.SliceOf(next).All() { // which may have been scaled since
		name := next.Name + "-" + strconv.Itoa(int(o))
		if _, was := p.Pods[name]; !was {
			continue
		}
		at := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.Name == name })
		switch {
		case at < 0:
			return "pod " + name + " is gone, and is to be made again"
		case !metav1.IsControlledBy(&pods[at], next):
			return "pod " + name + " is not adopted yet"
		case sets.Ready(&pods[at]) != "":
			return "pod " + name + " " + sets.Ready(&pods[at])
		}
	}
	return ""
}

func (a Adoption) pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := a.On.List(ctx, &list, client.InNamespace(a.Set.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", a.Set.Namespace, err)
	}
	return list.Items, nil
}
