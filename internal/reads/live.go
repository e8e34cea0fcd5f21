package reads

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Live reads from an API server, whatever answers are kept. It is no client.Reader, so that neither is taken for the other.
type Live struct{ from client.Reader }

// From returns the live reader of a client.
func From(c client.Reader) Live { return Live{c} }

// List lists objects.
func (l Live) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	return l.from.List(ctx, into, append(opts, fresh{})...)
}

// Seen is what an API server has just said of one object: how it is, or that there is none.
type Seen[O client.Object] struct {
	object O
	asked  bool
}

// Object returns the object, nil if there is none.
func (s Seen[O]) Object() O { return s.object }

// Asked reports whether an API server was asked. It is false for a Seen that no reader has returned.
func (s Seen[O]) Asked() bool { return s.asked }

// Get reads an object into o. That there is none is an answer, and no error.
func Get[O client.Object](ctx context.Context, on Live, key client.ObjectKey, o O) (Seen[O], error) {
	err := on.from.Get(ctx, key, o, fresh{})
	if apierrors.IsNotFound(err) {
		return Seen[O]{asked: true}, nil
	}
	if err != nil {
		return Seen[O]{}, err
	}
	return Seen[O]{object: o, asked: true}, nil
}

// fresh is the option of a read that no kept answer may stand in for.
type fresh struct{}

// ApplyToGet implements client.GetOption.
func (fresh) ApplyToGet(*client.GetOptions) {}

// ApplyToList implements client.ListOption.
func (fresh) ApplyToList(*client.ListOptions) {}

// AreLive reports whether the options of a read are those of Live. Whatever keeps answers asks this first.
func AreLive[O any](opts []O) bool {
	return slices.ContainsFunc(opts, func(o O) bool {
		_, is := any(o).(fresh)
		return is
	})
}
