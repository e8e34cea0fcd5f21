package slicecontroller

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// sources returns everything that wakes a set (SY-4): events of the set itself, of its pods, of
// orphans that it may adopt, of a claim that grows or is deleted, of a deleted revision, and of
// budgets that evictions wait for.
func (r *Reconciler) sources(c cache.Cache) []source.Source {
	out := []source.Source{
		source.Func(func(_ context.Context, q queue) error { r.queue = q; return nil }),
		source.Kind(c, r.kind.empty(), r.heard(r.itself, r.itself)),
		source.Kind(c, client.Object(&corev1.Pod{}), r.pods()),
		source.Kind(c, client.Object(&corev1.PersistentVolumeClaim{}), r.heard(r.ofGrowing, r.ofClaim)),
		source.Kind(c, client.Object(&appsv1.ControllerRevision{}), r.heard(nobody, r.ofController)),
	}
	if r.kind.evicts {
		out = append(out, source.Kind(c, client.Object(&policyv1.PodDisruptionBudget{}), r.heard(r.ofBudget, r.ofBudget)))
	}
	return out
}

func (r *Reconciler) pods() handler.EventHandler { return r.heard(r.ofPod, r.ofPodGone) }

// whose returns the sets that an object concerns.
type whose func(context.Context, client.Object) []types.NamespacedName

func nobody(context.Context, client.Object) []types.NamespacedName { return nil }

// heard removes from the ledger what an event confirms, and enqueues the sets that the event concerns.
func (r *Reconciler) heard(there, gone whose) handler.EventHandler {
	wake := func(q queue, sets []types.NamespacedName) {
		for _, s := range sets {
			r.gauges.woken(s, r.now())
			if !r.ledger.awaited(s) {
				q.Add(reconcile.Request{NamespacedName: s})
			}
		}
	}
	arrived := func(ctx context.Context, o client.Object, q queue) {
		if set, settled := r.ledger.saw(o); settled {
			wake(q, []types.NamespacedName{set})
		}
		wake(q, there(ctx, o))
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { arrived(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
				return
			}
			arrived(ctx, e.ObjectNew, q)
			if moved(e.ObjectOld, e.ObjectNew) {
				wake(q, there(ctx, e.ObjectOld))
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if set, settled := r.ledger.lost(e.Object.GetUID()); settled {
				wake(q, []types.NamespacedName{set})
			}
			wake(q, gone(ctx, e.Object))
		},
	}
}

// moved reports whether the controller of an object changed.
func moved(from, to client.Object) bool {
	a, b := metav1.GetControllerOfNoCopy(from), metav1.GetControllerOfNoCopy(to)
	return (a == nil) != (b == nil) || a != nil && a.UID != b.UID
}

func (r *Reconciler) itself(_ context.Context, o client.Object) []types.NamespacedName {
	return []types.NamespacedName{client.ObjectKeyFromObject(o)}
}

// ofController returns the set that controls an object.
func (r *Reconciler) ofController(_ context.Context, o client.Object) []types.NamespacedName {
	c := metav1.GetControllerOfNoCopy(o)
	if c == nil || c.Kind != r.kind.gvk.Kind {
		return nil
	}
	if of, err := schema.ParseGroupVersion(c.APIVersion); err != nil || of.Group != r.kind.gvk.Group {
		return nil // in any version of the group: objects created by an earlier release refer to an earlier version
	}
	return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: c.Name}}
}

// ofPod returns the set that controls a pod, or the sets that may adopt it.
func (r *Reconciler) ofPod(ctx context.Context, o client.Object) []types.NamespacedName {
	if metav1.GetControllerOfNoCopy(o) != nil {
		return r.ofController(ctx, o)
	}
	var out []types.NamespacedName
	for _, s := range r.setsIn(ctx, o.GetNamespace()) {
		selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(o.GetLabels())) {
			out = append(out, types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
		}
	}
	return out
}

// ofPodGone also returns the set with an ordinal of this name: a pod of another owner had the name
// and blocked the ordinal (CL-10).
func (r *Reconciler) ofPodGone(ctx context.Context, o client.Object) []types.NamespacedName {
	out := r.ofPod(ctx, o)
	name := o.GetName()
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: name[:max(strings.LastIndex(name, "-"), 0)]}
	if _, member := core.Ordinal(key.Name, name); !member || slices.Contains(out, key) {
		return out
	}
	if r.client.Get(ctx, key, r.kind.empty(), client.UnsafeDisableDeepCopy) != nil {
		return out // NotFound is the only error of the cache
	}
	return append(out, key)
}

// ofClaim returns the set whose ordinal a claim is named after: a pod may wait for the
// deletion of the claim (CP-3, CP-8).
func (r *Reconciler) ofClaim(ctx context.Context, o client.Object) []types.NamespacedName {
	return r.ofClaimWhere(ctx, o, func(*core.Set) bool { return true })
}

// ofClaimWhere returns the sets of which an ordinal has a claim of this name, out of those that which selects. The name
// is TEMPLATE-SET-ORDINAL, and both words may contain hyphens. So each part of it that may name a set is looked
// up: a claim wakes at most as many sets as its name has hyphens, however many the namespace has.
func (r *Reconciler) ofClaimWhere(ctx context.Context, o client.Object, which func(*core.Set) bool) []types.NamespacedName {
	var out []types.NamespacedName
	words := strings.Split(o.GetName(), "-")
	for k := 1; k < len(words)-1; k++ {
		template := strings.Join(words[:k], "-")
		key := types.NamespacedName{Namespace: o.GetNamespace(), Name: strings.Join(words[k:len(words)-1], "-")}
		if _, member := core.Ordinal(key.Name, strings.Join(words[k:], "-")); !member {
			continue
		}
		set := r.kind.empty()
		if r.client.Get(ctx, key, set, client.UnsafeDisableDeepCopy) != nil {
			continue // NotFound is the only error of the cache
		}
		s := r.kind.read(set)
		named := func(t corev1.PersistentVolumeClaim) bool { return t.Name == template }
		if which(s) && slices.ContainsFunc(s.Spec.VolumeClaimTemplates, named) {
			out = append(out, key)
		}
	}
	return out
}

// ofGrowing returns the set of a claim if the set waits for claims to grow.
func (r *Reconciler) ofGrowing(ctx context.Context, o client.Object) []types.NamespacedName {
	return r.ofClaimWhere(ctx, o, func(s *core.Set) bool { return meta.IsStatusConditionTrue(s.Status.Told, core.ClaimsOutdated) })
}

// ofBudget returns the sets that may wait for a budget of their namespace.
func (r *Reconciler) ofBudget(ctx context.Context, o client.Object) []types.NamespacedName {
	var out []types.NamespacedName
	for _, s := range r.setsIn(ctx, o.GetNamespace()) {
		if s.Evicts {
			out = append(out, types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
		}
	}
	return out
}

func (r *Reconciler) setsIn(ctx context.Context, namespace string) []*core.Set {
	list := r.kind.list()
	if r.client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy) != nil {
		return nil // the cache returns no errors
	}
	var out []*core.Set
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		set, _ := o.(client.Object)
		out = append(out, r.kind.read(set))
		return nil
	})
	return out
}
