package trials

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// trier sends the writes of a plan as dry runs.
type trier struct {
	check.Inspection
	seen *seen
}

// seen is what a run of one check could not send.
type seen struct {
	lock sync.Mutex
	// unmade are the writes to objects that do not exist yet, and unheard those that a webhook with side effects keeps from
	// being tried.
	unmade, unheard []ask
	why             error // what was said of the first of those
}

// request is the dry run of a write.
type request struct {
	ask

	name string // of the object
	like string // what an API server that lets one of them through lets through
	send func(context.Context) error
}

// answered tries writes concurrently, and returns the findings in the order of the writes.
func answered(ctx context.Context, i check.Inspection, all []ask) ([]check.Finding, error) {
	t := trier{i, &seen{}}
	requests := make([]*request, len(all))
	if err := eachOf(ctx, len(all), func(ctx context.Context, k int) (err error) {
		requests[k], err = t.request(ctx, all[k])
		return err
	}); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	requests = slices.DeleteFunc(requests, func(r *request) bool {
		if r == nil || known[r.like] {
			return true
		}
		known[r.like] = true
		return false
	})
	found := make([][]check.Finding, len(requests))
	if err := eachOf(ctx, len(requests), func(ctx context.Context, k int) (err error) {
		found[k], err = t.judged(requests[k].ask, requests[k].name, requests[k].send(ctx))
		return err
	}); err != nil {
		return nil, err
	}
	out := append(slices.Concat(found...), t.unheard()...)
	later, err := t.foretold(ctx)
	return append(out, later...), err
}

// eachOf does so much concurrently.
func eachOf(ctx context.Context, n int, one func(context.Context, int) error) error {
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(check.MaxConcurrentRequests)
	for k := range n {
		g.Go(func() (err error) {
			defer plans.RecoverPanic(&err)
			return one(within, k)
		})
	}
	return g.Wait()
}

// request returns the dry run of a write, nil if there is nothing to send.
func (t trier) request(ctx context.Context, a ask) (*request, error) {
	if _, gone := t.On[a.Side].(clusters.Gone); gone {
		return nil, nil
	}
	how := kinds()[native(t.Plan, a)]
	if how.empty == nil {
		return nil, fmt.Errorf("no trial is known for a %s", a.Kind)
	}
	var r *request
	var err error
	if a.Verb == part.Create {
		r, err = t.creation(ctx, a, how)
	} else {
		r, err = t.change(ctx, a, how)
	}
	switch {
	case apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		return nil, nil // the check permissions reports it, or the one that needs the kind
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", t.object(a), err)
	}
	return r, nil
}

// native is the kind as which a set of any kind is read and written.
func native(p *plans.Plan, a ask) string {
	if a.Kind == p.On(a.Side).SetKind() {
		return plans.NativeKind
	}
	return a.Kind
}

// creation tries to create an object, or a copy of one of the source.
func (t trier) creation(ctx context.Context, a ask, how kind) (*request, error) {
	if how.made == nil {
		return nil, nil
	}
	next, original, err := how.made(ctx, t, a)
	if err != nil || next == nil {
		return nil, err
	}
	plans.Stamp{Plan: t.Plan.ID, Epoch: 1, Seq: 1}.Put(next)
	on := t.On[a.Side]
	return &request{a, a.Name, t.alike(a, next), func(ctx context.Context) error {
		if original == nil {
			return t.holding(ctx, a, how, on.Create(ctx, next, client.DryRunAll))
		}
		return writes.Copy(ctx, t.On[plans.Source], original, on, next, client.DryRunAll)
	}}, nil
}

// change tries to change or delete an object.
func (t trier) change(ctx context.Context, a ask, how kind) (*request, error) {
	on := t.On[a.Side]
	o, err := t.existing(ctx, a, how)
	if err != nil || o == nil {
		return nil, err
	}
	if a.Verb == part.Delete {
		background := client.PropagationPolicy(metav1.DeletePropagationBackground)
		return &request{a, o.GetName(), t.alike(a, o), func(ctx context.Context) error { return writes.TryDelete(ctx, on, o, background) }}, nil
	}
	next, _ := o.DeepCopyObject().(client.Object)
	stamp := plans.Stamp{Plan: t.Plan.ID, Epoch: 1}
	if have, ours := plans.Stamped(o); ours {
		stamp = have
	}
	stamp.Seq++
	stamp.Put(next)
	if how.changed != nil {
		how.changed(t, a, next)
	}
	return &request{a, o.GetName(), t.alike(a, o), func(ctx context.Context) error { return writes.Change(ctx, on, o, next, client.DryRunAll) }}, nil
}

// alike is the same for writes of which one stands for all. For a wave each is tried.
func (t trier) alike(a ask, o client.Object) string {
	what := o.GetName()
	if !t.Midway {
		what = like(o)
	}
	return fmt.Sprintf("%s %s %s %s %s", a.operation(), a.Side, a.Kind, a.Namespace, what)
}

// like returns what a policy may know of an object besides its name: labels, annotations, finalizers, and of a claim or a
// volume what it asks for.
func like(o client.Object) string {
	notes := maps.Clone(o.GetAnnotations())
	maps.DeleteFunc(notes, func(k, _ string) bool {
		domain, _, _ := strings.Cut(k, "/")
		return strings.HasSuffix(domain, "kubernetes.io") || strings.HasSuffix(domain, "stsmigrate.dev")
	})
	labels := maps.Clone(o.GetLabels())
	maps.DeleteFunc(labels, func(k, _ string) bool {
		return k == "apps.kubernetes.io/pod-index" || k == "statefulset.kubernetes.io/pod-name"
	})
	var asks any
	switch o := o.(type) {
	case *corev1.PersistentVolumeClaim:
		asks = []any{o.Spec.StorageClassName, o.Spec.AccessModes, o.Spec.Resources}
	case *corev1.PersistentVolume:
		asks = []any{o.Spec.StorageClassName, o.Spec.AccessModes, o.Spec.Capacity, o.Spec.PersistentVolumeReclaimPolicy}
	default:
		asks = o.GetName()
	}
	out, err := json.Marshal([]any{labels, notes, o.GetFinalizers(), asks})
	if err != nil {
		return o.GetName()
	}
	return string(out)
}
