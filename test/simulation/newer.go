package simulation

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/stsmigrate/stsmigrate/plans"
)

// An API server that is newer than this program has fields that the program's types do not have. Here their
// names begin with "future". They are kept beside the typed object, as a tree that holds nothing else. They
// are lost as with a real API server: by an update that does not have them, and by a patch that replaces the
// list that contains them.

// newer returns the fields that a newer API server has in an object, or nil for a kind without such fields.
func newer(o client.Object) any {
	type fields = map[string]any
	switch o := o.(type) {
	case *appsv1.StatefulSet:
		var claims []any
		for range o.Spec.VolumeClaimTemplates {
			claims = append(claims, fields{"spec": fields{"futureClaim": "template"}})
		}
		return fields{"spec": fields{
			"futureSet": "set", "volumeClaimTemplates": claims,
			"template": fields{"spec": fields{"futurePod": fields{"precious": "yes"}, "containers": []any{fields{"futureContainer": int64(1)}}}},
		}}
	case *corev1.PersistentVolumeClaim:
		return fields{"spec": fields{"futureClaim": "claim", "resources": fields{"futureNeed": "more"}}}
	case *corev1.PersistentVolume:
		if o.Spec.CSI == nil {
			return fields{"spec": fields{"futureVolume": true}}
		}
		return fields{"spec": fields{"futureVolume": true, "csi": fields{"futureDriver": "driver"}}}
	case *policyv1.PodDisruptionBudget:
		return fields{"spec": fields{"futureBudget": "budget"}}
	case *corev1.Service:
		return fields{"spec": fields{"futureService": "service"}}
	case *batchv1.Job:
		return fields{"spec": fields{"futureJob": "job"}}
	case *corev1.ConfigMap, *corev1.Secret:
		return fields{"futureContent": "content"}
	}
	return nil
}

// record reports whether an object is one of the plan's own.
func record(o client.Object) bool { return o.GetLabels()[plans.PlanLabel] != "" }

// grow adds the fields of a newer API server to every object.
func (w *world) grow() {
	for _, s := range w.stores {
		s.newer = true
		for _, k := range s.order {
			if o := s.objects[k]; !record(o) {
				s.future[k] = newer(o)
			}
		}
	}
}

// nothingDropped requires these fields on every object, from the moment of its creation.
func (w *world) nothingDropped() {
	for _, s := range w.stores {
		if !s.newer {
			return
		}
		for _, k := range s.order {
			o := s.objects[k]
			if want := newer(o); !record(o) && !reflect.DeepEqual(want, s.future[k]) {
				w.fail("S8", "%s of cluster %s has lost fields that are not known here (-want +got):\n%s", k, s.name, cmp.Diff(want, s.future[k]))
			}
		}
	}
}

// whole returns an object with its future fields.
func (s *store) whole(k key) map[string]any {
	doc, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.objects[k])
	must(err)
	plant(doc, s.future[k])
	return doc
}

// split stores the known fields of an object with the given write, and the others beside it.
func (s *store) split(doc map[string]any, into client.Object, write func(client.Object) error) error {
	must(runtime.DefaultUnstructuredConverter.FromUnstructured(doc, into))
	if err := write(into); err != nil {
		return err
	}
	if _, ok := s.objects[keyOf(into)]; ok && s.newer {
		s.future[keyOf(into)] = futures(doc)
	}
	return nil
}

func (s *store) createWhole(ctx context.Context, u *unstructured.Unstructured) error {
	typed, err := s.kinds.New(u.GroupVersionKind())
	must(err)
	o, ok := typed.(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", typed)
	}
	err = s.split(u.Object, o, func(o client.Object) error {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as with every other object that is stored
		return s.Create(ctx, o)
	})
	if err == nil {
		s.answer(keyOf(o), o, u)
	}
	return err
}

// GroupVersionKindFor implements client.Client.
func (s *store) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, s.kinds)
}

// futures returns the tree of the future fields in a document, or nil if there are none.
func futures(doc any) any {
	switch d := doc.(type) {
	case map[string]any:
		out := map[string]any{}
		for field, v := range d {
			if !strings.HasPrefix(field, "future") {
				v = futures(v)
			}
			if v != nil {
				out[field] = v
			}
		}
		if len(out) > 0 {
			return out
		}
	case []any:
		out, some := make([]any, len(d)), false
		for i, v := range d {
			out[i] = futures(v)
			some = some || out[i] != nil
		}
		if some {
			return out
		}
	}
	return nil
}

// plant adds a tree of future fields to a document.
func plant(doc, tree any) {
	switch t := tree.(type) {
	case map[string]any:
		d, _ := doc.(map[string]any)
		for field, v := range t {
			if strings.HasPrefix(field, "future") && d != nil {
				d[field] = v
			} else {
				plant(d[field], v)
			}
		}
	case []any:
		d, _ := doc.([]any)
		for i := range min(len(d), len(t)) {
			plant(d[i], t[i])
		}
	}
}
