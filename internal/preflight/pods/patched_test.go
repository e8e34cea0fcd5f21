package pods

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
)

// A patch that removes a problem removes the finding, and a patch that causes one adds it.
func TestChecksLookAtThePodsAsTheyWillBe(t *testing.T) {
	nvme := node("n1", "x", "4")
	nvme.Labels["disk"] = "nvme"
	for _, c := range []struct {
		name, spec, patch string
		check             func(context.Context, check.Inspection) ([]check.Finding, error)
		want              []string
	}{
		{
			name: "a node that the set does not find", check: NodesFit, spec: "nodeSelector: {disk: ssd}\ncontainers: [{name: web}]",
			want: []string{"none of 1 nodes can take it: 1 not what nodeSelector or node affinity ask for"},
		},
		{
			name: "a node that the patched set finds", check: NodesFit, spec: "nodeSelector: {disk: ssd}\ncontainers: [{name: web}]",
			patch: "spec: {template: {spec: {nodeSelector: {disk: nvme}}}}",
		},
		{
			name: "more than a node has", check: NodesFit, spec: "containers: [{name: web}]",
			patch: "spec: {template: {spec: {containers: [{name: web, resources: {requests: {cpu: 8}}}]}}}",
			want:  []string{"none of 1 nodes can take it: 1 with too little cpu"},
		},
	} {
		i, _ := fixture{spec: c.spec, patch: c.patch, there: []client.Object{&nvme}}.inspected(t)
		i.Ordinals.Replicas = 1
		found, err := c.check(t.Context(), i)
		var got []string
		for _, f := range found {
			got = append(got, f.Saw)
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", c.name, err, diff)
		}
	}
}
