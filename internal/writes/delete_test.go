package writes

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A recreated object has another UID, and an object that was changed since another version.
func TestADeletionIsOfTheObjectThatWasSeen(t *testing.T) {
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "5"}}
	var sent client.DeleteOptions
	on := fake.NewClientBuilder().WithObjects(kept).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			sent.ApplyOptions(opts)
			return c.Delete(ctx, o, opts...)
		},
	}).Build()
	if err := Delete(t.Context(), on, kept); err != nil {
		t.Fatal(err)
	}
	p := sent.Preconditions
	if p == nil || p.UID == nil || *p.UID != types.UID("u") || p.ResourceVersion == nil || *p.ResourceVersion != "5" {
		t.Errorf("preconditions %v, expected UID u and version 5", p)
	}
}
