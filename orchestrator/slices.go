package orchestrator

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// InTheWordsOf gives the clients of a plan: on a side whose set is a StatefulSetSlice,
// StatefulSets that are read are slices, and so are those that are written. The rest of
// the program knows one kind of sets.
func (c Clusters) InTheWordsOf(refs map[plans.Side]plans.Ref) Clusters {
	out := Clusters{}
	for side, on := range c {
		if refs[side].IsSlice() {
			on = sliced(on)
		}
		out[side] = on
	}
	return out
}

// resourceOf is the resource that a set is one of.
func resourceOf(set plans.Ref) schema.GroupVersionResource {
	if set.IsSlice() {
		return v1alpha1.GroupVersion().WithResource("statefulsetslices")
	}
	return appsv1.SchemeGroupVersion.WithResource("statefulsets")
}

func sliced(on client.Client) client.Client {
	if c, ok := on.(connection); ok { // which can do more than a client
		c.Client = sliceClient{c.Client}
		return c
	}
	return sliceClient{on}
}

// sliceClient is a client to which a StatefulSetSlice looks like a StatefulSet.
type sliceClient struct{ client.Client }

// Get implements client.Reader.
func (c sliceClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	set, ok := o.(*appsv1.StatefulSet)
	if !ok {
		return c.Client.Get(ctx, key, o, opts...)
	}
	var s v1alpha1.StatefulSetSlice
	if err := c.Client.Get(ctx, key, &s, opts...); err != nil {
		return err
	}
	*set = *s.Native()
	return nil
}

// Create implements client.Writer.
func (c sliceClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.write(o, func(o client.Object) error { return c.Client.Create(ctx, o, opts...) })
}

// Update implements client.Writer.
func (c sliceClient) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.write(o, func(o client.Object) error { return c.Client.Update(ctx, o, opts...) })
}

// Delete implements client.Writer.
func (c sliceClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.write(o, func(o client.Object) error { return c.Client.Delete(ctx, o, opts...) })
}

// write sends a set as a slice, and fills in what the API server made of it.
func (c sliceClient) write(o client.Object, send func(client.Object) error) error {
	set, ok := o.(*appsv1.StatefulSet)
	if !ok {
		return send(o)
	}
	s := v1alpha1.FromNative(set)
	if err := send(s); err != nil {
		return err
	}
	*set = *s.Native()
	return nil
}
