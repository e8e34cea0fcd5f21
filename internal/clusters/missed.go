package clusters

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Right is a right to look that a user does not have: to list the objects of a resource in a namespace, or in the whole
// cluster.
type Right struct {
	Resource  string `json:"resource"`
	Group     string `json:"group,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// String returns the resource as kubectl names it.
func (r Right) String() string {
	if r.Group == "" {
		return r.Resource
	}
	return r.Resource + "." + r.Group
}

// Compare orders rights by resource and namespace.
func (r Right) Compare(o Right) int {
	return cmp.Or(cmp.Compare(r.String(), o.String()), cmp.Compare(r.Namespace, o.Namespace))
}

// Missed are the rights for whose want something was not looked at. It is safe for concurrent use.
type Missed struct {
	lock   sync.Mutex
	rights map[Right]bool
}

// Rights returns them in order.
func (m *Missed) Rights() []Right {
	m.lock.Lock()
	defer m.lock.Unlock()
	return slices.SortedFunc(maps.Keys(m.rights), Right.Compare)
}

// missedKey is the key of a context for what its reads miss.
type missedKey struct{}

// Missing returns a context whose reads by the clients of Many note the rights that they miss.
func Missing(ctx context.Context) (context.Context, *Missed) {
	m := &Missed{rights: map[Right]bool{}}
	return context.WithValue(ctx, missedKey{}, m), m
}

// missed notes a refusal.
func missed(ctx context.Context, err error, namespace string) {
	m, ok := ctx.Value(missedKey{}).(*Missed)
	if !ok || !apierrors.IsForbidden(err) {
		return
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	m.rights[RightOf(err, namespace)] = true
}

// RightOf returns the right that a refusal speaks of.
func RightOf(err error, namespace string) Right {
	r := Right{Namespace: namespace}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		r.Resource, r.Group = status.Status().Details.Kind, status.Status().Details.Group
	}
	return r
}

func labelsOf(o client.Object) labels.Set { return o.GetLabels() }
