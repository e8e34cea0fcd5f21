package reach

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// A plan is kept at its home: in the namespace of its destination, or of its orchestrator. Who looks for it where its
// set is sees the mark of the plan on the set, and is led to the home from there.

// The other contexts of the kubeconfig that are looked at for a plan, and how long each may take.
const (
	maxContexts = 8
	contextTime = 5 * time.Second
)

// byMark finds the home of a plan of which a set has the mark, in the namespace that the flags name on either side. It
// returns nil if no set has one, or if no cluster in reach has the record of that very plan.
func (r *Flags) byMark(ctx context.Context, name string) (*plans.Plan, *End) {
	from, err := r.open(r.source)
	if err != nil {
		return nil, nil
	}
	ends := []*End{from}
	if asked(r.destination) {
		if to, err := r.open(r.destination); err == nil {
			ends = append(ends, to)
		}
	}
	var m *mark
	for _, e := range ends {
		if m = marked(ctx, e, name); m != nil {
			break
		}
	}
	if m == nil {
		return nil, nil
	}
	for _, e := range ends {
		if p, home := m.holds(ctx, e, name); home != nil {
			return p, home
		}
	}
	return r.elsewhereIn(ctx, ends, name, m)
}

// mark is the mark of a plan on a set. Any tenant who can change the set may have written it.
type mark struct {
	id  string
	set plans.Ref
	at  *End // where it was seen
}

// known returns the mark with the identity of its cluster as the plan knows it.
func (m mark) known(ctx context.Context, p *plans.Plan) mark {
	for _, side := range plans.Sides() {
		if r := p.On(side); r.KnownBy != "" && r.Namespace == m.set.Namespace {
			m.set.Cluster, _ = clusters.UIDOf(ctx, m.at.Client, r) // what cannot be read is no cluster of the plan
		}
	}
	return m
}

// of reports whether the plan is the one of the mark, and moves the very set that has it: the mark on another set must
// not lead a command to a plan that its user does not mean.
func (m mark) of(p *plans.Plan) bool {
	is := func(r plans.Ref) bool {
		return r.Cluster == m.set.Cluster && r.Namespace == m.set.Namespace && r.Name == m.set.Name
	}
	return p.ID == m.id && (is(p.Source) || is(p.Destination))
}

// marked returns the mark of a plan of that name on a set of the namespace, or nil.
func marked(ctx context.Context, e *End, name string) *mark {
	for plan, m := range e.marks(ctx) {
		if plan == name {
			return &m
		}
	}
	return nil
}

// Marks returns the names of the plans of which a set of the namespace has the mark.
func (e *End) Marks(ctx context.Context) []string {
	names := map[string]bool{}
	for plan := range e.marks(ctx) {
		names[plan] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// marks yields the marks on the sets of the namespace, each with the name of its plan.
func (e *End) marks(ctx context.Context) iter.Seq2[string, mark] {
	return func(yield func(string, mark) bool) {
		cluster, err := clusters.ClusterUID(ctx, e.Client)
		if err != nil && !apierrors.IsForbidden(err) {
			return
		}
		for _, kind := range []schema.GroupVersionKind{appsv1.SchemeGroupVersion.WithKind("StatefulSetList"), v1alpha1.GroupVersion().WithKind("StatefulSetSliceList")} {
			var list metav1.PartialObjectMetadataList
			list.SetGroupVersionKind(kind)
			if e.Client.List(ctx, &list, client.InNamespace(e.Namespace)) != nil {
				continue // a cluster without slices, or without the right to list them
			}
			for _, o := range list.Items {
				id, _, _ := strings.Cut(o.Annotations[plans.StampAnnotation], "/")
				if at := strings.LastIndex(id, "-"); at > 0 && !yield(id[:at], mark{id, plans.Ref{Cluster: cluster, Namespace: o.Namespace, Name: o.Name}, e}) {
					return
				}
			}
		}
	}
}

// holds returns the plan of the mark, and its home, in a cluster that keeps it.
func (m mark) holds(ctx context.Context, e *End, name string) (*plans.Plan, *End) {
	var list corev1.ConfigMapList
	if e.Client.List(ctx, &list, client.MatchingLabels{plans.PlanLabel: name}) != nil {
		list.Items = []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace}}} // without the right to list all
	}
	for _, cm := range list.Items {
		if p, err := records.NewStore(e.Client, cm.Namespace, name).Plan(ctx); err == nil && m.known(ctx, p).of(p) {
			home := *e
			home.Namespace = cm.Namespace
			return p, &home
		}
	}
	return nil, nil
}

// elsewhereIn looks for the plan in the clusters of the other contexts, all at once.
func (r *Flags) elsewhereIn(ctx context.Context, seen []*End, name string, m *mark) (p *plans.Plan, home *End) {
	var others []*End
	for _, c := range r.Contexts("") {
		known := false
		for _, e := range seen {
			known = known || e.Context == c
		}
		if known || len(others) == maxContexts {
			continue
		}
		flags := genericclioptions.NewConfigFlags(false)
		*flags.KubeConfig, *flags.Context = *r.source.KubeConfig, c
		if e, err := r.open(flags); err == nil {
			others = append(others, e)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, contextTime)
	defer cancel()
	var all sync.WaitGroup
	var lock sync.Mutex
	for _, e := range others {
		all.Go(func() {
			found, at := m.holds(ctx, e, name)
			lock.Lock()
			defer lock.Unlock()
			if at != nil && home == nil {
				p, home = found, at
			}
		})
	}
	all.Wait()
	return p, home
}
