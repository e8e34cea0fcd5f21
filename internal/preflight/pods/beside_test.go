package pods

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
)

// A placeholder that would find its node only when its ordinal has left must not be made: it would wait for the ordinal, and
// the ordinal for it.
func TestAPlaceBesideItsOrdinalNeedsRoomOfItsOwn(t *testing.T) {
	const port = `{containers: [{name: web, ports: [{containerPort: 7001, hostPort: 7001}]}]}`
	const large = `{containers: [{name: web, resources: {requests: {cpu: 3}}}]}`
	const small = `{containers: [{name: web, resources: {requests: {cpu: 1}}}]}`
	two := []string{"spec: {nfs: {server: files, path: /a}}", "spec: {nfs: {server: files, path: /b}}"}
	for name, c := range map[string]struct {
		spec  string
		other bool // between two clusters
		hosts []client.Object
		want  string
	}{
		"room for both":               {spec: small, hosts: hosts("a", "b")},
		"a node with no other":        {spec: large, hosts: hosts("a", "b"), want: "web-1 may find its node only in the room that its ordinal leaves (none of 2 nodes can take it: 2 with too little cpu)"},
		"one node more":               {spec: large, hosts: hosts("a", "b", "c")},
		"a port of the node":          {spec: port, hosts: hosts("a", "b"), want: "2 where host port 7001 is taken"},
		"in another cluster":          {spec: port, other: true, hosts: hosts("a", "b")},
		"no room for the pods either": {spec: `{containers: [{name: web, resources: {requests: {cpu: 9}}}]}`, hosts: hosts("a", "b")},
	} {
		t.Run(name, func(t *testing.T) {
			e := checktest.Estate{Volumes: two, Spec: c.spec, One: !c.other, Labels: map[string]string{"app": "web"}}
			own := []client.Object{runs(t, "shop", "web-0", "n0", "web", c.spec), runs(t, "shop", "web-1", "n1", "web", c.spec)}
			if c.other {
				e.There = c.hosts
			} else {
				e.Here = append(c.hosts, own...)
			}
			got, err := Beside(t.Context(), e.Inspected(t))
			if err != nil || !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("%q (%v), expected %q", got, err, c.want)
			}
		})
	}
}
