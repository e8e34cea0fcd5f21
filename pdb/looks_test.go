package pdb

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// plan returns a plan that moves web[0..4] from shop to mall with d = 1 and a user's budget on the source.
func plan() *plans.Plan {
	return &plans.Plan{
		ID: "web-abc", Start: 0, Count: 5, MaxUnavailable: 1, Window: 1,
		Source:      plans.Ref{Cluster: "one", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "one", Namespace: "mall", Name: "web"},
		Budget:      plans.Budget{Source: "web", Destination: "web", SourceExisted: true},
	}
}

type change func(*policyv1.PodDisruptionBudget)

func budget(namespace string, changes ...change) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Generation: 3}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	b.Status.ObservedGeneration = 3
	for _, f := range changes {
		f(b)
	}
	return b
}

func atLeast(n int32) change {
	return func(b *policyv1.PodDisruptionBudget) { v := intstr.FromInt32(n); b.Spec.MinAvailable = &v }
}

func atMost(s string) change {
	return func(b *policyv1.PodDisruptionBudget) { v := intstr.Parse(s); b.Spec.MaxUnavailable = &v }
}

func stamped(s string) change {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Annotations = map[string]string{plans.StampAnnotation: s}
	}
}

// wrote sets the numbers that the plan wrote last.
func wrote(words string) change {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Annotations = map[string]string{plans.StampAnnotation: "web-abc/1/9", plans.BudgetAnnotation: words}
	}
}

func unseen(b *policyv1.PodDisruptionBudget) { b.Status.ObservedGeneration = 2 }

func evicting(b *policyv1.PodDisruptionBudget) {
	b.Status.DisruptedPods = map[string]metav1.Time{"web-1": {}}
}

func moment(op plans.Op) plans.StepContext {
	return plans.StepContext{
		Step:  plans.Step{Seq: 20, Op: op, Ordinals: plans.Slice{Start: 4, Replicas: 1}, From: plans.Source},
		Stamp: plans.Stamp{Plan: "web-abc", Epoch: 1, Seq: 20},
	}
}

// 3335-17, 3335-37: one of five ordinals may be down. While one is in flight, none of the others may be
// down. After it has arrived, one of the remaining four may be.
func TestBudgets(t *testing.T) {
	ours := stamped("web-abc/1/9")
	tests := []struct {
		name   string
		op     plans.Op
		world  []client.Object
		want   plans.Standing
		reason string
	}{
		{"tighten takes the unit from the user's budget first", plans.Tighten, []client.Object{budget("shop", atMost("30%"))}, plans.Before, "source: PodDisruptionBudget web: maxUnavailable 30% -> minAvailable 5"},
		{"then makes the other side's, allowing nothing", plans.Tighten, []client.Object{budget("shop", atLeast(5), ours)}, plans.Before, "destination: create PodDisruptionBudget web: maxUnavailable 0"},
		{"then waits for the controller", plans.Tighten, []client.Object{budget("shop", atLeast(5), ours, unseen), budget("mall", atMost("0"), ours)}, plans.During, "waiting for the disruption controller"},
		{"then for evictions that were granted", plans.Tighten, []client.Object{budget("shop", atLeast(5), ours, evicting), budget("mall", atMost("0"), ours)}, plans.During, "eviction of pod web-1"},
		{"and is done", plans.Tighten, []client.Object{budget("shop", atLeast(5), ours), budget("mall", atMost("0"), ours)}, plans.After, ""},
		{"relax gives the unit to the larger side", plans.Relax, []client.Object{budget("shop", atLeast(5), ours), budget("mall", atMost("0"), ours)}, plans.Before, "source: PodDisruptionBudget web: minAvailable 5 -> minAvailable 3"},
		{"relax lowers one before it raises the other", plans.Relax, []client.Object{budget("shop", atLeast(5), ours), budget("mall", atMost("1"), ours)}, plans.Before, "destination: PodDisruptionBudget web: maxUnavailable 1 -> maxUnavailable 0"},
		{"relax waits for what it lowered before it raises", plans.Relax, []client.Object{budget("shop", atLeast(5), ours), budget("mall", atMost("0"), ours, unseen)}, plans.During, "waiting for the disruption controller"},
		{"stops when the user's budget was deleted", plans.Tighten, []client.Object{set("shop")}, plans.Conflict, "was deleted by another writer; recreate it"},
		{"stops at a budget that a stranger made", plans.Tighten, []client.Object{budget("shop", atLeast(5), ours), budget("mall", atMost("2"))}, plans.Conflict, "was created by another writer after the plan was made"},
		{"stops behind a later stamp", plans.Tighten, []client.Object{budget("shop", atMost("1"), stamped("web-abc/1/21"))}, plans.Conflict, "another process"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(tt.world...).Build()
			on := map[plans.Side]client.Client{plans.Source: c, plans.Destination: c}
			s, err := seen(t, on, moment(tt.op), looking(tt.op))
			if err != nil {
				t.Fatal(err)
			}
			if s.Standing != tt.want || !strings.Contains(s.Reason, tt.reason) {
				t.Errorf("got %s (%s), expected %s (%s)", s.Standing, s.Reason, tt.want, tt.reason)
			}
		})
	}
}

// lookOver makes a look over clients.
type lookOver func(map[plans.Side]client.Client) plans.Look

// looking makes the look of a step of the plan.
func looking(op plans.Op) lookOver {
	return func(on map[plans.Side]client.Client) plans.Look { return Looks(plan(), on, nil)[op] }
}

// seen returns what a look sees, after each of its reads has failed in turn.
func seen(t *testing.T, on map[plans.Side]client.Client, m plans.StepContext, look lookOver) (plans.Observation, error) {
	t.Helper()
	planstest.Unread(t, on, func(on map[plans.Side]client.Client) (plans.Observation, error) { return look(on)(t.Context(), m) })
	return look(on)(t.Context(), m)
}

func TestTheUsersSpecIsSavedBeforeTheFirstWrite(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(budget("shop", atMost("30%"))).Build()
	s, err := Looks(plan(), map[plans.Side]client.Client{plans.Source: c, plans.Destination: c}, nil)[plans.Tighten](t.Context(), moment(plans.Tighten))
	if err != nil {
		t.Fatal(err)
	}
	saved := s.Undo.Saved.Budgets[plans.Source]
	if Words(saved) != "maxUnavailable 30%" || len(s.Undo.Saved.Budgets) != 1 {
		t.Errorf("saved %v", s.Undo.Saved.Budgets)
	}
}

// Two ordinals may be down. If one is down beside the wave, no eviction is left (S2, S3).
func TestOrdinalsThatAreDownTakeTheirUnits(t *testing.T) {
	p, m := plan(), moment(plans.Tighten)
	p.MaxUnavailable = 2
	for down, want := range map[int32]string{0: "maxUnavailable 2 -> minAvailable 4", 1: "maxUnavailable 2 -> minAvailable 5"} {
		api := fake.NewClientBuilder().WithObjects(budget("shop", atMost("2"))).Build()
		m.Down = down
		s, err := Looks(p, map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}, nil)[plans.Tighten](t.Context(), m)
		if err != nil || !strings.HasSuffix(s.Reason, want) {
			t.Errorf("%d are down: %q, %v, expected %q", down, s.Reason, err, want)
		}
	}
}

func TestNumbersThatAnotherWriterSetStay(t *testing.T) {
	changed := []client.Object{budget("shop", atMost("3"), wrote("minAvailable 5")), budget("mall", atMost("0"), wrote("maxUnavailable 0"))}
	api := fake.NewClientBuilder().WithObjects(changed...).Build()
	on := map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}
	for name, look := range map[string]lookOver{
		"tighten": looking(plans.Tighten), "relax": looking(plans.Relax),
		"within":  func(on map[plans.Side]client.Client) plans.Look { return Within(plan(), on, 0) },
		"restore": func(on map[plans.Side]client.Client) plans.Look { return Restore(plan(), on) },
	} {
		s, err := seen(t, on, moment(plans.Tighten), look)
		if want := "was changed to maxUnavailable 3 by an unknown client; set it back to minAvailable 5"; err != nil || s.Standing != plans.Conflict || !strings.Contains(s.Reason, want) {
			t.Errorf("%s: %s (%s), %v, expected %q", name, s.Standing, s.Reason, err, want)
		}
	}
}

// Selector and eviction policy stay as the user has them, on the source and on the copy of the destination.
// The old numbers are noted on both, where they outlive the journal.
func TestABudgetChangesInItsNumbersOnly(t *testing.T) {
	user := budget("shop", atMost("30%"), others)
	user.Labels = map[string]string{"team": "web"}
	source, destination := set("shop"), set("mall")
	source.Spec.Template.Labels, destination.Spec.Template.Labels = user.Spec.Selector.MatchLabels, user.Spec.Selector.MatchLabels
	api := fake.NewClientBuilder().WithObjects(user, source, destination).Build()
	on := map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}
	m := moment(plans.Tighten)
	m.Saved.Budgets = map[plans.Side]policyv1.PodDisruptionBudgetSpec{plans.Source: user.Spec}
	look := Looks(plan(), on, nil)[plans.Tighten]
	for range 2 {
		s, err := look(t.Context(), m)
		if err != nil || s.Standing != plans.Before {
			t.Fatalf("%s (%s), %v", s.Standing, s.Reason, err)
		}
		if err := s.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for namespace, numbers := range map[string]change{"shop": atLeast(5), "mall": atMost("0")} {
		var b policyv1.PodDisruptionBudget
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, &b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(budget(namespace, numbers, others).Spec, b.Spec); diff != "" || b.Labels["team"] != "web" {
			t.Errorf("%s: labels %v (-want +got)\n%s", namespace, b.Labels, diff)
		}
		before, err := plans.OriginalOf(&b)
		if err != nil || before == nil || before.MaxUnavailable.String() != "30%" {
			t.Errorf("%s: noted are %+v, %v, expected maxUnavailable 30%%", namespace, before, err)
		}
	}
}

func TestRestore(t *testing.T) {
	user := budget("shop", atMost("30%")).Spec
	saved := plans.Saved{Budgets: map[plans.Side]policyv1.PodDisruptionBudgetSpec{plans.Source: user}}
	ours := stamped("web-abc/1/9")
	tests := []struct {
		name  string
		from  plans.Side // the side that ends up without the ordinals
		saved plans.Saved
		world []client.Object
		// the budget that remains on each side, or "" if it is deleted
		source, destination string
	}{
		{"after a move both are the user's", plans.Source, saved, []client.Object{budget("shop", atLeast(0), ours), budget("mall", atMost("1"), ours)}, "maxUnavailable 30%", "maxUnavailable 30%"},
		{"after an abort ours is gone", plans.Destination, saved, []client.Object{budget("shop", atMost("1"), ours), budget("mall", atLeast(0), ours)}, "maxUnavailable 30%", ""},
		{"what somebody changed of ours besides the numbers stays", plans.Source, saved, []client.Object{budget("shop", atLeast(0), ours), budget("mall", atMost("1"), ours, others)}, "maxUnavailable 30%", "maxUnavailable 30%"},
		{"a user's budget that was only marked is only unmarked", plans.Destination, plans.Saved{}, []client.Object{budget("shop", atMost("30%"), ours)}, "maxUnavailable 30%", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(tt.world...).Build()
			m := moment(plans.Thaw)
			m.From, m.Saved = tt.from, tt.saved
			look := Restore(plan(), map[plans.Side]client.Client{plans.Source: c, plans.Destination: c})
			s, err := look(t.Context(), m)
			for ; err == nil && s.Standing == plans.Before; s, err = look(t.Context(), m) {
				if err := s.Write(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err != nil || s.Standing != plans.After {
				t.Fatalf("%s (%s), %v", s.Standing, s.Reason, err)
			}
			for namespace, want := range map[string]string{"shop": tt.source, "mall": tt.destination} {
				var b policyv1.PodDisruptionBudget
				err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, &b)
				if want == "" && err == nil || want != "" && (err != nil || Words(b.Spec) != want || len(b.Annotations) != 0) {
					t.Errorf("%s: %s %v, %v; expected %q", namespace, Words(b.Spec), b.Annotations, err, want)
				}
			}
		})
	}
}

func TestRestoreStopsBehindALaterProcess(t *testing.T) {
	saved := plans.Saved{Budgets: map[plans.Side]policyv1.PodDisruptionBudgetSpec{plans.Source: budget("shop", atMost("30%")).Spec}}
	api := fake.NewClientBuilder().WithObjects(budget("shop", atMost("1"), stamped("web-abc/2/1")), budget("mall", atMost("1"), stamped("web-abc/1/9"))).Build()
	m := moment(plans.Thaw)
	m.Saved = saved
	s, err := Restore(plan(), map[plans.Side]client.Client{plans.Source: api, plans.Destination: api})(t.Context(), m)
	if err != nil || s.Standing != plans.Conflict || !strings.Contains(s.Reason, "another process") {
		t.Errorf("%s (%s), %v", s.Standing, s.Reason, err)
	}
}

// A budget that lost its stamp and still has the numbers of the plan would keep them for good. One with other
// numbers is somebody else's.
func TestABudgetThatLostItsStampStopsTheEnd(t *testing.T) {
	saved := plans.Saved{Budgets: map[plans.Side]policyv1.PodDisruptionBudgetSpec{plans.Source: budget("shop", atMost("30%")).Spec}}
	for name, c := range map[string]struct {
		source *policyv1.PodDisruptionBudget
		want   plans.Standing
	}{
		"with the numbers of the plan":   {budget("shop", atLeast(5)), plans.Conflict},
		"with a number of the plan":      {budget("shop", atMost("0")), plans.Conflict},
		"with the numbers of the user":   {budget("shop", atMost("30%")), plans.After},
		"with a percentage":              {budget("shop", atMost("50%")), plans.After},
		"with more than the plan allows": {budget("shop", atMost("2")), plans.After},
	} {
		api := fake.NewClientBuilder().WithObjects(c.source).Build()
		m := moment(plans.Thaw)
		m.From, m.Saved = plans.Destination, saved
		s, err := Restore(plan(), map[plans.Side]client.Client{plans.Source: api, plans.Destination: api})(t.Context(), m)
		if err != nil || s.Standing != c.want || c.want == plans.Conflict && !strings.Contains(s.Reason, "lost the stamp of this plan") {
			t.Errorf("%s: %s (%s), %v, expected %s", name, s.Standing, s.Reason, err, c.want)
		}
	}
}

// A budget that the plan made for its own time is no user's, and would stay in silence if its stamp was removed.
func TestABudgetOfThePlanAloneIsNotLeft(t *testing.T) {
	for name, c := range map[string]struct {
		left *policyv1.PodDisruptionBudget
		want plans.Standing
	}{
		"it is gone":              {budget("park", atMost("1")), plans.After},
		"that of the source":      {budget("shop", atLeast(0)), plans.Conflict},
		"that of the destination": {budget("mall", atMost("1")), plans.Conflict},
	} {
		api := fake.NewClientBuilder().WithObjects(c.left).Build()
		p := plan()
		p.Budget.SourceExisted, p.Budget.DestinationExisted = false, false
		s, err := Restore(p, map[plans.Side]client.Client{plans.Source: api, plans.Destination: api})(t.Context(), moment(plans.Thaw))
		if err != nil || s.Standing != c.want || c.want == plans.Conflict && !strings.Contains(s.Reason, "lost the stamp of this plan, which made it for the time of the move: delete it") {
			t.Errorf("%s: %s (%s), %v, expected %s", name, s.Standing, s.Reason, err, c.want)
		}
	}
}

// The user is never told to delete a budget that was there before the plan.
func TestABudgetOfTheUserIsNotToBeDeleted(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(budget("mall", atMost("1"))).Build()
	p := plan()
	p.Budget.SourceExisted, p.Budget.DestinationExisted = false, true
	s, err := Restore(p, map[plans.Side]client.Client{plans.Source: api, plans.Destination: api})(t.Context(), moment(plans.Thaw))
	if err != nil || s.Standing != plans.After || strings.Contains(s.Reason, "delete it") {
		t.Errorf("%s (%s), %v", s.Standing, s.Reason, err)
	}
}

// A namespace that was deleted took the set with the budget: who recreates the budget alone has no volumes behind it.
func TestABudgetThatWentWithItsSetIsNotAskedForAlone(t *testing.T) {
	for name, c := range map[string]struct {
		world []client.Object
		want  string
	}{
		"the set is there": {[]client.Object{set("shop")}, "PodDisruptionBudget web of shop/web was deleted by another writer; recreate it"},
		"the set is gone":  {nil, "StatefulSet shop/web does not exist, and neither does PodDisruptionBudget web; recreate both, the set as it was, with the ordinals [0..4] and its volumes, and pass --readopt"},
	} {
		api := fake.NewClientBuilder().WithObjects(append(c.world, set("mall"))...).Build()
		s, err := Looks(plan(), map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}, nil)[plans.Tighten](t.Context(), moment(plans.Tighten))
		if err != nil || s.Standing != plans.Conflict || s.Reason != c.want {
			t.Errorf("%s: %s (%s), %v, expected %q", name, s.Standing, s.Reason, err, c.want)
		}
	}
}

// Between look and write another writer may have changed the budget, and may need it.
func TestABudgetThatChangedIsNotDeleted(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(budget("mall", atMost("1"), stamped("web-abc/1/9"))).Build()
	m := moment(plans.Thaw)
	m.From = plans.Destination
	s, err := Restore(plan(), map[plans.Side]client.Client{plans.Source: api, plans.Destination: api})(t.Context(), m)
	if err != nil || s.Standing != plans.Before {
		t.Fatalf("%s (%s), %v", s.Standing, s.Reason, err)
	}
	var b policyv1.PodDisruptionBudget
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "mall", Name: "web"}, &b); err != nil {
		t.Fatal(err)
	}
	plans.Unmark(&b)
	if err := api.Update(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("%v, expected a conflict", err)
	}
}

// others changes fields of a budget other than its numbers, as a user may.
func others(b *policyv1.PodDisruptionBudget) {
	always := policyv1.AlwaysAllow
	b.Spec.UnhealthyPodEvictionPolicy = &always
	b.Spec.Selector.MatchLabels["tier"] = "front"
}

func TestRestoreKeepsWhatTheUserChanged(t *testing.T) {
	saved := plans.Saved{Budgets: map[plans.Side]policyv1.PodDisruptionBudgetSpec{plans.Source: budget("shop", atMost("30%")).Spec}}
	for _, c := range []struct {
		name  string
		world *policyv1.PodDisruptionBudget
		want  string
	}{
		{"nothing", budget("shop", atMost("1"), stamped("web-abc/1/9")), "back to maxUnavailable 30%"},
		{"both", budget("shop", atMost("1"), stamped("web-abc/1/9"), others), "back to maxUnavailable 30%; another writer changed its selector and its unhealthyPodEvictionPolicy since the move began, and that change is kept"},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(c.world).Build()
			m := moment(plans.Thaw)
			m.From, m.Saved = plans.Destination, saved
			s, err := Restore(plan(), map[plans.Side]client.Client{plans.Source: api, plans.Destination: api})(t.Context(), m)
			if err != nil || !strings.HasSuffix(s.Reason, c.want) {
				t.Fatalf("%q (%v), expected %q", s.Reason, err, c.want)
			}
			if err := s.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			var b policyv1.PodDisruptionBudget
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(c.world), &b); err != nil {
				t.Fatal(err)
			}
			want := c.world.Spec.DeepCopy()
			want.MaxUnavailable = saved.Budgets[plans.Source].MaxUnavailable
			if diff := cmp.Diff(*want, b.Spec); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
