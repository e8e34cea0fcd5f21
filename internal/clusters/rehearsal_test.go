package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// answerDryRun answers a patch with what would be stored. The fake client alone answers a dry run with the request.
func answerDryRun(ctx context.Context, on client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	var options client.PatchOptions
	if options.ApplyOptions(opts); len(options.DryRun) == 0 {
		return on.Patch(ctx, o, patch, opts...)
	}
	change, err := patch.Data(o)
	if err != nil {
		return err
	}
	reflect.ValueOf(o).Elem().Set(reflect.New(reflect.TypeOf(o).Elem()).Elem())
	if err := on.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, o); err != nil {
		return err
	}
	stored, err := json.Marshal(o)
	if err != nil {
		return err
	}
	next, err := jsonpatch.MergePatch(stored, change)
	if err != nil {
		return err
	}
	reflect.ValueOf(o).Elem().Set(reflect.New(reflect.TypeOf(o).Elem()).Elem())
	return json.Unmarshal(next, o)
}

// An API server stores no dry run, and answers each as if it were the first. The one that follows still has to see what
// the earlier ones would have changed.
func TestARehearsalRemembersEveryPatchOfAnObject(t *testing.T) {
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Annotations: map[string]string{"stamp": "p/1/2", "kept": "yes"}},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(3))},
	}
	for name, c := range map[string]struct {
		stored client.Object
		over   func(client.Client) client.Client
	}{
		"set":   {set, func(c client.Client) client.Client { return c }},
		"slice": {v1alpha1.FromNative(set), func(c client.Client) client.Client { return sliceClient{c} }},
	} {
		under := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(c.stored).WithInterceptorFuncs(interceptor.Funcs{Patch: answerDryRun}).Build()
		server := c.over(under)
		on := NewRehearsal().Client(plans.Source, server)
		for _, change := range []func(*appsv1.StatefulSet){
			func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(2)) },
			func(s *appsv1.StatefulSet) { delete(s.Annotations, "stamp") },
			func(s *appsv1.StatefulSet) { s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 1} },
		} {
			was := &appsv1.StatefulSet{}
			if err := on.Get(t.Context(), client.ObjectKeyFromObject(set), was); err != nil {
				t.Fatal(err)
			}
			next := was.DeepCopy()
			change(next)
			if err := writes.Change(t.Context(), on, was, next); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		var tried, stored appsv1.StatefulSet
		err := errors.Join(on.Get(t.Context(), client.ObjectKeyFromObject(set), &tried), server.Get(t.Context(), client.ObjectKeyFromObject(set), &stored))
		if err != nil {
			t.Fatal(err)
		}
		if *tried.Spec.Replicas != 2 || tried.Annotations["stamp"] != "" || tried.Annotations["kept"] != "yes" || tried.Spec.Ordinals == nil || tried.Spec.Ordinals.Start != 1 {
			t.Errorf("%s: a read after three patches sees %v, %+v", name, tried.Annotations, tried.Spec)
		}
		if *stored.Spec.Replicas != 3 || stored.Annotations["stamp"] == "" || stored.Spec.Ordinals != nil {
			t.Errorf("%s: a dry run was stored: %v, %+v", name, stored.Annotations, stored.Spec)
		}
	}
}

// What a look sends as a dry run to see what an API server makes of it is no write of the plan.
func TestTheTrialOfALookIsNoneOfTheRehearsal(t *testing.T) {
	under := fake.NewClientBuilder().WithScheme(Scheme()).Build()
	r := NewRehearsal()
	on := r.Client(plans.Source, under)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-dry-run"}}
	if err := on.Create(t.Context(), set, client.DryRunAll); err != nil || len(r.Trials) > 0 {
		t.Errorf("%v, %v", r.Trials, err)
	}
	if err := on.Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}); err != nil || len(r.Trials) != 1 {
		t.Errorf("%v, %v", r.Trials, err)
	}
}
