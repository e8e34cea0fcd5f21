package writes

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Whole is an object with all fields from its API server, known to this program or not.
type Whole struct {
	kind       schema.GroupVersionKind
	raw, known map[string]any
}

// Read reads the whole object again. It returns a conflict if the UID is not that of o. o may also
// have no more than a name.
func Read(ctx context.Context, on client.Client, o client.Object) (Whole, error) {
	kind, err := on.GroupVersionKindFor(o)
	if err != nil {
		return Whole{}, err
	}
	var u unstructured.Unstructured
	u.SetGroupVersionKind(kind)
	key := client.ObjectKeyFromObject(o)
	if err := on.Get(ctx, key, &u); err != nil {
		return Whole{}, fmt.Errorf("reading %s %s: %w", kind.Kind, key, err)
	}
	if uid := o.GetUID(); uid != "" && u.GetUID() != uid {
		return Whole{}, apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.String(), errors.New("it was deleted and recreated"))
	}
	return of(kind, u.Object, o)
}

// Decode decodes an object of the type of o from JSON.
func Decode(kind schema.GroupVersionKind, raw []byte, o client.Object) (Whole, error) {
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return Whole{}, err
	}
	return of(kind, doc, o)
}

func of(kind schema.GroupVersionKind, raw map[string]any, o client.Object) (Whole, error) {
	typed := reflect.New(reflect.TypeOf(o).Elem()).Interface()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, typed); err != nil {
		return Whole{}, err
	}
	known, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	return Whole{kind, content(raw), content(known)}, err
}

// content returns an object without the fields that every object has, and without its status: these
// are set anew for every object.
func content(doc map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range doc {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, k) {
			out[k] = v
		}
	}
	return out
}

// Unknown lists the fields that the types of this program do not have.
func (w Whole) Unknown() []string { return unknown(w.raw, w.known, "") }

// Like returns next, a typed object made from the known fields of this one, with all unknown fields
// of this one added. It returns next itself if there are none.
func (w Whole) Like(next client.Object) (client.Object, error) {
	if len(w.Unknown()) == 0 {
		return next, nil
	}
	doc, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
	if err != nil {
		return nil, err
	}
	out := carriedFields(w.raw, w.known, content(doc))
	out["metadata"] = doc["metadata"]
	u := &unstructured.Unstructured{Object: out}
	u.SetGroupVersionKind(w.kind)
	return u, nil
}

// Create creates next, a typed object made from the known fields of this one, with all unknown fields
// of this one added. It fails if the API server does not know such a field either and would drop it.
// Afterwards next is the object as the API server returned it.
func (w Whole) Create(ctx context.Context, on client.Client, next client.Object, opts ...client.CreateOption) error {
	made, err := w.Like(next)
	if err != nil {
		return err
	}
	u, ok := made.(*unstructured.Unstructured)
	if !ok {
		return on.Create(ctx, next, opts...)
	}
	if err := on.Create(ctx, u, append(opts, client.FieldValidation(metav1.FieldValidationStrict))...); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, next)
}

// Copy creates next, which was made from an object that was read as src, with all unknown fields of
// src added.
func Copy(ctx context.Context, from client.Client, src client.Object, to client.Client, next client.Object, opts ...client.CreateOption) error {
	whole, err := Read(ctx, from, src)
	if err != nil {
		return err
	}
	return whole.Create(ctx, to, next, opts...)
}
