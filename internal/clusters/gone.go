package clusters

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Gone is the client of a cluster that no longer exists. Scheme and mapper come from the embedded
// client.
type Gone struct{ client.Client }

// Get implements client.Reader.
func (Gone) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: KindOf(o)}, key.Name)
}

// List implements client.Reader.
func (Gone) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// Create implements client.Writer.
func (Gone) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	return unreachable(o)
}

// Update implements client.Writer.
func (Gone) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	return unreachable(o)
}

// Patch implements client.Writer.
func (Gone) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return unreachable(o)
}

// Delete implements client.Writer.
func (Gone) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	return unreachable(o)
}

func unreachable(o client.Object) error {
	return fmt.Errorf("%s %s/%s cannot be written: the cluster is gone, as the user has vouched", KindOf(o), o.GetNamespace(), o.GetName())
}
