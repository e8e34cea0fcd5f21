package pods

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Pods find one another by the addresses that the Service publishes. Another cluster chooses their families itself.
func TestADestinationWithOtherFamiliesIsReported(t *testing.T) {
	families := func(text string) (out []corev1.IPFamily) {
		for _, f := range strings.Fields(text) {
			out = append(out, corev1.IPFamily(f))
		}
		return out
	}
	governing := func(namespace, text string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "peers"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, IPFamilies: families(text)}}
	}
	const would, has = "WARN...Service mall/peers on the destination...its copy would publish addresses of ", "WARN...Service mall/peers on the destination...it publishes addresses of "
	for name, c := range map[string]struct {
		here, there, chosen string // the last is what the other cluster chooses for a new Service
		refused, required   bool
		want                []string
	}{
		"the same":                     {here: "IPv4", chosen: "IPv4"},
		"the other one":                {here: "IPv6", chosen: "IPv4", want: []string{would + "IPv4...IPv6, as on the source...before the move"}},
		"one of both":                  {here: "IPv6 IPv4", chosen: "IPv6", want: []string{would + "IPv6...IPv6 and IPv4, as on the source"}},
		"both, in another order":       {here: "IPv6 IPv4", chosen: "IPv4 IPv6", want: []string{would + "IPv4 and IPv6...IPv6 and IPv4, as"}},
		"one that is there already":    {here: "IPv6", there: "IPv4", chosen: "IPv6", want: []string{has + "IPv4...IPv6, as on the source"}},
		"one that is there, the same":  {here: "IPv6", there: "IPv6", chosen: "IPv4"},
		"nothing is known":             {here: "IPv6"},
		"the other cluster refuses it": {here: "IPv6", chosen: "IPv4", refused: true},
		"it is not copied":             {here: "IPv6", chosen: "IPv4", required: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := checktest.Estate{Here: []client.Object{governing("shop", c.here)}}
			if c.there != "" {
				e.There = []client.Object{governing("mall", c.there)}
			}
			i := e.Inspected(t)
			i.Now.Set.Spec.ServiceName = "peers"
			i.Plan.Dependencies = []plans.Dependency{{Kind: "Service", Name: "peers"}}
			if c.required {
				i.Plan.Dependencies[0].Required = "made by an operator"
			}
			other, _ := i.On[plans.Destination].(client.WithWatch)
			i.On[plans.Destination] = interceptor.NewClient(other, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				next, ok := o.(*corev1.Service)
				if !ok || len((&client.CreateOptions{}).ApplyOptions(opts).DryRun) == 0 || next.Spec.IPFamilies != nil {
					t.Errorf("%T %v is created", o, next.Spec.IPFamilies)
				}
				next.Spec.IPFamilies = families(c.chosen)
				if c.refused {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "peers", nil)
				}
				return nil
			}})
			found, err := Service(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
		})
	}
}

// Within one cluster the copy has the families of the source, and one that is there must be equal: another check
// refuses it.
func TestWithinOneClusterNoServiceIsTried(t *testing.T) {
	here := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "peers"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol}}}
	i := checktest.Estate{One: true, Here: []client.Object{here}}.Inspected(t)
	i.Now.Set.Spec.ServiceName = "peers"
	i.Plan.Dependencies = []plans.Dependency{{Kind: "Service", Name: "peers"}}
	one, _ := i.On[plans.Destination].(client.WithWatch)
	i.On[plans.Destination] = interceptor.NewClient(one, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		t.Error("a Service is tried")
		return nil
	}})
	found, err := Service(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	checktest.ExpectFindings(t, found)
	there := here.DeepCopy()
	there.Namespace, there.ResourceVersion, there.Spec.IPFamilies = "mall", "", []corev1.IPFamily{corev1.IPv4Protocol}
	checktest.Estate{One: true, Here: []client.Object{here, there}}.Finds(t, func(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
		i.Plan.Dependencies = []plans.Dependency{{Kind: "Service", Name: "peers"}}
		return Dependencies(ctx, i)
	}, "FAIL...Service/peers in namespace mall...its content differs")
}
