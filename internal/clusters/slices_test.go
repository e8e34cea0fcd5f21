package clusters

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// A slice that leaves out ordinals is no range, so nothing that moves or replaces a set may read it as a StatefulSet:
// the pods of a StatefulSet would be others (S6).
func TestASliceWithGapsIsNotRead(t *testing.T) {
	slice := &v1alpha1.StatefulSetSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	ref := plans.Ref{Namespace: "shop", Name: "web", Kind: plans.SliceKind}
	read := func() error {
		on := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(slice.DeepCopy()).Build()
		_, err := ReadSet(t.Context(), InWordsOf(on, ref), ref)
		return err
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	slice.Spec.ReserveOrdinals = []int32{1}
	if err := read(); err == nil || !strings.Contains(err.Error(), "StatefulSetSlice shop/web leaves out ordinals (spec.reserveOrdinals)") {
		t.Errorf("it is read: %v", err)
	}
}
