package simulation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

const deletes = appsv1.DeletePersistentVolumeClaimRetentionPolicyType

// builtIn are the rules of the built-in controller of Kubernetes 1.34 to 1.36. The decisions are those of
// slicecontroller/core, which random scripts hold against the built-in controller (test/controller).
func builtIn() core.Traits {
	return core.Traits{
		Kind:            appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		OffsetPartition: true, AdoptOutside: true, CompleteEmpty: true, CurrentStays: true, OneAtATime: true,
	}
}

// setController acts, like the real one, on the spec in its cache, which may be an old one.
func (w *world) setController(s *store) bool {
	for live := range shuffle(w, all[*appsv1.StatefulSet](s)) {
		seen := w.seen[live.UID]
		stale := seen == nil || seen.Generation != live.Generation
		if stale && (seen == nil || w.chance(2)) {
			w.seen[live.UID] = cached(live)
			return true
		}
		if w.syncSet(s, seen, live) {
			return true
		}
		if stale {
			w.seen[live.UID] = cached(live)
			return true
		}
	}
	return false
}

// cached returns what the controller keeps of a set. It compares a new status with the live one.
func cached(live *appsv1.StatefulSet) *appsv1.StatefulSet {
	seen := clone(live)
	seen.Status = appsv1.StatefulSetStatus{}
	return seen
}

// syncSet lets the controller make one write of a pass. Any of those that do not wait for one another may be the first
// to arrive.
func (w *world) syncSet(s *store, seen, live *appsv1.StatefulSet) bool {
	now := &pass{w: w, s: s, seen: seen, live: live, offers: map[string]func(){}}
	_, _ = core.Sync(context.Background(), w.observed(s, seen, live), now) // errors: all offers are refused
	if now.revised {
		return true
	}
	names := slices.Sorted(maps.Keys(now.offers))
	for name := range shuffle(w, names) {
		now.offers[name]()
		return true
	}
	return false
}

// observed is what the controller sees of a set: its own copy of the spec, and everything else as it is.
func (w *world) observed(s *store, seen, live *appsv1.StatefulSet) core.World {
	set := &core.Set{ObjectMeta: seen.ObjectMeta, Spec: seen.Spec, Status: core.Status{StatefulSetStatus: live.Status}, Traits: builtIn()}
	selector, err := metav1.LabelSelectorAsSelector(seen.Spec.Selector)
	must(err)
	mine := func(o client.Object) bool {
		owner := metav1.GetControllerOfNoCopy(o)
		return o.GetNamespace() == seen.Namespace && (owner != nil && owner.UID == seen.UID || owner == nil && selector.Matches(labels.Set(o.GetLabels())))
	}
	out := core.World{Set: set, Now: afterwards(), Claim: func(name string) *corev1.PersistentVolumeClaim {
		c, _ := get[*corev1.PersistentVolumeClaim](s, seen.Namespace, name)
		return c
	}}
	for _, pod := range all[*corev1.Pod](s) {
		if mine(pod) {
			out.Pods = append(out.Pods, w.dated(seen, pod))
		}
	}
	for _, r := range all[*appsv1.ControllerRevision](s) {
		if mine(r) {
			out.Revisions = append(out.Revisions, r)
		}
	}
	for _, c := range all[*corev1.PersistentVolumeClaim](s) {
		if slices.ContainsFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == seen.UID }) {
			out.Owned = append(out.Owned, c)
		}
	}
	return out
}

// afterwards is the time of every pass: long after the time since which a pod that is available is Ready.
func afterwards() time.Time { return time.Unix(1_000_000, 0) }

// dated returns a pod with a time since which it is Ready that is long enough ago (minReadySeconds), or is not.
func (w *world) dated(set *appsv1.StatefulSet, pod *corev1.Pod) *corev1.Pod {
	if set.Spec.MinReadySeconds == 0 {
		return pod
	}
	since := metav1.NewTime(afterwards())
	if w.aged[pod.UID] {
		since = metav1.Unix(1, 0)
	}
	out := clone(pod)
	for k := range out.Status.Conditions {
		out.Status.Conditions[k].LastTransitionTime = since
	}
	return out
}

// pass is one pass of the controller. It carries no write out but that of a revision, which comes first: it refuses
// each, and keeps it as an offer. What depends on a write that is refused is not offered.
type pass struct {
	w       *world
	s       *store
	seen    *appsv1.StatefulSet
	live    *appsv1.StatefulSet
	lock    sync.Mutex // a Parallel set's pods are looked at side by side
	offers  map[string]func()
	revised bool
}

// errLater is the answer to a write that is not carried out now.
var errLater = errors.New("later")

func (p *pass) offer(verb string, o client.Object, do func()) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.offers[verb+" "+keyOf(o).String()] = do
	return errLater
}

// Fresh implements core.Reads.
func (p *pass) Fresh(context.Context) (metav1.Object, error) { return p.live, nil }

// Read implements core.Reads.
func (p *pass) Read(ctx context.Context, o core.Object) error {
	return p.s.Get(ctx, client.ObjectKeyFromObject(o), o)
}

// Default implements core.Reads: there are no defaults here.
func (*pass) Default(_ context.Context, t corev1.PodTemplateSpec) (corev1.PodTemplateSpec, error) {
	return t, nil
}

// Create implements core.Writes.
func (p *pass) Create(ctx context.Context, o core.Object) error {
	if _, taken := p.s.objects[keyOf(o)]; taken {
		return apierrors.NewAlreadyExists(resource(keyOf(o)), o.GetName())
	}
	if err := p.s.refused(o, nil); err != nil {
		return err
	}
	if _, revision := o.(*appsv1.ControllerRevision); revision {
		p.revised = true
		return p.s.Create(ctx, o)
	}
	return p.offer("create", o, func() { must(p.s.Create(ctx, o)) })
}

// Update implements core.Writes.
func (p *pass) Update(_ context.Context, o core.Object) error {
	if _, revision := o.(*appsv1.ControllerRevision); revision {
		p.revised = true
		p.s.put(o)
		return nil
	}
	if len(o.GetOwnerReferences()) == 0 {
		o.SetOwnerReferences(nil) // as an API server reads it
	}
	return p.offer("update", o, func() { p.s.put(o) })
}

// Delete implements core.Writes.
func (p *pass) Delete(ctx context.Context, o core.Object) error {
	return p.offer("delete", o, func() {
		if pod, is := p.s.objects[keyOf(o)].(*corev1.Pod); is {
			p.w.replaces(p.seen, pod)
		}
		must(p.s.Delete(ctx, clone[client.Object](o)))
	})
}

// Evict implements core.Writes. A StatefulSet evicts nothing.
func (*pass) Evict(context.Context, *corev1.Pod) error { panic("a StatefulSet evicts a pod") }

// Hold implements core.Writes. A StatefulSet is not held.
func (*pass) Hold(context.Context, bool) error { panic("a StatefulSet is held") }

// Adopt implements core.Ownership.
func (p *pass) Adopt(_ context.Context, o core.Object, owner metav1.OwnerReference) error {
	return p.own(o, append(slices.Clone(o.GetOwnerReferences()), owner))
}

// Release implements core.Ownership.
func (p *pass) Release(_ context.Context, o core.Object, owner types.UID) error {
	return p.own(o, slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(r metav1.OwnerReference) bool { return r.UID == owner }))
}

func (p *pass) own(o client.Object, owners []metav1.OwnerReference) error {
	return p.offer("own", o, func() {
		next := clone(p.s.objects[keyOf(o)])
		next.SetOwnerReferences(owners)
		p.s.put(next)
	})
}

// WriteStatus implements core.Effects.
func (p *pass) WriteStatus(_ context.Context, status core.Status) error {
	return p.offer("status", p.live, func() {
		next := clone(p.live)
		next.Status = status.StatefulSetStatus
		p.s.put(next)
	})
}

// Tell implements core.Effects.
func (*pass) Tell(core.Event) {}

// ordinalOf returns the number after the last dash of a pod's or a claim's name, or -1 if there is none.
func ordinalOf(name string) int32 {
	n, err := strconv.ParseInt(name[strings.LastIndex(name, "-")+1:], 10, 32)
	if err != nil {
		return -1
	}
	return int32(n)
}

func ready(pod *corev1.Pod) bool {
	if pod == nil || pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}
