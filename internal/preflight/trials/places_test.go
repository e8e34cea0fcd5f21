package trials

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

// What no placeholder proves is said before the plan begins: with a warning where it is only less, and else it has to be
// ignored. A plan without placeholders has no such promise.
func TestWhatNoPlaceholderProvesIsSaidBefore(t *testing.T) {
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web"}, Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	const devices = "resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]\n"
	for name, c := range map[string]struct {
		spec  string
		proof plans.Proof
		reach []string
		want  []string
	}{
		"without placeholders": {spec: devices + "containers: [{name: web}]", proof: plans.NoProof},
		"what its labels do":   {spec: "containers: [{name: web}]", proof: plans.Warm, want: []string{"WARN ...no placeholder proves what its pod reaches: NetworkPolicy web...the move goes on"}},
		"peers on no port":     {spec: "containers: [{name: web}]", proof: plans.Warm, reach: []string{plans.Peers}, want: []string{"FAIL ...cannot be asked: no container of the set names a TCP port; make a new plan with peers:PORT...", "WARN ...NetworkPolicy web..."}},
		"peers on their port":  {spec: "containers: [{name: web, ports: [{containerPort: 1}]}]", proof: plans.Warm, reach: []string{plans.Peers}, want: []string{"WARN ...NetworkPolicy web..."}},
		"devices": {
			spec: devices + "initContainers: [{name: chown}]\ncontainers: [{name: web}]", proof: plans.Scheduled,
			want: []string{"FAIL ...no placeholder proves its devices...--ignore place-proven", "WARN ...no placeholder proves its init containers...", "WARN ...NetworkPolicy web..."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := checktest.Estate{Spec: c.spec, Labels: map[string]string{"app": "web"}, There: []client.Object{policy}}
			i := e.Inspected(t)
			i.Plan.Placeholder = plans.Placeholder{Proof: c.proof, Image: "a:1", Reach: c.reach}
			found, err := PlaceProven(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
		})
	}
}

// A quota that is exactly full with the placeholder of the wave is no refusal: it counts the one that is there.
func TestAPlaceholderThatIsThereIsNotRefusedByAQuota(t *testing.T) {
	for name, c := range map[string]struct {
		there  plans.Stamp // of the placeholder, if there is one
		says   string
		refuse bool
	}{
		"it is there":          {there: plans.Stamp{Plan: "this", Epoch: 1}, says: "exceeded quota: pods"},
		"it is another's":      {there: plans.Stamp{Plan: "other", Epoch: 1}, says: "exceeded quota: pods", refuse: true},
		"there is none":        {says: "exceeded quota: pods", refuse: true},
		"another rule says no": {there: plans.Stamp{Plan: "this", Epoch: 1}, says: "no pods like these", refuse: true},
	} {
		t.Run(name, func(t *testing.T) {
			i := atRest(t, true)
			i.Plan.Placeholder.Proof = plans.Scheduled
			i.Midway, i.Ordinals = true, plans.Slice{Start: 2, Replicas: 1}
			i.Now.Set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web"}}
			if c.there.Plan != "" {
				if c.there.Plan == "this" {
					c.there.Plan = i.Plan.ID
				}
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: i.Plan.Destination.Namespace, Name: i.Plan.Place(plans.Destination, 2)}}
				c.there.Put(pod)
				if err := i.On[plans.Destination].Create(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
			i.On[plans.Destination] = interceptor.NewClient(i.On[plans.Destination].(client.WithWatch), interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					if _, is := o.(*corev1.Pod); is {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New(c.says))
					}
					return nil
				},
			})
			found, err := WritesAccepted(t.Context(), i)
			if err != nil || slices.ContainsFunc(found, func(f check.Finding) bool { return strings.Contains(f.Saw, c.says) }) != c.refuse {
				t.Errorf("%v, %v", found, err)
			}
		})
	}
}
