package adoption

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reads"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// Adoption converts a set into one of the other kind in place: the set is deleted without its pods, a set of
// the other kind is created, and its controller adopts the pods. No pod restarts. A ConfigMap keeps the
// former set from BEFORE the first write until the end, so that another process can continue.
type Adoption struct {
	// On is a live client of the cluster, such as those of Connect.
	On client.Client
	// Set is the set before the adoption.
	Set plans.Ref
}

// adopted is the annotation of the new set until it has the pods. Its value is the UID of the former set.
const adopted = "stsmigrate.dev/adopted-from"

// past is the content of the ConfigMap: the former set.
type past struct {
	// Kind is that of the former set, as in a plans.Ref. Set has the form of apps/v1.
	Kind string               `json:"kind,omitempty"`
	Set  *appsv1.StatefulSet  `json:"set"`
	Pods map[string]types.UID `json:"pods"`
}

func (a Adoption) record() string { return "stsmigrate-adopt-" + a.Set.Name }

// becomes returns the reference of the set after the adoption.
func (a Adoption) becomes() plans.Ref { return a.Set.OfOtherKind() }

// as returns a client that reads and writes sets of a kind as StatefulSets.
func (a Adoption) as(set plans.Ref) client.Client { return clusters.InWordsOf(a.On, set) }

// read returns nil if there is no such set.
func (a Adoption) read(ctx context.Context, set plans.Ref) (*appsv1.StatefulSet, error) {
	return clusters.ReadSet(ctx, a.as(set), set)
}

// Look reads the state of the adoption and returns its next write. After means that the adoption is
// complete.
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
		return plans.Wait(reasons.SetTerminating, a.Set.Set()+" is being deleted; its pods stay"), nil
	case old != nil && before.Kind == a.Set.Kind:
		return a.leave(ctx, before, kept, old)
	case old != nil:
		return a.turnBack(before, kept, old), nil
	case next == nil:
		return a.make(before), nil
	}
	return a.taken(ctx, before, kept.Object(), next)
}

// past reads the ConfigMap with the former set. Both results are nil if there is none.
func (a Adoption) past(ctx context.Context) (*past, reads.Seen[*corev1.ConfigMap], error) {
	kept, err := reads.Get(ctx, reads.From(a.On), client.ObjectKey{Namespace: a.Set.Namespace, Name: a.record()}, &corev1.ConfigMap{})
	c := kept.Object()
	if err == nil && c == nil {
		return nil, kept, nil
	}
	if err != nil {
		return nil, kept, fmt.Errorf("reading ConfigMap %s/%s: %w", a.Set.Namespace, a.record(), err)
	}
	var p past
	err = weight.Unmarshal([]byte(c.Data["set"]), &p)
	if err == nil && p.Set == nil {
		err = errors.New("no set is in it")
	}
	if err != nil {
		return nil, kept, fmt.Errorf("ConfigMap %s/%s was not written by this program (%w): inspect it and the set", a.Set.Namespace, a.record(), err)
	}
	return &p, kept, nil
}

// begin requires a set at rest, and stores the set in a ConfigMap BEFORE anything is changed.
func (a Adoption) begin(ctx context.Context, old, next *appsv1.StatefulSet) (plans.Observation, error) {
	switch {
	case old == nil && next == nil:
		return plans.Observation{}, fmt.Errorf("%s does not exist: check name, --namespace and --context", a.Set.Set())
	case old == nil:
		return plans.Done(), nil
	case next != nil:
		return plans.Stop(reasons.AdoptionInTheWay, fmt.Sprintf("%s exists, too, and both sets would control the same pods; delete the wrong one, with --cascade=orphan if it has pods", a.becomes().Set())), nil
	}
	if s, marked := plans.Stamped(old); marked {
		return plans.Stop(reasons.AdoptionInTheWay, fmt.Sprintf("%s is being moved by plan %s: finish that first", a.Set.Set(), s.Plan)), nil
	}
	if why, err := a.obstacle(ctx, old); why != "" || err != nil {
		return plans.Stop(reasons.AdoptionInTheWay, a.Set.Set()+" "+why), err
	}
	whole, err := writes.Read(ctx, a.as(a.Set), old)
	if err != nil {
		return plans.Observation{}, err
	}
	if fields := whole.Unknown(); len(fields) > 0 {
		return plans.Stop(reasons.AdoptionInTheWay, fmt.Sprintf("%s has fields that this release does not know (%s), and as %s it would lose them: use a newer release", a.Set.Set(), strings.Join(fields, ", "), a.becomes().Set())), nil
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
	return plans.Write("store the set in ConfigMap "+c.Name, plans.Undo{}, func(ctx context.Context) error { return a.On.Create(ctx, c) }), nil
}

// leave deletes the former set if it still equals the stored copy: the new set is created from that copy,
// and would undo later changes, with their pods. BEFORE that a controller of the new kind must have been seen,
// and the new set must be one that can be created.
func (a Adoption) leave(ctx context.Context, p *past, kept reads.Seen[*corev1.ConfigMap], old *appsv1.StatefulSet) (plans.Observation, error) {
	switch {
	case old.UID != p.Set.UID:
		return plans.Stop(reasons.AdoptionInTheWay, fmt.Sprintf("%s was recreated by another writer; the former set is stored in ConfigMap %s/%s: compare them, then delete that ConfigMap", a.Set.Set(), a.Set.Namespace, a.record())), nil
	case old.ResourceVersion != p.Set.ResourceVersion:
		return a.drop(kept.Object(), ", because "+a.Set.Set()+" has changed since"), nil
	}
	if s, err := a.controlled(ctx, p, kept.Object()); err != nil || s.Standing != plans.After {
		return s, err
	}
	if why, err := a.obstacle(ctx, old); why != "" || err != nil {
		return plans.Stop(reasons.AdoptionInTheWay, fmt.Sprintf("%s %s (or delete ConfigMap %s to give up)", a.Set.Set(), why, kept.Object().Name)), err
	}
	return a.letGo(old, kept), nil
}

// turnBack deletes the set that an adoption created, if the adoption is undone before its end. The former
// set is recreated from the stored copy, so the created set must be unchanged.
func (a Adoption) turnBack(p *past, kept reads.Seen[*corev1.ConfigMap], made *appsv1.StatefulSet) plans.Observation {
	if made.Annotations[adopted] == string(p.Set.UID) && made.Generation == 1 {
		return a.letGo(made, kept)
	}
	return plans.Stop(reasons.AdoptionInTheWay, fmt.Sprintf("%s is not, or no longer, the unchanged set that an adoption of %s %s created (ConfigMap %s/%s); finish that adoption first: stsmigrate adopt %s",
		a.Set.Set(), a.becomes().SetKind(), a.Set.Name, a.Set.Namespace, a.record(), a.becomes().Typed()))
}

// letGo deletes a set at the version that was read. Its pods, claims and revisions stay and have no owner.
func (a Adoption) letGo(old *appsv1.StatefulSet, kept reads.Seen[*corev1.ConfigMap]) plans.Observation {
	return plans.Write("delete "+a.Set.Set()+" without its pods", plans.Undo{}, func(ctx context.Context) error {
		return writes.Orphan(ctx, a.as(a.Set), old, kept)
	})
}

// drop deletes the ConfigMap with the former set.
func (a Adoption) drop(kept *corev1.ConfigMap, why string) plans.Observation {
	return plans.Write("delete ConfigMap "+kept.Name+why, plans.Undo{}, func(ctx context.Context) error {
		return writes.Delete(ctx, a.On, kept)
	})
}

// make creates the new set.
func (a Adoption) make(p *past) plans.Observation {
	return plans.Write("make "+a.becomes().Set()+", which adopts the pods", plans.Undo{}, func(ctx context.Context) error {
		return a.as(a.becomes()).Create(ctx, a.successor(p.Set))
	})
}

// taken waits until the new set controls the recorded pods, and then restores the former update strategy.
func (a Adoption) taken(ctx context.Context, p *past, kept *corev1.ConfigMap, next *appsv1.StatefulSet) (plans.Observation, error) {
	whose, marked := next.Annotations[adopted]
	pods, err := a.pods(ctx)
	if err != nil {
		return plans.Observation{}, err
	}
	why := a.missing(p, next, pods)
	// The adopted annotation is removed at the end, when the set has its pods.
	stranger := slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return p.Pods[pod.Name] == pod.UID && !metav1.IsControlledBy(&pod, next) })
	switch {
	case marked && whose != string(p.Set.UID), !marked && stranger:
		return plans.Stop(reasons.AdoptionInTheWay, fmt.Sprintf("%s was created by another writer; the former set is stored in ConfigMap %s/%s", a.becomes().Set(), a.Set.Namespace, a.record())), nil
	case why != "":
		return plans.Wait(reasons.SetUnsettled, a.becomes().Set()+": "+why), nil
	case next.Status.UpdateRevision != p.Set.Status.UpdateRevision:
		return plans.Stop(reasons.AdoptionRevision, fmt.Sprintf("%s has another revision (%s) for its template than its pods have (%s), and would replace them all. Its strategy is OnDelete, so it replaces none; set the strategy to continue, "+
			"or undo the adoption by adopting in the other direction", a.becomes().Set(), next.Status.UpdateRevision, p.Set.Status.UpdateRevision)), nil
	case marked:
		back := next.DeepCopy()
		delete(back.Annotations, adopted)
		back.Spec.UpdateStrategy = a.becomes().Strategy(p.Set.Spec.UpdateStrategy)
		return plans.Write("restore its former update strategy", plans.Undo{}, func(ctx context.Context) error { return writes.Change(ctx, a.as(a.becomes()), next, back) }), nil
	}
	return a.drop(kept, ""), nil
}

// missing names the first pod that the new set does not have yet and says why, or returns "".
func (a Adoption) missing(p *past, next *appsv1.StatefulSet, pods []corev1.Pod) string {
	if next.Status.ObservedGeneration < next.Generation {
		return "its controller has not looked at it yet; is the controller of its kind running?"
	}
	for _, name := range slices.Sorted(maps.Keys(p.Pods)) { // the range may have been mistyped
		o, is := ordinalOf(name, next.Name)
		if !is || !plans.SliceOf(next).Has(o) { // the set may have been scaled since
			continue
		}
		at := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.Name == name })
		switch {
		case at < 0:
			return "pod " + name + " is gone and will be recreated"
		case !metav1.IsControlledBy(&pods[at], next):
			return "pod " + name + " is not adopted yet"
		case sets.Ready(&pods[at]) != "":
			return "pod " + name + " " + sets.Ready(&pods[at])
		}
	}
	return ""
}

// ordinalOf returns the ordinal of a pod of a set, by its name.
func ordinalOf(pod, set string) (int32, bool) {
	text, is := strings.CutPrefix(pod, set+"-")
	o, err := strconv.ParseInt(text, 10, 32)
	return int32(o), is && err == nil
}

func (a Adoption) pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := a.On.List(ctx, &list, client.InNamespace(a.Set.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", a.Set.Namespace, err)
	}
	return list.Items, nil
}
