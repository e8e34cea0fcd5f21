package orchestrator

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/orchestrator/fleet"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// cached returns what the process remembers of its namespace, and of the requests of others: little, whatever is written
// there (records.Keep).
func cached(namespace string, others []string) cache.Options {
	from := map[string]cache.Config{namespace: {}}
	for _, other := range others {
		from[other] = cache.Config{}
	}
	if slices.Contains(others, All) {
		from = map[string]cache.Config{cache.AllNamespaces: {}}
	}
	ours, err := labels.NewRequirement(plans.PlanLabel, selection.Exists, nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	return cache.Options{
		DefaultNamespaces: map[string]cache.Config{namespace: {}}, ReaderFailOnMissingInformer: true,
		DefaultTransform: slimmed,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Label: labels.NewSelector().Add(*ours)}, records.NewDeclared("", ""): {Namespaces: from},
		},
	}
}

// slimmed returns what is remembered of an object. Kubernetes cannot select the Secrets of clusters by one label, since other
// programs mark theirs in their own way.
func slimmed(o any) (any, error) {
	if s, is := o.(*corev1.Secret); is {
		fleet.Keep(s)
		return s, nil
	}
	return records.Keep(o)
}

// reading reads what is watched, and live what is not kept of it. So it finds also the record of a plan that has
// lost its label, and is as fresh as the watch or fresher.
type reading struct {
	client.Client
	live client.Reader
	// contents reports that the contents of objects are needed too.
	contents bool
}

// Get implements client.Reader.
func (r reading) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	err := r.Client.Get(ctx, key, o, options...)
	cm, record := o.(*corev1.ConfigMap)
	unseen, lacks := record && apierrors.IsNotFound(err), err == nil && r.contents && records.LeftOut(o)
	if !unseen && !lacks {
		return err
	}
	if u, is := o.(*unstructured.Unstructured); is { // no decoder empties an object first
		u.Object = records.NewDeclared(key.Namespace, "").Object
	}
	if record {
		*cm = corev1.ConfigMap{}
	}
	return r.live.Get(ctx, key, o, options...)
}

// there reads whether objects exist, and their metadata.
func there(w *Setup) client.Client { return reading{w.Cached, w.Live, false} }

// entire reads objects as they are.
func entire(w *Setup) client.Client { return reading{w.Cached, w.Live, true} }

// mostKnown is how many bytes of decoded plans are kept, besides those under way in this process. The others are read again
// when they are needed.
const mostKnown = 16 << 20

// recall is what the plans take that were read, in bytes.
type recall struct{ bytes int64 }

// learn keeps a plan. Where all take too much, others than this one are read again when they are needed. The caller holds
// the lock.
func (r *recall) learn(all map[string]*planState, s *planState, k known) {
	r.unlearn(s)
	k.bytes = weight.Of(k.plan)
	s.known = k
	r.bytes += k.bytes
	for _, other := range all {
		if r.bytes <= mostKnown {
			return
		}
		if other != s && other.run == nil {
			r.unlearn(other)
		}
	}
	if r.bytes > mostKnown {
		r.unlearn(s)
	}
}

// unlearn forgets what a plan is. The caller holds the lock.
func (r *recall) unlearn(s *planState) {
	r.bytes -= s.known.bytes
	s.known.plan, s.known.bytes = nil, 0
}
