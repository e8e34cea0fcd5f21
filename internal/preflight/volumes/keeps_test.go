package volumes

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// The destination is older than the source, and the volume has a field that neither it nor this program
// knows.
func TestAVolumeFieldThatIsNotKeptIsFoundBeforeTheStart(t *testing.T) {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}}
	source := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(pv).Build()
	tried := 0
	older := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			var given client.CreateOptions
			given.ApplyOptions(opts)
			if _, whole := o.(*unstructured.Unstructured); !whole || len(given.DryRun) == 0 || given.FieldValidation != "Strict" || o.GetName() != "pv-1-dry-run" {
				t.Errorf("%T %s was sent with %+v", o, o.GetName(), given)
			}
			tried++
			return apierrors.NewBadRequest("strict decoding error: unknown field spec.futureSet")
		},
	})
	p := &plans.Plan{ID: "p", Destination: plans.Ref{Namespace: "mall", Name: "web"}}
	for name, tt := range map[string]struct {
		source client.Client
		tried  int
	}{"known": {source, 0}, "not known": {planstest.WithFutures(source), 1}} {
		tried = 0
		i := check.Inspection{Pair: clusters.Pair{Plan: p, On: clusters.Clusters{plans.Source: tt.source, plans.Destination: older}}}
		found, err := keeps(t.Context(), i, pv)
		if err != nil || len(found) != tt.tried || tried != tt.tried {
			t.Errorf("%s: %v (%v), tried %d times, expected %d", name, found, err, tried, tt.tried)
		}
		if len(found) == 1 && !strings.Contains(found[0].Saw, "spec.futureSet") {
			t.Errorf("%s: %s", name, found[0].Saw)
		}
	}
}
