package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// A plan that is stored for commands cannot be detached. Its record is in another place than the orchestrator
// reads, and the plan may be under way.
func TestAPlanOfCommandsIsNotDetached(t *testing.T) {
	for name, change := range map[string]func(*journal.Journal){
		"stored":    func(*journal.Journal) {},
		"under way": func(j *journal.Journal) { j.Epoch, j.Begun = 1, 1 },
	} {
		on, config := serve(t, []string{"home"})
		p := keep(t, on, "mall", change)
		for _, what := range []string{"web", inFile(t, p)} {
			got := command(t, "apply", what, "--detach", "--yes", "-n", "mall", "--kubeconfig", config)
			if got.code != exitError || !strings.Contains(got.errOut, "where it is carried out by commands, and not by an orchestrator") || !strings.Contains(got.errOut, "`stsmigrate apply web -n mall --context home --kubeconfig "+config+"`") {
				t.Errorf("%s, apply %s: %+v", name, what, got)
			}
		}
		if _, err := records.NewStore(on, "stsmigrate", "web").Plan(t.Context()); err == nil {
			t.Errorf("%s: it is stored twice", name)
		}
	}
}

// A request for a plan that an orchestrator carries out is declared, and its journal is left unchanged.
func TestWishesForADetachedPlanAreDeclared(t *testing.T) {
	underWay := func(j *journal.Journal) { j.Detached, j.Epoch, j.Done, j.Begun = true, 2, 1, 1 }
	moved := func(j *journal.Journal) {
		j.Detached, j.Epoch, j.Done, j.Begun, j.Outcome = true, 2, 33, 33, plans.Moved
		j.Done = j.Leg.First - 1
		j.Begun = j.Done
	}
	kept := func(j *journal.Journal) {
		moved(j)
		j.StartLeg(&plans.Plan{Count: 3, Window: 1}, plans.Finalize)
		j.Outcome, j.KeepNames = plans.Finalized, true
	}
	const resume = "resume web"
	for name, c := range map[string]struct {
		journal func(*journal.Journal)
		command string
		want    func(*plans.Declaration) bool
		refused string
	}{
		"a pause":             {underWay, "pause web", func(d *plans.Declaration) bool { return d.Paused && d.Request == nil && d.Direction == "" }, ""},
		"the way on":          {underWay, resume + " --yes", func(d *plans.Declaration) bool { return !d.Paused && d.Request.Resume && d.Direction == plans.Move }, ""},
		"a part of it":        {underWay, resume + " --yes --pause-after 1", func(d *plans.Declaration) bool { return d.Request.PauseAfter == 1 && d.Request.UntilOrdinal == nil }, ""},
		"as far as that":      {underWay, resume + " --yes --until-ordinal 2", func(d *plans.Declaration) bool { return *d.Request.UntilOrdinal == 2 }, ""},
		"the abort":           {underWay, "abort web --yes --max-unavailable 2", func(d *plans.Declaration) bool { return d.Direction == plans.Abort && d.Request.MaxUnavailable == 2 }, ""},
		"another template":    {underWay, resume + " --yes --other-template 0123abcd --ignore nodes-fit,quota", acceptsTheTemplate, ""},
		"a word that is none": {underWay, "abort web --yes --other-template yes", nil, "--other-template yes: expected the 8 digits"},
		"an unknown check":    {underWay, "abort web --yes --ignore quotas", nil, "--ignore quotas: expected one of"},
		"another writer":      {underWay, "abort web --yes --ignore owner", nil, "--ignore owner: expected one of"},
		"more than all":       {underWay, "abort web --yes --max-unavailable 9", nil, "--max-unavailable 9: expected"},
		"a senseless word":    {underWay, resume + " --yes --node-gone n", nil, "has no ordinals in flight"},
		"gates of no gate":    {underWay, resume + " --yes --skip-gates", nil, "has no gates"},
		"an early end":        {underWay, "finalize web --yes", nil, "is not complete"},
		"the end":             {moved, "finalize web --yes", func(d *plans.Declaration) bool { return d.Direction == plans.Finalize && !d.KeepNames }, ""},
		"names of none":       {moved, "finalize web --yes --keep-names", nil, "bridges no names"},
		"no names any more":   {kept, "names web --remove --yes", asksForNoNames, ""},
		"names of a move":     {moved, "names web --remove --yes", nil, "its names go with `stsmigrate finalize web"},
		"a late pause":        {moved, "pause web", nil, "is not under way (Moved)"},
	} {
		on, config := serve(t, []string{"home"})
		p := keep(t, on, "stsmigrate", c.journal)
		before := journaled(t, on)
		got := command(t, append(strings.Fields(c.command), "-n", "stsmigrate", "--kubeconfig", config)...)
		d, err := records.ReadDeclared(t.Context(), on, "stsmigrate", "web")
		if after := journaled(t, on); err != nil || after != before {
			t.Fatalf("%s: %v; the journal was %s and is %s", name, err, before, after)
		}
		if c.refused == "" {
			declared(t, name, p, got, d, c.want)
		} else {
			undeclared(t, name, got, d, c.refused)
		}
	}
}

// asksForNoNames reports whether the removal of the names is all that is requested.
func asksForNoNames(d *plans.Declaration) bool {
	return reflect.DeepEqual(*d.Request, plans.Request{ID: d.Request.ID, RemoveNames: true}) && d.Direction == plans.Finalize && !d.KeepNames
}

// acceptsTheTemplate reports whether the request accepts another template, and ignores what the command names.
func acceptsTheTemplate(d *plans.Declaration) bool {
	return d.Request.OtherTemplate == "0123abcd" && slices.Equal(d.Request.Ignore, []string{"nodes-fit", "quota"})
}

// undeclared requires that a command was refused with these words, and that nothing is declared.
func undeclared(t *testing.T, name string, got outcome, d *records.Declared, refused string) {
	t.Helper()
	if got.code != exitError || !strings.Contains(got.errOut, refused) || d != nil {
		t.Errorf("%s: %+v, expected %q, and nothing declared: %+v", name, got, refused, d)
	}
}

// declared requires that a command succeeded, and that its request is declared for exactly this plan.
func declared(t *testing.T, name string, p *plans.Plan, got outcome, d *records.Declared, want func(*plans.Declaration) bool) {
	t.Helper()
	if got.code != exitDone || d == nil || d.Wrong != nil || d.Spec.ApprovedHash != p.Hash || !want(d.Spec) || p.Differs(d.Spec) != "" {
		t.Errorf("%s: %+v; declared is %+v", name, got, d)
	}
}

// journaled returns the resource version of the journal.
func journaled(t *testing.T, on client.Client) string {
	t.Helper()
	var cm corev1.ConfigMap
	if err := on.Get(t.Context(), client.ObjectKey{Namespace: "stsmigrate", Name: "stsmigrate-web-journal"}, &cm); err != nil {
		t.Fatal(err)
	}
	return cm.ResourceVersion
}

// Two identical requests count as two. What another writer has declared in the meantime is kept.
func TestARequestIsOneOfItsOwn(t *testing.T) {
	on, config := serve(t, []string{"home"})
	keep(t, on, "stsmigrate", func(j *journal.Journal) { j.Detached, j.Epoch = true, 2 })
	seen := map[string]bool{}
	for _, line := range []string{"pause web", "resume web --yes", "resume web --yes", "pause web"} {
		if got := command(t, append(strings.Fields(line), "-n", "stsmigrate", "--kubeconfig", config)...); got.code != exitDone {
			t.Fatalf("%s: %+v", line, got)
		}
		d, err := records.ReadDeclared(t.Context(), on, "stsmigrate", "web")
		if err != nil || d.Wrong != nil {
			t.Fatal(err, d.Wrong)
		}
		if d.Spec.Request != nil {
			seen[d.Spec.Request.ID] = true
		}
		if strings.HasPrefix(line, "pause") != d.Spec.Paused {
			t.Errorf("%s: paused is %t", line, d.Spec.Paused)
		}
	}
	if len(seen) != 2 {
		t.Errorf("the requests are %v, expected two", seen)
	}
}

// Without an orchestrator's API there, nothing is stored for one.
func TestADetachedPlanNeedsTheKind(t *testing.T) {
	on, config := serve(t, []string{"home"})
	delete(on.kinds, "statefulsetmigrations")
	p := keep(t, on, "elsewhere", func(*journal.Journal) {})
	got := command(t, "apply", inFile(t, p), "--detach", "--yes", "--kubeconfig", config)
	if got.code != exitError || !strings.Contains(got.errOut, "has no kind StatefulSetMigration: install the orchestrator there") {
		t.Errorf("%+v", got)
	}
	if _, err := records.NewStore(on, "stsmigrate", "web").Plan(t.Context()); err == nil {
		t.Error("it is stored all the same")
	}
}

// An orchestrator recognizes clusters by kube-system alone. A plan that knows them otherwise is not stored for it.
func TestAPlanThatKnowsClustersByNamespacesIsNotHandedOver(t *testing.T) {
	on, config := serve(t, []string{"home"}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mall", UID: "uid-of-mall"}})
	on.lives = orchestratorOf(plans.APIVersion)
	if err := on.Create(t.Context(), on.lives.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	place := plans.Ref{Cluster: "uid-of-mall", KnownBy: "mall", Context: "home", Namespace: "mall", Name: "web"}
	p := keepOf(t, on, "elsewhere", func(in *build.Inputs) {
		in.Source, in.Destination = place, place
		in.Source.Namespace = "shop"
	}, func(*plans.Plan, *journal.Journal) {})
	got := command(t, "apply", inFile(t, p), "--detach", "--yes", "--kubeconfig", config)
	if got.code != exitError || !strings.Contains(got.errOut, "knows its clusters by namespaces (mall)") || !strings.Contains(got.errOut, "nothing was written") {
		t.Errorf("%+v", got)
	}
	if _, err := records.NewStore(on, "stsmigrate", "web").Plan(t.Context()); err == nil {
		t.Error("it is stored all the same")
	}
}

// A plan is not handed to an orchestrator that does not know one of its clusters: nothing would tell its user.
func TestAPlanIsNotHandedToWhoDoesNotKnowItsClusters(t *testing.T) {
	for name, c := range map[string]struct{ knows, refused string }{
		"its own cluster":            {`{"own": "uid-of-the-cluster", "names": []}`, ""},
		"by the name in the plan":    {`{"own": "another", "names": ["east", "home"]}`, ""},
		"by no name":                 {`{"own": "another", "names": ["east"]}`, `the orchestrator knows no cluster named "home", in which the source of plan web is`},
		"it does not tell":           {"", ""},
		"what nobody can understand": {"east", "annotation stsmigrate.dev/clusters of Lease stsmigrate/stsmigrate.orchestrator.p1"},
	} {
		t.Run(name, func(t *testing.T) {
			on, config := serve(t, []string{"home"})
			on.lives = orchestratorOf(plans.APIVersion)
			if c.knows != "" {
				on.lives.Annotations["stsmigrate.dev/clusters"] = c.knows
			}
			if err := on.Create(t.Context(), on.lives.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			p := keep(t, on, "elsewhere", func(*journal.Journal) {})
			got := command(t, "apply", inFile(t, p), "--detach", "--yes", "--kubeconfig", config)
			_, err := records.NewStore(on, "stsmigrate", "web").Plan(t.Context())
			if c.refused == "" && strings.Contains(got.errOut, "knows no cluster") || c.refused != "" && (got.code != exitError || !strings.Contains(got.errOut, c.refused) || err == nil) {
				t.Errorf("%+v, stored: %t", got, err == nil)
			}
		})
	}
}

// A plan that waits for a cluster which its orchestrator does not know waits for a user: whoever waits for the plan hears it.
func TestAWaitEndsWhereTheOrchestratorLacksACluster(t *testing.T) {
	on, config := serve(t, []string{"home"})
	p := keep(t, on, "stsmigrate", func(j *journal.Journal) {
		j.Detached, j.Observed.Direction = true, plans.Move
		j.WaitingID, j.Waiting = reasons.ClusterUnknown, `source: no cluster named "east" is known`
	})
	on.lives = orchestratorOf(plans.APIVersion)
	if err := on.Create(t.Context(), on.lives.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := records.Declare(t.Context(), on, "stsmigrate", p, func(*plans.Declaration) error { return nil }); err != nil {
		t.Fatal(err)
	}
	got := command(t, "wait", "web", "-n", "stsmigrate", "--kubeconfig", config, "--timeout", "1m")
	for _, says := range []string{"waits for a cluster that the orchestrator does not know", `no cluster named "east" is known`, "ClusterUnknown", "as soon as a Secret in its namespace names that cluster", "stsmigrate abort web"} {
		if got.code != exitBlocked || !strings.Contains(got.errOut, says) {
			t.Errorf("it does not say %q: %+v", says, got)
		}
	}
}

// Nothing of a plan that was never begun is written in its clusters, and its user need not reach them to end it.
func TestAPlanThatWasNeverBegunIsAbortedWithoutItsClusters(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*journal.Journal)
		flags  string
		want   plans.Outcome
		code   int
	}{
		"never begun":    {func(*journal.Journal) {}, "", plans.Aborted, exitDone},
		"only as if":     {func(*journal.Journal) {}, "--dry-run=client", "", exitDone},
		"it was begun":   {func(j *journal.Journal) { j.Epoch = 1 }, "", "", exitError},
		"it may finally": {func(j *journal.Journal) { j.Epoch, j.Begun = 1, 1 }, "", "", exitError},
	} {
		t.Run(name, func(t *testing.T) {
			on, config := serve(t, []string{"home"})
			p := keepOf(t, on, "stsmigrate", func(in *build.Inputs) { in.Source.Cluster, in.Source.Context = "uid-of-east", "east" }, func(_ *plans.Plan, j *journal.Journal) { c.change(j) })
			got := command(t, slices.Concat([]string{"abort", "web", "-n", "stsmigrate", "--yes", "--kubeconfig", config}, strings.Fields(c.flags))...)
			j, _, err := records.NewStore(on, "stsmigrate", "web").Journal(t.Context(), p)
			if err != nil || got.code != c.code || j.Outcome != c.want || c.code == exitDone && !strings.Contains(got.errOut, "was never begun") {
				t.Errorf("%v: outcome %q: %+v", err, j.Outcome, got)
			}
		})
	}
}

// orchestratorOf returns the Lease of an orchestrator that reads plans of this version.
func orchestratorOf(reads string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "stsmigrate", Name: "stsmigrate.orchestrator.p1", Labels: map[string]string{records.HeartbeatLabel: ""},
		Annotations: map[string]string{"stsmigrate.dev/version": "v0.1.0", "stsmigrate.dev/reads": reads},
	}}
}

// A plan is handed over only to an orchestrator that is alive.
func TestAPlanIsHandedOverToWhoLives(t *testing.T) {
	replicas := int32(3)
	p, err := build.Plan(build.Inputs{
		Name: "web", ID: "abc", MaxUnavailable: 1,
		Source:      plans.Ref{Cluster: "uid-of-the-cluster", Context: "home", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "uid-of-the-cluster", Context: "home", Namespace: "mall", Name: "web"},
		Set:         &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const next = "asking the source what you may do" // the checks
	for name, c := range map[string]struct {
		lives *coordinationv1.Lease
		want  []string
	}{
		"nobody lives":     {nil, []string{"there is no orchestrator in namespace stsmigrate", "nothing was written", "--home-namespace"}},
		"one lives":        {orchestratorOf(plans.APIVersion), []string{next}},
		"one lives, older": {orchestratorOf("stsmigrate.dev/v1alpha0"), []string{"(v0.1.0) reads plans of version \"stsmigrate.dev/v1alpha0\"", "the orchestrator is the older of the two"}},
	} {
		on, config := serve(t, []string{"home"})
		if on.lives = c.lives; c.lives != nil {
			if err := on.Create(t.Context(), c.lives.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
		got := command(t, "apply", inFile(t, p), "--detach", "--yes", "--kubeconfig", config)
		if got.code != exitError || slices.ContainsFunc(c.want, func(w string) bool { return !strings.Contains(got.errOut, w) }) || strings.Contains(got.errOut, next) != (c.want[0] == next) {
			t.Errorf("%s: %+v, expected %q", name, got, c.want)
		}
		if _, err := records.NewStore(on, "stsmigrate", "web").Plan(t.Context()); err == nil {
			t.Errorf("%s: the plan is stored", name)
		}
	}
}

// The status of a plan that waits for an orchestrator reports when there is none.
func TestTheStatusSaysThatNoOrchestratorLives(t *testing.T) {
	for name, c := range map[string]struct {
		lives *coordinationv1.Lease
		want  string
	}{
		"none":  {nil, "orchestrator: there is no orchestrator in namespace stsmigrate\nnext:    start an orchestrator there, which resumes it: `kubectl --kubeconfig CONFIG --context home -n stsmigrate get pods`"},
		"one":   {orchestratorOf(plans.APIVersion), "next:    the orchestrator continues it"},
		"other": {orchestratorOf("stsmigrate.dev/v2"), "this stsmigrate is the older of the two"},
	} {
		on, config := serve(t, []string{"home"})
		c.want = strings.ReplaceAll(c.want, "CONFIG", config)
		if on.lives = c.lives; c.lives != nil {
			if err := on.Create(t.Context(), c.lives.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
		keep(t, on, "stsmigrate", func(j *journal.Journal) { j.Detached, j.Epoch = true, 1 })
		if got := command(t, "status", "web", "-n", "stsmigrate", "--kubeconfig", config); got.code != exitDone || !strings.Contains(got.out, c.want) || !strings.Contains(got.out, "  Waiting  ") {
			t.Errorf("%s: %+v, expected %q", name, got, c.want)
		}
	}
}

// A resume that cannot have the plan leaves the pause, and says what to do with the process that has it.
func TestAResumeThatFailsLeavesThePause(t *testing.T) {
	on, config := serve(t, []string{"home"})
	p := keep(t, on, "mall", func(j *journal.Journal) { j.Epoch = 1; j.Paused = true })
	now, seconds, holder := metav1.NowMicro(), int32(60), "host/4711"
	held := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "stsmigrate-web"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now, LeaseDurationSeconds: &seconds}}
	if err := on.Create(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	got := command(t, "resume", "--yes", "web", "--kubeconfig", config, "-n", "mall")
	if got.code != exitError || !strings.Contains(got.errOut, "is being carried out by host/4711") || !strings.Contains(got.errOut, "to watch it: `stsmigrate status web -n mall") {
		t.Errorf("%d: %s", got.code, got.errOut)
	}
	if j, _, err := records.NewStore(on, "mall", "web").Journal(t.Context(), p); err != nil || !j.Paused {
		t.Errorf("the plan is not paused any more: %v", err)
	}
}

// kept stores a plan that was finalized with --keep-names, and whose source was in another cluster.
func kept(t *testing.T, on client.Client, detached bool) *plans.Plan {
	t.Helper()
	return keepOf(t, on, "mall", func(in *build.Inputs) {
		in.Source.Cluster, in.Source.Context, in.Destination.Context = "uid-of-the-old-cluster", "east", "west"
		in.Set.Spec.ServiceName, in.Names = "web", plans.Names{Mode: plans.Bridge, Service: "web"}
	}, func(p *plans.Plan, j *journal.Journal) {
		j.StartLeg(p, plans.Finalize)
		j.Epoch, j.Outcome, j.KeepNames, j.Detached = 2, plans.Finalized, true, detached
		for s, _, more := j.Next(p); more; s, _, more = j.Next(p) {
			j.Done, j.Begun = s.Seq, s.Seq
		}
	})
}

// Kept names can be taken away after the source's cluster has been switched off (L6).
func TestKeptNamesAreRemovedWithoutTheSource(t *testing.T) {
	for _, detached := range []bool{false, true} {
		on, config := serve(t, []string{"west"})
		p := kept(t, on, detached)
		run := func(args ...string) outcome {
			return command(t, append([]string{"names", "web", "--remove", "--yes", "-n", "mall", "--context", "west", "--kubeconfig", config}, args...)...)
		}
		if got := run("--source-gone", "another"); got.code != exitError || !strings.Contains(got.errOut, "is in the cluster uid-of-the-old-cluster") {
			t.Errorf("detached %t, the UID of another cluster: %+v", detached, got)
		}
		if got := run(); !detached && (got.code != exitError || !strings.Contains(got.errOut, "east")) {
			t.Errorf("without the word: %+v", got)
		}
		got := run("--source-gone", "uid-of-the-old-cluster")
		store := records.NewStore(on, "mall", p.Name)
		j, _, err := store.Journal(t.Context(), p)
		if err != nil || got.code != 0 || j.KeepNames != detached {
			t.Fatalf("detached %t: %+v (%v)", detached, got, err)
		}
		if !detached {
			continue
		}
		if d, err := store.Declared(t.Context()); err != nil || d == nil || !requests.Read(p, j, d.Spec).RemoveNames || !requests.Read(p, j, d.Spec).Assurance.SourceGone {
			t.Errorf("the orchestrator is asked for %+v (%v)", d, err)
		}
	}
}

// An orchestrator carries a plan out as carefully as it was told last. What is not said stays as it is.
func TestAnOrchestratorIsToldToBeCareful(t *testing.T) {
	on, config := serve(t, []string{"home"})
	keep(t, on, "stsmigrate", func(j *journal.Journal) { j.Detached, j.Epoch, j.Done, j.Begun = true, 2, 1, 1 })
	store := records.NewStore(on, "stsmigrate", "web")
	for _, c := range []struct {
		line []string
		want bool
	}{
		{[]string{"resume", "web"}, false},
		{[]string{"resume", "web", "--careful"}, true},
		{[]string{"resume", "web"}, true},
		{[]string{"resume", "web", "--careful=false"}, false},
		{[]string{"abort", "web", "--careful"}, true},
	} {
		got := command(t, append(c.line, "-n", "stsmigrate", "--yes", "--kubeconfig", config)...)
		if d, err := store.Declared(t.Context()); got.code != 0 || err != nil || d == nil || d.Spec.Careful != c.want {
			t.Errorf("%q: %+v; declared %+v, %v", c.line, got, d, err)
		}
	}
}
