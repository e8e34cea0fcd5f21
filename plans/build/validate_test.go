package build_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func httpGate(change func(*corev1.HTTPGetAction)) []plans.Gate {
	return planstest.Asked(func(g *plans.Gate) {
		g.Exec, g.HTTPGet = nil, &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80), Scheme: corev1.URISchemeHTTP}
		change(g.HTTPGet)
	})
}

// A plan that cannot be made cannot be read either, and both errors are the same: a plan in a
// ConfigMap may come from an untrusted source.
func TestWhatCannotBeMadeCannotBeRead(t *testing.T) {
	many := func(n int) (names []string, claims []plans.ClaimMove) {
		for i := range n {
			names = append(names, fmt.Sprintf("t%d", i))
			claims = append(claims, plans.ClaimMove{Template: names[i], Mode: plans.Reimport})
		}
		return names, claims
	}
	names, claims := many(32 + 1)
	var needed []plans.Dependency
	for i := range 1000 + 1 {
		needed = append(needed, plans.Dependency{Kind: "Secret", Name: fmt.Sprintf("s%d", i)})
	}
	gates := func(g []plans.Gate) (func(*build.Inputs), func(*plans.Plan)) {
		return func(in *build.Inputs) { in.Gates = g }, func(p *plans.Plan) { p.Gates = g }
	}
	patches := func(list ...plans.Patch) (func(*build.Inputs), func(*plans.Plan)) {
		return func(in *build.Inputs) { in.Patches = list }, func(p *plans.Plan) { p.Patches = list }
	}
	type refusal struct {
		make func(*build.Inputs)
		read func(*plans.Plan)
		want string
	}
	pair := func(want string) func(func(*build.Inputs), func(*plans.Plan)) refusal {
		return func(make func(*build.Inputs), read func(*plans.Plan)) refusal { return refusal{make, read, want} }
	}
	for name, c := range map[string]refusal{
		"one place":                        {func(in *build.Inputs) { in.Destination.Cluster = "one" }, func(p *plans.Plan) { p.Destination.Cluster = "one" }, "are both shop/web"},
		"two names":                        {func(in *build.Inputs) { in.Destination.Name = "db" }, func(p *plans.Plan) { p.Destination.Name = "db" }, "the sets must have one name"},
		"no cluster":                       {func(in *build.Inputs) { in.Source.Cluster = "" }, func(p *plans.Plan) { p.Source.Cluster = "" }, `source: cluster is ""`},
		"a line of consent for a cluster":  {func(in *build.Inputs) { in.Source.Cluster = "*/mall" }, func(p *plans.Plan) { p.Source.Cluster = "*/mall" }, `source: cluster is "*/mall"`},
		"an escape sequence for a context": {func(in *build.Inputs) { in.Source.Context = "\x1b[2J" }, func(p *plans.Plan) { p.Source.Context = "\x1b[2J" }, `context "\x1b[2J" is no name`},
		"no namespace":                     {func(in *build.Inputs) { in.Destination.Namespace = "" }, func(p *plans.Plan) { p.Destination.Namespace = "" }, `destination: namespace is ""`},
		"a path for a namespace":           {func(in *build.Inputs) { in.Destination.Namespace = "../x" }, func(p *plans.Plan) { p.Destination.Namespace = "../x" }, `namespace is "../x"`},
		"no set":                           {func(in *build.Inputs) { in.Source.Name, in.Destination.Name = "", "" }, func(p *plans.Plan) { p.Source.Name, p.Destination.Name = "", "" }, `name is "", expected that of a set`},
		"another kind":                     {func(in *build.Inputs) { in.Source.Kind = "DaemonSet" }, func(p *plans.Plan) { p.Source.Kind = "DaemonSet" }, `kind is "DaemonSet"`},
		"a bad name":                       {func(in *build.Inputs) { in.Name = "Web!" }, func(p *plans.Plan) { p.Name = "Web!" }, "DNS label of at most 40"},
		"the name of a journal":            {func(in *build.Inputs) { in.Name = "web-journal" }, func(p *plans.Plan) { p.Name = "web-journal" }, "another plan's journal"},
		"the name of a consent":            {func(in *build.Inputs) { in.Name = "consent" }, func(p *plans.Plan) { p.Name = "consent" }, "that of a consent"},
		"a bad id":                         {func(in *build.Inputs) { in.ID = "a/9/9" }, func(p *plans.Plan) { p.ID = "web-a/9/9" }, `its id is "web-a/9/9"`},
		"another way of names":             {func(in *build.Inputs) { in.Names.Mode = "dns" }, func(p *plans.Plan) { p.Names.Mode = "dns" }, `names: mode is "dns"`},
		"a bridge of nothing":              {func(in *build.Inputs) { in.Names.Mode = plans.Bridge }, func(p *plans.Plan) { p.Names.Mode = plans.Bridge }, `names: service is ""`},
		"a Service of clients twice": {func(in *build.Inputs) {
			in.Names = plans.Names{Mode: plans.Bridge, Service: "web", Clients: []string{"a", "a"}}
		}, func(p *plans.Plan) {
			p.Names = plans.Names{Mode: plans.Bridge, Service: "web", Clients: []string{"a", "a"}}
		}, `names: clients has a after a`},
		"a Service of clients that governs": {func(in *build.Inputs) {
			in.Names = plans.Names{Mode: plans.Bridge, Service: "web", Clients: []string{"web"}}
		}, func(p *plans.Plan) {
			p.Names = plans.Names{Mode: plans.Bridge, Service: "web", Clients: []string{"web"}}
		}, `which is the governing Service`},
		"a Service of clients without a name": {func(in *build.Inputs) {
			in.Names = plans.Names{Mode: plans.Bridge, Service: "web", Clients: []string{"A/b"}}
		}, func(p *plans.Plan) {
			p.Names = plans.Names{Mode: plans.Bridge, Service: "web", Clients: []string{"A/b"}}
		}, `expected the name of a Service`},
		"no replicas":                      {func(in *build.Inputs) { in.Set = planstest.Set(2, 0) }, func(p *plans.Plan) { p.Count = 0 }, "has 0 replicas"},
		"two thousand million replicas":    {func(in *build.Inputs) { in.Set = planstest.Set(2, 2_000_000_000) }, func(p *plans.Plan) { p.Count = 2_000_000_000 }, "expected at most 10000"},
		"a negative start":                 {func(in *build.Inputs) { in.Set = planstest.Set(-1, 3) }, func(p *plans.Plan) { p.Start = -1 }, "begins with ordinal -1"},
		"an end beyond all numbers":        {func(in *build.Inputs) { in.Set = planstest.Set(math.MaxInt32-2, 3) }, func(p *plans.Plan) { p.Start = math.MaxInt32 - 2 }, "begins with ordinal 2147483645"},
		"no budget":                        {func(in *build.Inputs) { in.MaxUnavailable = 0 }, func(p *plans.Plan) { p.MaxUnavailable = 0 }, "the budget is 0"},
		"a window over the budget":         {func(in *build.Inputs) { in.Window = 2 }, func(p *plans.Plan) { p.Window = 2 }, "window 2: expected 1 to 1 ordinals per wave, since all ordinals of a wave are unavailable together and at most 1 may be: give another --window"},
		"a window over all bounds":         {func(in *build.Inputs) { in.Window, in.MaxUnavailable = 65, 70 }, func(p *plans.Plan) { p.Window, p.MaxUnavailable = 65, 70 }, "window 65: expected 1 to 64"},
		"a negative window":                {func(in *build.Inputs) { in.Window = -1 }, func(p *plans.Plan) { p.Window = -1 }, "window -1"},
		"a gate of no kind":                pair("it has 0 of exec, httpGet and job")(gates(planstest.Asked(func(g *plans.Gate) { g.Exec = nil }))),
		"a gate of two kinds":              pair("it has 2 of exec, httpGet and job")(gates(planstest.Asked(func(g *plans.Gate) { g.HTTPGet = &corev1.HTTPGetAction{} }))),
		"a gate at no time":                pair(`when is "Later"`)(gates(planstest.Asked(func(g *plans.Gate) { g.When = "Later" }))),
		"a gate that waits for ever":       pair("timeout is 48h0m0s")(gates(planstest.Asked(func(g *plans.Gate) { g.Timeout.Duration = 48 * time.Hour }))),
		"a gate without a pause":           pair("interval is 1ms")(gates(planstest.Asked(func(g *plans.Gate) { g.Interval.Duration = time.Millisecond }))),
		"a gate without a command":         pair("exec.command is empty")(gates(planstest.Asked(func(g *plans.Gate) { g.Exec.Command = nil }))),
		"a gate of a bad name":             pair("expected a DNS label")(gates(planstest.Asked(func(g *plans.Gate) { g.Name = "G!" }))),
		"a gate twice":                     pair("is defined twice, expected a unique name")(gates(append(planstest.Asked(func(*plans.Gate) {}), planstest.Asked(func(*plans.Gate) {})...))),
		"a gate of another ordinal":        pair("pod is 9: expected an ordinal of the set, [2..4]")(gates(planstest.Asked(func(g *plans.Gate) { g.Pod = &intstr.IntOrString{IntVal: 9} }))),
		"a gate of another host":           pair("httpGet.host is set")(gates(httpGate(func(h *corev1.HTTPGetAction) { h.Host = "example.org" }))),
		"a gate with a bad port":           pair("httpGet.port")(gates(httpGate(func(h *corev1.HTTPGetAction) { h.Port.IntVal = 0 }))),
		"a gate too long":                  pair("the gates take")(gates(planstest.Asked(func(g *plans.Gate) { g.Expect = strings.Repeat("x", plans.MaxBytes) }))),
		"a control character":              pair("the plan cannot be written down")(gates(planstest.Asked(func(g *plans.Gate) { g.Exec.Command = []string{"\x7f"} }))),
		"too many patches":                 pair("the patches are 33 with 33 documents")(patches(slices.Repeat([]plans.Patch{{Patch: "{}"}}, 32+1)...)),
		"a patch too long":                 pair("bytes: expected at most")(patches(plans.Patch{Patch: "# " + strings.Repeat("x", plans.MaxPatchBytes)})),
		"a patch of many documents":        pair("with 40 documents")(patches(plans.Patch{Patch: strings.Repeat("---\n{}\n", 40)})),
		"too many claims":                  {func(in *build.Inputs) { in.Set = planstest.Templates(names...) }, func(p *plans.Plan) { p.Claims = claims }, "has 33 claim templates"},
		"a claim template that is no name": {func(in *build.Inputs) { in.Set = planstest.Templates("a/b") }, func(p *plans.Plan) { p.Claims = []plans.ClaimMove{{Template: "a/b", Mode: plans.Reimport}} }, `claim template "a/b"`},
		"a claim template twice": {func(in *build.Inputs) { in.Set = planstest.Templates("a", "a") }, func(p *plans.Plan) {
			p.Claims = []plans.ClaimMove{{Template: "a", Mode: plans.Reimport}, {Template: "a", Mode: plans.Reimport}}
		}, `claim template "a"`},
		"no data, and no gate":          {func(in *build.Inputs) { in.Set, in.Empty = planstest.Templates("a"), []string{"a"} }, func(p *plans.Plan) { p.Claims = []plans.ClaimMove{{Template: "a", Mode: plans.Empty}} }, "starts without data"},
		"a shared claim without a disk": {func(in *build.Inputs) { in.Shared = []plans.SharedVolume{{Claim: "a", Volume: "b"}} }, func(p *plans.Plan) { p.Shared = []plans.SharedVolume{{Claim: "a", Volume: "b"}} }, `shared claim "a"`},
		"a budget without a name":       {func(in *build.Inputs) { in.SourceBudget = &policyv1.PodDisruptionBudget{} }, func(p *plans.Plan) { p.Budget.Source = "" }, "budget: the name on the source"},
		"a dependency of another kind":  {func(in *build.Inputs) { in.Dependencies = []plans.Dependency{{Kind: "Role", Name: "r"}} }, func(p *plans.Plan) { p.Dependencies = []plans.Dependency{{Kind: "Role", Name: "r"}} }, "dependency Role/r"},
		"a dependency that is a path":   {func(in *build.Inputs) { in.Dependencies = []plans.Dependency{{Kind: "Secret", Name: "../a"}} }, func(p *plans.Plan) { p.Dependencies = []plans.Dependency{{Kind: "Secret", Name: "../a"}} }, "no object can have that name"},
		"dependencies without end":      {func(in *build.Inputs) { in.Dependencies = needed }, func(p *plans.Plan) { p.Dependencies = needed }, "names 1001 ConfigMaps"},
		"a map of storage in one cluster": {
			func(in *build.Inputs) {
				in.Destination.Cluster, in.Destination.Namespace, in.Storage.Classes = "one", "mall", map[string]string{"a": "b"}
			},
			func(p *plans.Plan) {
				p.Destination.Cluster, p.Destination.Namespace, p.Storage.Classes = "one", "mall", map[string]string{"a": "b"}
			}, "in the same cluster",
		},
		"a Secret that is no name": {func(in *build.Inputs) { in.Storage.Secrets = map[string]string{"a": "b/c"} }, func(p *plans.Plan) { p.Storage.Secrets = map[string]string{"a": "b/c"} }, "expected namespace/name"},
		"a plan too long":          {func(in *build.Inputs) { in.Ignored = []string{strings.Repeat("x", 1<<20)} }, func(p *plans.Plan) { p.Ignored = []string{strings.Repeat("x", 1<<20)} }, "since it is kept in a ConfigMap"},
	} {
		in := planstest.Inputs()
		c.make(&in)
		_, made := build.Plan(in)
		p, err := build.Plan(planstest.Inputs())
		if err != nil {
			t.Fatal(err)
		}
		c.read(p)
		_, read := plans.DecodePlan(planstest.Sealed(t, p))
		if made == nil || read == nil || made.Error() != read.Error() || !strings.Contains(made.Error(), c.want) {
			t.Errorf("%s: made: %v; read: %v; expected %q from both", name, made, read, c.want)
		}
	}
}

// Between clusters a volume is imported, and within one it changes its namespace. A plan that says otherwise would let go
// of a volume in a way that its destination does not expect.
func TestTheModeOfAClaimIsThatOfItsTwoPlaces(t *testing.T) {
	for cluster, fits := range map[types.UID]plans.Mode{"one": plans.Rebind, "two": plans.Reimport} {
		for _, mode := range []plans.Mode{plans.Rebind, plans.Reimport, "", "copy"} {
			in := planstest.Inputs()
			in.Set, in.Destination.Cluster, in.Destination.Namespace = planstest.Templates("data"), cluster, "mall"
			p, err := build.Plan(in)
			if err != nil {
				t.Fatal(err)
			}
			p.Claims[0].Mode = mode
			_, err = plans.DecodePlan(planstest.Sealed(t, p))
			if (err == nil) != (mode == fits) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("mode is %q, expected %s or empty", mode, fits)) {
				t.Errorf("to cluster %s: mode %q: %v", cluster, mode, err)
			}
		}
	}
}

// Without its defaults, a gate would be evaluated without a pause and time out at once.
func TestAGateThatNobodyFilledInIsRefused(t *testing.T) {
	p := planstest.Named(t, "abc")
	for want, change := range map[string]func(*plans.Gate){
		"timeout is 0s and interval is 1s":   func(g *plans.Gate) { g.Timeout.Duration = 0 },
		"timeout is 1m0s and interval is 0s": func(g *plans.Gate) { g.Interval.Duration = 0 },
	} {
		p.Gates = planstest.Asked(change)
		if _, err := plans.DecodePlan(planstest.Sealed(t, p)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

// A copy operation that copies its own result doubles the document each time.
func TestAPatchCannotMakeASetAsLargeAsItLikes(t *testing.T) {
	in := patchedInputs("[" + `{"op":"add","path":"/x","value":["` + strings.Repeat("y", 100) + `"]}` +
		strings.Repeat(`,{"op":"copy","from":"/x","path":"/x/-"}`, 20) + "]")
	if _, err := build.Plan(in); err == nil || !strings.Contains(err.Error(), "copy") || !strings.Contains(err.Error(), "limit") {
		t.Errorf("%.200v", err)
	}
}
