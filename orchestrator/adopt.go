package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Adoption turns a set into one of the other kind where it is: the set is deleted without its
// pods, a set of the other kind is made, and its controller adopts them. No pod
// restarts. What was is kept in a ConfigMap from before the first write until
// the end, so that another process can go on.
type Adoption struct {
	// On is a live client of the cluster, such as those of Connect.
	On        client.Client
	Namespace string
	Name      string
	// To is the kind that the set becomes, as in a plans.Ref.
	To string
}

// adopted is the annotation of the new set until it has the pods: the UID of the old one.
const adopted = "stsmigrate.dev/adopted-from"

// past is what the ConfigMap has of the set that was.
type past struct {
	To string `json:"to"`
	// Set is in the words of apps/v1.
	Set  *appsv1.StatefulSet  `json:"set"`
	Pods map[string]types.UID `json:"pods"`
}

func (a Adoption) record() string { return "stsmigrate-adopt-" + a.Name }

// ref names the set as one of a kind.
func (a Adoption) ref(kind string) plans.Ref {
	return plans.Ref{Namespace: a.Namespace, Name: a.Name, Kind: kind}
}

func (a Adoption) from() string {
	return map[bool]string{true: "", false: plans.SliceKind}[a.ref(a.To).IsSlice()]
}

func (a Adoption) words(kind string) string {
	return map[bool]string{true: plans.SliceKind, false: "StatefulSet"}[a.ref(kind).IsSlice()] + " " + a.Namespace + "/" + a.Name
}

// as gives a client that sees sets of a kind as StatefulSets.
func (a Adoption) as(kind string) client.Client {
	if a.ref(kind).IsSlice() {
		return sliced(a.On)
	}
	return a.On
}

// set reads the set as one of a kind; nil means that there is none.
func (a Adoption) set(ctx context.Context, kind string) (*appsv1.StatefulSet, error) {
	var s appsv1.StatefulSet
	err := a.as(kind).Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.Name}, &s)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("the cluster does not know StatefulSetSlices: install the kind and the slice controller first (docs/slicecontroller.md)")
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", a.words(kind), err)
	}
	return &s, nil
}

// Look reads where the adoption is and hands out its next write. After means that it is over.
func (a Adoption) Look(ctx context.Context) (plans.Sight, error) {
	before, kept, err := a.past(ctx)
	if err != nil {
		return plans.Sight{}, err
	}
	old, err := a.set(ctx, a.from())
	if err != nil {
		return plans.Sight{}, err
	}
	next, err := a.set(ctx, a.To)
	if err != nil {
		return plans.Sight{}, err
	}
	switch {
	case before == nil:
		return a.begin(ctx, old, next)
	case old != nil && !a.meant(before, old):
		return plans.Stop(fmt.Sprintf("%s was made anew by somebody else; what was is in ConfigMap %s/%s", a.words(a.from()), a.Namespace, a.record())), nil
	case old != nil && old.DeletionTimestamp == nil:
		return a.letGo(old), nil
	case old != nil:
		return plans.Wait(a.words(a.from()) + " is being deleted; its pods stay"), nil
	case next == nil:
		return a.make(before), nil
	}
	return a.taken(ctx, before, kept, next)
}

// meant says whether a set is the one that is to go: the one that was, or, when an adoption
// is turned back before its end, the one that was made for it.
func (a Adoption) meant(before *past, old *appsv1.StatefulSet) bool {
	if before.To == a.To {
		return old.UID == before.Set.UID
	}
	return old.Annotations[adopted] == string(before.Set.UID)
}

// past reads what is kept of the set that was.
func (a Adoption) past(ctx context.Context) (*past, *corev1.ConfigMap, error) {
	var c corev1.ConfigMap
	err := a.On.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.record()}, &c)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading ConfigMap %s/%s: %w", a.Namespace, a.record(), err)
	}
	var p past
	if err := json.Unmarshal([]byte(c.Data["set"]), &p); err != nil || p.Set == nil {
		return nil, nil, fmt.Errorf("ConfigMap %s/%s is not what this program has written (%w): look at it, and at the set", a.Namespace, a.record(), err)
	}
	return &p, &c, nil
}

// begin wants a set at rest, and keeps what it is before anything is changed.
func (a Adoption) begin(ctx context.Context, old, next *appsv1.StatefulSet) (plans.Sight, error) {
	switch {
	case old == nil && next == nil:
		return plans.Stop(a.words(a.from()) + " does not exist"), nil
	case old == nil:
		return plans.Done(), nil
	case next != nil:
		return plans.Stop(fmt.Sprintf("there is %s too: two sets would want the same pods; delete the one that is not meant, without its pods (--cascade=orphan) if it has any", a.words(a.To))), nil
	}
	if s, marked := plans.Stamped(old); marked {
		return plans.Stop(fmt.Sprintf("%s is being moved by plan %s: finish that first", a.words(a.from()), s.Plan)), nil
	}
	if why := restless(old); why != "" {
		return plans.Stop(a.words(a.from()) + " " + why), nil
	}
	pods, err := a.pods(ctx)
	if err != nil {
		return plans.Sight{}, err
	}
	p := past{To: a.To, Set: old, Pods: map[string]types.UID{}}
	for _, pod := range pods {
		if metav1.IsControlledBy(&pod, old) {
			p.Pods[pod.Name] = pod.UID
		}
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return plans.Sight{}, err
	}
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.record()}, Data: map[string]string{"set": string(raw)}}
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

// letGo deletes the old set. Its pods, claims and revisions stay and have no owner.
func (a Adoption) letGo(old *appsv1.StatefulSet) plans.Sight {
	return plans.Write("delete "+a.words(a.from())+" without its pods", plans.Undo{}, func(ctx context.Context) error {
		return a.as(a.from()).Delete(ctx, old, client.PropagationPolicy(metav1.DeletePropagationOrphan), client.Preconditions{UID: &old.UID, ResourceVersion: &old.ResourceVersion})
	})
}

// make makes the new set. It replaces no pods (OnDelete) until it is seen that it takes
// them for its own revision.
func (a Adoption) make(p *past) plans.Sight {
	next := &appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Namespace, Name: a.Name, Labels: p.Set.Labels, Annotations: maps.Clone(p.Set.Annotations), OwnerReferences: p.Set.OwnerReferences, Finalizers: p.Set.Finalizers,
		},
		Spec: *p.Set.Spec.DeepCopy(),
	}
	delete(next.Annotations, corev1.LastAppliedConfigAnnotation) // it is about the other kind
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, adopted, string(p.Set.UID))
	next.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	return plans.Write("make "+a.words(a.To)+", which adopts the pods", plans.Undo{}, func(ctx context.Context) error {
		return a.as(a.To).Create(ctx, next)
	})
}

// taken waits until the new set has the very pods, and then lets it be as the old one was.
func (a Adoption) taken(ctx context.Context, p *past, kept *corev1.ConfigMap, next *appsv1.StatefulSet) (plans.Sight, error) {
	whose, marked := next.Annotations[adopted]
	pods, err := a.pods(ctx)
	if err != nil {
		return plans.Sight{}, err
	}
	why := a.missing(p, next, pods)
	// The mark is taken off at the end, when the set has its pods.
	stranger := slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return p.Pods[pod.Name] == pod.UID && !metav1.IsControlledBy(&pod, next) })
	switch {
	case marked && whose != string(p.Set.UID), !marked && stranger:
		return plans.Stop(fmt.Sprintf("%s was made by somebody else; what was is in ConfigMap %s/%s", a.words(a.To), a.Namespace, a.record())), nil
	case why != "":
		return plans.Wait(a.words(a.To) + ": " + why), nil
	case next.Status.UpdateRevision != p.Set.Status.UpdateRevision:
		return plans.Stop(fmt.Sprintf("%s takes its template for another revision (%s) than its pods have (%s): it would replace them all. It has the strategy OnDelete and replaces none; set the strategy to go on, "+
			"or turn it back by adopting the other way", a.words(a.To), next.Status.UpdateRevision, p.Set.Status.UpdateRevision)), nil
	case marked:
		was := next.DeepCopy()
		delete(was.Annotations, adopted)
		was.Spec.UpdateStrategy = *p.Set.Spec.UpdateStrategy.DeepCopy()
		if was.Spec.UpdateStrategy.Type == plans.EnforcedRollingUpdate && !a.ref(a.To).IsSlice() {
			was.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		}
		return plans.Write("give it the update strategy that it had", plans.Undo{}, func(ctx context.Context) error { return a.as(a.To).Update(ctx, was) }), nil
	}
	return plans.Write("delete ConfigMap "+kept.Name, plans.Undo{}, func(ctx context.Context) error {
		return a.On.Delete(ctx, kept, client.Preconditions{UID: &kept.UID, ResourceVersion: &kept.ResourceVersion})
	}), nil
}

// missing says which pod the new set does not have yet, or "".
func (a Adoption) missing(p *past, next *appsv1.StatefulSet, pods []corev1.Pod) string {
	if next.Status.ObservedGeneration < next.Generation {
		return "its controller has not looked at it yet; is the controller of its kind running?"
	}
	for _, name := range slices.Sorted(maps.Keys(p.Pods)) {
		at := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.Name == name })
		switch {
		case at < 0:
			return "pod " + name + " is gone, and is to be made again"
		case !metav1.IsControlledBy(&pods[at], next):
			return "pod " + name + " is not adopted yet"
		case ready(&pods[at]) != "":
			return "pod " + name + " " + ready(&pods[at])
		}
	}
	return ""
}

func (a Adoption) pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := a.On.List(ctx, &list, client.InNamespace(a.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", a.Namespace, err)
	}
	return list.Items, nil
}
