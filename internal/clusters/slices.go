package clusters

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// ReadSet reads a set with a client from InWordsOf; nil means that there is none.
func ReadSet(ctx context.Context, on client.Client, set plans.Ref) (*appsv1.StatefulSet, error) {
	var s appsv1.StatefulSet
	err := on.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: set.Name}, &s)
	return FoundSet(&s, set, err)
}

// FoundSet converts the result of reading a set: nil means that there is none.
func FoundSet[T any](found *T, set plans.Ref, err error) (*T, error) {
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("%s: the cluster does not know StatefulSetSlices: install the kind and the slice controller first (docs/slicecontroller.md): %w", set, err)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", set.Set(), err)
	}
	return found, nil
}

// OwnerOf returns the reference by which an object goes with the set of a side.
func OwnerOf(ref plans.Ref, set *appsv1.StatefulSet) metav1.OwnerReference {
	version := appsv1.SchemeGroupVersion
	if ref.IsSlice() {
		version = v1alpha1.GroupVersion()
	}
	return metav1.OwnerReference{APIVersion: version.String(), Kind: ref.SetKind(), Name: set.Name, UID: set.UID}
}

// ResourceOf returns the resource of a set's kind.
func ResourceOf(set plans.Ref) schema.GroupVersionResource {
	if set.IsSlice() {
		return v1alpha1.GroupVersion().WithResource("statefulsetslices")
	}
	return appsv1.SchemeGroupVersion.WithResource("statefulsets")
}

// sliceClient is a client that presents StatefulSetSlices as StatefulSets.
type sliceClient struct{ client.Client }

// Get implements client.Reader.
func (c sliceClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if u, ok := wholeSet(o); ok {
		var set appsv1.StatefulSet
		if err := c.Get(ctx, key, &set, opts...); err != nil {
			return err
		}
		doc, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&set)
		u.SetUnstructuredContent(doc) // a slice with unknown fields was refused above
		u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(plans.NativeKind))
		return err
	}
	set, ok := o.(*appsv1.StatefulSet)
	if !ok {
		return c.Client.Get(ctx, key, o, opts...)
	}
	var s v1alpha1.StatefulSetSlice
	if err := c.Client.Get(ctx, key, &s, opts...); err != nil {
		return err
	}
	if err := Understood(&s); err != nil {
		return err
	}
	if len(s.Spec.ReserveOrdinals) > 0 {
		return fmt.Errorf("StatefulSetSlice %s leaves out ordinals (spec.reserveOrdinals), and what moves or replaces a set knows only ranges without gaps: remove that field first, or do without", key)
	}
	*set = *s.Native()
	return nil
}

// Understood returns an error if a slice has fields that this program does not know.
func Understood(s *v1alpha1.StatefulSetSlice) error {
	if len(s.Unknown) == 0 {
		return nil
	}
	return fmt.Errorf("StatefulSetSlice %s has fields that this release does not know (%s), and a write would lose them: use the release that it was written for", client.ObjectKeyFromObject(s), strings.Join(s.Unknown, ", "))
}

// Create implements client.Writer.
func (c sliceClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.write(o, func(o client.Object) error { return c.Client.Create(ctx, o, opts...) })
}

// Update implements client.Writer.
func (c sliceClient) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.write(o, func(o client.Object) error { return c.Client.Update(ctx, o, opts...) })
}

// Patch implements client.Writer. For a set it accepts only the patches of package writes.
func (c sliceClient) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if _, ok := o.(*appsv1.StatefulSet); ok {
		change, ok := patch.(writes.Patch)
		if !ok {
			return fmt.Errorf("%T of StatefulSet %s cannot be translated for a StatefulSetSlice", patch, client.ObjectKeyFromObject(o))
		}
		translated, err := ofSlice(change)
		if err != nil {
			return fmt.Errorf("patch of StatefulSet %s: %w", client.ObjectKeyFromObject(o), err)
		}
		patch = translated
	}
	return c.write(o, func(o client.Object) error { return c.Client.Patch(ctx, o, patch, opts...) })
}

// ofSlice returns the patch of a slice that a patch of its set means.
func ofSlice(change writes.Patch) (out writes.Patch, err error) {
	was, ok := change.Was.(*appsv1.StatefulSet)
	if !ok {
		return out, fmt.Errorf("it is made from %T", change.Was)
	}
	out.Was = v1alpha1.FromNative(was)
	if next, ok := change.Next.(*appsv1.StatefulSet); ok {
		out.Next = v1alpha1.FromNative(next)
	}
	if change.Before != nil {
		before, err := ofSlice(*change.Before)
		if err != nil {
			return out, err
		}
		out.Before = &before
	}
	return out, nil
}

// Delete implements client.Writer.
func (c sliceClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.write(o, func(o client.Object) error { return c.Client.Delete(ctx, o, opts...) })
}

// wholeSet returns a StatefulSet read as unstructured, with the fields that this program does not know.
func wholeSet(o client.Object) (*unstructured.Unstructured, bool) {
	u, ok := o.(*unstructured.Unstructured)
	return u, ok && u.GroupVersionKind().GroupKind() == appsv1.SchemeGroupVersion.WithKind(plans.NativeKind).GroupKind()
}

// write sends a set as a slice, and fills in the API server's result.
func (c sliceClient) write(o client.Object, send func(client.Object) error) error {
	if _, ok := wholeSet(o); ok {
		return apierrors.NewBadRequest(fmt.Sprintf("StatefulSet %s has fields that this release does not know, and a StatefulSetSlice would lose them: use a newer release, or move it to a StatefulSet", o.GetName()))
	}
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
