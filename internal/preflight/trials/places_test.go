package trials

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
