package controller_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/stsmigrate/stsmigrate/slicecontroller/typed"
	applyv1alpha1 "github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1/applyconfiguration/slicecontroller/v1alpha1"
)

// A program applies a slice server-side with the typed client. Fields that it does not set belong to other
// writers. It can read its own fields again and change them.
func TestASliceIsAppliedByTheTypedClient(t *testing.T) {
	t.Parallel()
	s := place(t)
	c, err := typed.New(bed.West.Config())
	if err != nil {
		t.Fatal(err)
	}
	slices := c.StatefulSetSlices(s.namespace)
	mine := applyv1alpha1.StatefulSetSlice("web", s.namespace).WithSpec(applyv1alpha1.StatefulSetSliceSpec().
		WithOrdinals(applyv1alpha1.Ordinals().WithStart(3)).
		WithSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{"app": "web"})).
		WithTemplate(applycorev1.PodTemplateSpec().WithLabels(map[string]string{"app": "web"}).
			WithSpec(applycorev1.PodSpec().WithContainers(applycorev1.Container().WithName("web").WithImage("web")))))
	if _, err := slices.Apply(t.Context(), mine, metav1.ApplyOptions{FieldManager: "author"}); err != nil {
		t.Fatal(err)
	}
	s.until(t, "one pod, which is the default", s.has("web-3"))
	if err := s.patch(t.Context(), `{"replicas":2}`); err != nil { // another writer, such as an autoscaler
		t.Fatal(err)
	}
	have, err := slices.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := applyv1alpha1.ExtractStatefulSetSlice(have, "author")
	if err != nil {
		t.Fatal(err)
	}
	if again.Spec.Replicas != nil || *again.Spec.Ordinals.Start != 3 || *again.Spec.Template.Spec.Containers[0].Image != "web" {
		t.Errorf("what was applied is read as %+v", again.Spec)
	}
	again.Spec.WithMinReadySeconds(1)
	after, err := slices.Apply(t.Context(), again, metav1.ApplyOptions{FieldManager: "author"})
	if err != nil {
		t.Fatal(err)
	}
	if *after.Spec.Replicas != 2 || after.Spec.MinReadySeconds != 1 {
		t.Errorf("after it is applied again: %+v", after.Spec)
	}
	s.until(t, "two pods", func(ctx context.Context) bool { return s.has("web-3", "web-4")(ctx) })
	list, err := slices.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}
