package placeholder

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a placeholder does not prove is said, with what may keep the ordinal down first.
func TestWhatAPlaceholderDoesNotProveIsSaid(t *testing.T) {
	policy := func(name, app string) networkingv1.NetworkPolicy {
		p := networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if app != "" {
			p.Spec.PodSelector.MatchLabels = map[string]string{"app": app}
		}
		return p
	}
	const inits = "initContainers: [{name: later}, {name: chown}, {name: agent, restartPolicy: Always}]\ncontainers: [{name: a}]"
	for name, c := range map[string]struct {
		spec     string
		policies []networkingv1.NetworkPolicy
		want     []string
	}{
		"nothing":          {spec: "containers: [{name: a}]"},
		"a sidecar alone":  {spec: "initContainers: [{name: agent, restartPolicy: Always}]\ncontainers: [{name: a}]"},
		"init containers":  {spec: inits, want: []string{"its init containers: a placeholder does not run chown, later, and does not pull the images of them"}},
		"a policy for all": {spec: "containers: [{name: a}]", policies: []networkingv1.NetworkPolicy{policy("all", ""), policy("others", "db")}},
		"a policy for its": {
			spec: "containers: [{name: a}]", policies: []networkingv1.NetworkPolicy{policy("web", "web")},
			want: []string{"what its pod reaches: NetworkPolicy web is about its labels, which a placeholder does not have"},
		},
		"devices": {
			spec: "resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]\n" + inits,
			want: []string{
				"BREAKS its devices: a placeholder asks for none (resourceClaims: 1), so that the pod finds the devices free",
				"its init containers: a placeholder does not run chown, later, and does not pull the images of them",
			},
		},
	} {
		var got []string
		for _, g := range unproven(web3(t, c.spec).Pod, c.policies) {
			said := g.String()
			if g.Breaks {
				said = "BREAKS " + said
			}
			got = append(got, said)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
