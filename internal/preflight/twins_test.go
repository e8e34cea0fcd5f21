package preflight

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A plan makes the twins of the Services of clients that the destination lacks, of no other one, and the check says what is
// wrong with each.
func TestTwinsAreMadeWhereNoneIs(t *testing.T) {
	bridge := plans.Names{Mode: plans.Bridge, Service: "web", Twins: true}
	governing := entryPoint(t, "shop", "web", `{clusterIP: None, selector: {app: web}}`)
	clients := func(namespace string) client.Object {
		return entryPoint(t, namespace, "web-clients", `{selector: {app: web}}`)
	}
	outside := entryPoint(t, "shop", "outside", `{type: LoadBalancer, selector: {app: web, role: primary}, ports: [{port: 80, nodePort: 30080}]}`)
	stranger := func() client.Object { p := memberOf("front", "front-0", nil); p.Namespace = "mall"; return p }()
	member := func() client.Object { p := memberOf("web", "web-9", nil); p.Namespace = "mall"; return p }()
	for name, c := range map[string]struct {
		world
		later func(t *testing.T, i *check.Inspection) // between the plan and its first write
		makes string
		want  []string
	}{
		"one that the destination lacks": {world{one: true, names: bridge, here: []client.Object{governing, clients("shop")}}, nil, "web-clients: spec.clusterIP 10.96.0.7", nil},
		"one for outside": {world{one: true, names: bridge, here: []client.Object{governing, outside}}, nil, "outside: spec.type LoadBalancer, spec.clusterIP 10.96.0.7, spec.ports[80].nodePort 30080", []string{
			"WARN Service mall/outside on the destination: it is made without spec.type LoadBalancer; spec.clusterIP",
		}},
		"one that is there":               {world{one: true, names: bridge, here: []client.Object{governing, clients("shop")}, there: []client.Object{clients("mall")}}, nil, "", nil},
		"an alias, and one of the user's": {world{one: true, names: bridge, here: []client.Object{entryPoint(t, "shop", "alias", `{type: ExternalName, externalName: web.example}`), entryPoint(t, "shop", "mine", `{}`)}}, nil, "", nil},
		"clusters that do not reach one another": {world{names: plans.Names{Mode: plans.NoNames, Twins: true}, here: []client.Object{clients("shop")}}, nil, "web-clients: spec.clusterIP 10.96.0.7", []string{
			"FAIL Service shop/web-clients on the source: it loses web-2",
		}},
		"others that it would select": {world{names: bridge, here: []client.Object{clients("shop")}, there: []client.Object{stranger, member}}, nil, "web-clients: spec.clusterIP 10.96.0.7", []string{
			"FAIL Service mall/web-clients on the destination: it would select pod front-0 of StatefulSet front, which is not of the set",
		}},
		"not asked for": {world{one: true, names: plans.Names{Mode: plans.Bridge, Service: "web"}, here: []client.Object{governing, clients("shop")}}, nil, "", []string{
			"WARN Service shop/web-clients on the source: the destination has no such Service",
		}},
		"one that another has made since": {world{one: true, names: bridge, here: []client.Object{governing, clients("shop")}}, func(t *testing.T, i *check.Inspection) {
			t.Helper()
			if err := i.On[plans.Destination].Create(t.Context(), clients("mall")); err != nil {
				t.Fatal(err)
			}
		}, "web-clients: spec.clusterIP 10.96.0.7", []string{
			"WARN Service mall/web-clients on the destination: it is there since the plan was made, by another's hand: the plan leaves it as it is",
		}},
		"one that the plan has made": {world{one: true, names: bridge, here: []client.Object{governing, clients("shop")}}, func(t *testing.T, i *check.Inspection) {
			t.Helper()
			made := clients("mall")
			made.SetAnnotations(map[string]string{plans.StampAnnotation: i.Plan.ID + "/1/1"})
			if i.Taken = true; i.On[plans.Destination].Create(t.Context(), made) != nil {
				t.Fatal("the twin cannot be made")
			}
		}, "web-clients: spec.clusterIP 10.96.0.7", nil},
		"one whose original is gone since": {world{one: true, names: bridge, here: []client.Object{governing, clients("shop")}}, func(t *testing.T, i *check.Inspection) {
			t.Helper()
			if err := i.On[plans.Source].Delete(t.Context(), clients("shop")); err != nil {
				t.Fatal(err)
			}
		}, "web-clients: spec.clusterIP 10.96.0.7", []string{
			"WARN Service mall/web-clients on the destination: the source has no such Service any more",
		}},
		"it may not be looked": {world{one: true, names: bridge, here: []client.Object{clients("shop")}, forbids: "*v1.ServiceList"}, nil, "", []string{"WARN the Services of shop/web in east"}},
	} {
		i := c.inspected(t)
		i.Now.Dependencies = []plans.Dependency{{Kind: "Service", Name: "web"}}
		made, err := twins(t.Context(), i.On, i.Now)
		if err != nil {
			t.Fatal(err)
		}
		var makes []string
		for _, d := range made {
			makes = append(makes, d.Name+": "+strings.Join(d.Twin.LeftOut, ", "))
		}
		if got := strings.Join(makes, "; "); got != c.makes {
			t.Errorf("%s: %q is made, expected %q", name, got, c.makes)
		}
		i.Plan.Dependencies = append(i.Now.Dependencies, made...)
		if c.later != nil {
			c.later(t, &i)
		}
		found, err := Clients(t.Context(), i)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, f := range found {
			got = append(got, seenAs(f))
			if f.Remedy == "" {
				t.Errorf("%s: %s says not what to do", name, f.Object)
			}
		}
		if len(got) != len(c.want) || slices.ContainsFunc(c.want, func(w string) bool {
			return !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, w) })
		}) {
			t.Errorf("%s: found\n%s\nexpected\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}
