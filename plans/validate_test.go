package plans

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// asked returns a gate with the defaults that Build sets.
func asked(change func(*Gate)) []Gate {
	g := Gate{Name: "g", When: AfterGrow, Exec: &Exec{Command: []string{"x"}}, Timeout: metav1.Duration{Duration: time.Minute}, Interval: metav1.Duration{Duration: time.Second}}
	change(&g)
	return []Gate{g}
}

func got(change func(*corev1.HTTPGetAction)) []Gate {
	return asked(func(g *Gate) {
		g.Exec, g.HTTPGet = nil, &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80), Scheme: corev1.URISchemeHTTP}
		change(g.HTTPGet)
	})
}

func templates(names ...string) *appsv1.StatefulSet {
	s := set(2, 3)
	for _, n := range names {
		s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: n}})
	}
	return s
}

// A plan that cannot be made cannot be read either, and both errors are the same: a plan in a
// ConfigMap may come from an untrusted source.
func TestWhatCannotBeMadeCannotBeRead(t *testing.T) {
	many := func(n int) (names []string, claims []ClaimMove) {
		for i := range n {
			names = append(names, fmt.Sprintf("t%d", i))
			claims = append(claims, ClaimMove{Template: names[i], Mode: Reimport})
		}
		return names, claims
	}
	names, claims := many(maxClaims + 1)
	gates := func(g []Gate) (func(*Inputs), func(*Plan)) {
		return func(in *Inputs) { in.Gates = g }, func(p *Plan) { p.Gates = g }
	}
	patches := func(list ...Patch) (func(*Inputs), func(*Plan)) {
		return func(in *Inputs) { in.Patches = list }, func(p *Plan) { p.Patches = list }
	}
	type refusal struct {
		make func(*Inputs)
		read func(*Plan)
		want string
	}
	pair := func(want string) func(func(*Inputs), func(*Plan)) refusal {
		return func(make func(*Inputs), read func(*Plan)) refusal { return refusal{make, read, want} }
	}
	for name, c := range map[string]refusal{
		"one place":                        {func(in *Inputs) { in.Destination.Cluster = "one" }, func(p *Plan) { p.Destination.Cluster = "one" }, "are both shop/web"},
		"two names":                        {func(in *Inputs) { in.Destination.Name = "db" }, func(p *Plan) { p.Destination.Name = "db" }, "the sets must have one name"},
		"no cluster":                       {func(in *Inputs) { in.Source.Cluster = "" }, func(p *Plan) { p.Source.Cluster = "" }, `source: cluster is ""`},
		"a line of consent for a cluster":  {func(in *Inputs) { in.Source.Cluster = "*/mall" }, func(p *Plan) { p.Source.Cluster = "*/mall" }, `source: cluster is "*/mall"`},
		"an escape sequence for a context": {func(in *Inputs) { in.Source.Context = "\x1b[2J" }, func(p *Plan) { p.Source.Context = "\x1b[2J" }, `context "\x1b[2J" is no name`},
		"no namespace":                     {func(in *Inputs) { in.Destination.Namespace = "" }, func(p *Plan) { p.Destination.Namespace = "" }, `destination: namespace is ""`},
		"a path for a namespace":           {func(in *Inputs) { in.Destination.Namespace = "../x" }, func(p *Plan) { p.Destination.Namespace = "../x" }, `namespace is "../x"`},
		"no set":                           {func(in *Inputs) { in.Source.Name, in.Destination.Name = "", "" }, func(p *Plan) { p.Source.Name, p.Destination.Name = "", "" }, `name is "", expected that of a set`},
		"another kind":                     {func(in *Inputs) { in.Source.Kind = "DaemonSet" }, func(p *Plan) { p.Source.Kind = "DaemonSet" }, `kind is "DaemonSet"`},
		"a bad name":                       {func(in *Inputs) { in.Name = "Web!" }, func(p *Plan) { p.Name = "Web!" }, "DNS label of at most 40"},
		"the name of a journal":            {func(in *Inputs) { in.Name = "web-journal" }, func(p *Plan) { p.Name = "web-journal" }, "another plan's journal"},
		"the name of a consent":            {func(in *Inputs) { in.Name = "consent" }, func(p *Plan) { p.Name = "consent" }, "that of a consent"},
		"a bad id":                         {func(in *Inputs) { in.ID = "a/9/9" }, func(p *Plan) { p.ID = "web-a/9/9" }, `its id is "web-a/9/9"`},
		"another way of names":             {func(in *Inputs) { in.Names.Mode = "dns" }, func(p *Plan) { p.Names.Mode = "dns" }, `names: mode is "dns"`},
		"a bridge of nothing":              {func(in *Inputs) { in.Names.Mode = Bridge }, func(p *Plan) { p.Names.Mode = Bridge }, `names: service is ""`},
		"no replicas":                      {func(in *Inputs) { in.Set = set(2, 0) }, func(p *Plan) { p.Count = 0 }, "has 0 replicas"},
		"two thousand million replicas":    {func(in *Inputs) { in.Set = set(2, 2_000_000_000) }, func(p *Plan) { p.Count = 2_000_000_000 }, "expected at most 10000"},
		"a negative start":                 {func(in *Inputs) { in.Set = set(-1, 3) }, func(p *Plan) { p.Start = -1 }, "begins with ordinal -1"},
		"an end beyond all numbers":        {func(in *Inputs) { in.Set = set(math.MaxInt32-2, 3) }, func(p *Plan) { p.Start = math.MaxInt32 - 2 }, "begins with ordinal 2147483645"},
		"no budget":                        {func(in *Inputs) { in.MaxUnavailable = 0 }, func(p *Plan) { p.MaxUnavailable = 0 }, "the budget is 0"},
		"a window over the budget":         {func(in *Inputs) { in.Window = 2 }, func(p *Plan) { p.Window = 2 }, "window 2: expected 1 to 1"},
		"a window over all bounds":         {func(in *Inputs) { in.Window, in.MaxUnavailable = 65, 70 }, func(p *Plan) { p.Window, p.MaxUnavailable = 65, 70 }, "window 65: expected 1 to 64"},
		"a negative window":                {func(in *Inputs) { in.Window = -1 }, func(p *Plan) { p.Window = -1 }, "window -1"},
		"a gate of no kind":                pair("it has 0 of exec, httpGet and job")(gates(asked(func(g *Gate) { g.Exec = nil }))),
		"a gate of two kinds":              pair("it has 2 of exec, httpGet and job")(gates(asked(func(g *Gate) { g.HTTPGet = &corev1.HTTPGetAction{} }))),
		"a gate at no time":                pair(`when is "Later"`)(gates(asked(func(g *Gate) { g.When = "Later" }))),
		"a gate that waits for ever":       pair("timeout is 48h0m0s")(gates(asked(func(g *Gate) { g.Timeout.Duration = 48 * time.Hour }))),
		"a gate without a pause":           pair("interval is 1ms")(gates(asked(func(g *Gate) { g.Interval.Duration = time.Millisecond }))),
		"a gate without a command":         pair("exec.command is empty")(gates(asked(func(g *Gate) { g.Exec.Command = nil }))),
		"a gate of a bad name":             pair("expected a DNS label")(gates(asked(func(g *Gate) { g.Name = "G!" }))),
		"a gate twice":                     pair("is defined twice, expected a unique name")(gates(append(asked(func(*Gate) {}), asked(func(*Gate) {})...))),
		"a gate of another ordinal":        pair("pod is 9: expected an ordinal of the set, [2..4]")(gates(asked(func(g *Gate) { g.Pod = &intstr.IntOrString{IntVal: 9} }))),
		"a gate of another host":           pair("httpGet.host is set")(gates(got(func(h *corev1.HTTPGetAction) { h.Host = "example.org" }))),
		"a gate with a bad port":           pair("httpGet.port")(gates(got(func(h *corev1.HTTPGetAction) { h.Port.IntVal = 0 }))),
		"a gate too long":                  pair("the gates take")(gates(asked(func(g *Gate) { g.Expect = strings.Repeat("x", maxBytes) }))),
		"a control character":              pair("the plan cannot be written down")(gates(asked(func(g *Gate) { g.Exec.Command = []string{"\x7f"} }))),
		"too many patches":                 pair("the patches are 33 with 33 documents")(patches(slices.Repeat([]Patch{{Patch: "{}"}}, maxPatches+1)...)),
		"a patch too long":                 pair("bytes: expected at most")(patches(Patch{Patch: "# " + strings.Repeat("x", maxPatchBytes)})),
		"a patch of many documents":        pair("with 40 documents")(patches(Patch{Patch: strings.Repeat("---\n{}\n", 40)})),
		"too many claims":                  {func(in *Inputs) { in.Set = templates(names...) }, func(p *Plan) { p.Claims = claims }, "has 33 claim templates"},
		"a claim template that is no name": {func(in *Inputs) { in.Set = templates("a/b") }, func(p *Plan) { p.Claims = []ClaimMove{{"a/b", Reimport}} }, `claim template "a/b"`},
		"a claim template twice":           {func(in *Inputs) { in.Set = templates("a", "a") }, func(p *Plan) { p.Claims = []ClaimMove{{"a", Reimport}, {"a", Reimport}} }, `claim template "a"`},
		"no data, and no gate":             {func(in *Inputs) { in.Set, in.Empty = templates("a"), []string{"a"} }, func(p *Plan) { p.Claims = []ClaimMove{{"a", Empty}} }, "starts without data"},
		"a shared claim without a disk":    {func(in *Inputs) { in.Shared = []SharedVolume{{Claim: "a", Volume: "b"}} }, func(p *Plan) { p.Shared = []SharedVolume{{Claim: "a", Volume: "b"}} }, `shared claim "a"`},
		"a budget without a name":          {func(in *Inputs) { in.SourceBudget = &policyv1.PodDisruptionBudget{} }, func(p *Plan) { p.Budget.Source = "" }, "budget: the name on the source"},
		"a dependency of another kind":     {func(in *Inputs) { in.Dependencies = []Dependency{{Kind: "Role", Name: "r"}} }, func(p *Plan) { p.Dependencies = []Dependency{{Kind: "Role", Name: "r"}} }, "dependency Role/r"},
		"a dependency that is a path":      {func(in *Inputs) { in.Dependencies = []Dependency{{Kind: "Secret", Name: "../a"}} }, func(p *Plan) { p.Dependencies = []Dependency{{Kind: "Secret", Name: "../a"}} }, "no object can have that name"},
		"a map of storage in one cluster": {
			func(in *Inputs) {
				in.Destination.Cluster, in.Destination.Namespace, in.Storage.Classes = "one", "mall", map[string]string{"a": "b"}
			},
			func(p *Plan) {
				p.Destination.Cluster, p.Destination.Namespace, p.Storage.Classes = "one", "mall", map[string]string{"a": "b"}
			}, "in the same cluster",
		},
		"a Secret that is no name": {func(in *Inputs) { in.Storage.Secrets = map[string]string{"a": "b/c"} }, func(p *Plan) { p.Storage.Secrets = map[string]string{"a": "b/c"} }, "expected namespace/name"},
		"a plan too long":          {func(in *Inputs) { in.Ignored = []string{strings.Repeat("x", 1<<20)} }, func(p *Plan) { p.Ignored = []string{strings.Repeat("x", 1<<20)} }, "since it is kept in a ConfigMap"},
	} {
		in := inputs()
		c.make(&in)
		_, made := Build(in)
		p, err := Build(inputs())
		if err != nil {
			t.Fatal(err)
		}
		c.read(p)
		_, read := DecodePlan(sealed(t, p))
		if made == nil || read == nil || made.Error() != read.Error() || !strings.Contains(made.Error(), c.want) {
			t.Errorf("%s: made: %v; read: %v; expected %q from both", name, made, read, c.want)
		}
	}
}

// sealed returns a plan as an attacker would write it, with a valid hash.
func sealed(t *testing.T, p *Plan) []byte {
	t.Helper()
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	raw, err := Encode(p)
	if err != nil { // not every JSON value has a YAML form
		raw, err = json.Marshal(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Without its defaults, a gate would be evaluated without a pause and time out at once.
func TestAGateThatNobodyFilledInIsRefused(t *testing.T) {
	p, _ := built(t)
	for want, change := range map[string]func(*Gate){
		"timeout is 0s and interval is 1s":   func(g *Gate) { g.Timeout.Duration = 0 },
		"timeout is 1m0s and interval is 0s": func(g *Gate) { g.Interval.Duration = 0 },
	} {
		p.Gates = asked(change)
		if _, err := DecodePlan(sealed(t, p)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

// A copy operation that copies its own result doubles the document each time.
func TestAPatchCannotMakeASetAsLargeAsItLikes(t *testing.T) {
	in := patchedInputs("[" + `{"op":"add","path":"/x","value":["` + strings.Repeat("y", 100) + `"]}` +
		strings.Repeat(`,{"op":"copy","from":"/x","path":"/x/-"}`, 20) + "]")
	if _, err := Build(in); err == nil || !strings.Contains(err.Error(), "copy") || !strings.Contains(err.Error(), "limit") {
		t.Errorf("%.200v", err)
	}
}
