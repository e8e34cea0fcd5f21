package pdb

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
)

// With d = 1 the only unit moves to the side that needs it, and both sides never have it at once.
func TestTheOnlyUnitIsHandedOver(t *testing.T) {
	ours := stamped("web-abc/1/9")
	for _, c := range []struct {
		name   string
		op     plans.Op // Relax: ordinal 2 has arrived, 2|3; Tighten: it has not left, 3|2
		needy  plans.Side
		world  []client.Object
		want   plans.Standing
		reason string
	}{
		{"the larger side keeps it if nobody needs it", plans.Relax, "", []client.Object{budget("shop", atLeast(2), ours), budget("mall", atMost("1"), ours)}, plans.After, ""},
		{"the side that has it keeps it if it needs it", plans.Relax, plans.Destination, []client.Object{budget("shop", atLeast(2), ours), budget("mall", atMost("1"), ours)}, plans.After, ""},
		{"the other is lowered first", plans.Relax, plans.Source, []client.Object{budget("shop", atLeast(2), ours), budget("mall", atMost("1"), ours)}, plans.Before, "destination: PodDisruptionBudget web: maxUnavailable 1 -> maxUnavailable 0"},
		{"the controller has to see it", plans.Relax, plans.Source, []client.Object{budget("shop", atLeast(2), ours), budget("mall", atMost("0"), ours, unseen)}, plans.During, "waiting for the disruption controller"},
		{"what was granted there has to come first", plans.Relax, plans.Source, []client.Object{budget("shop", atLeast(2), ours), budget("mall", atMost("0"), ours, evicting)}, plans.During, "eviction of pod web-1"},
		{"then it rises", plans.Relax, plans.Source, []client.Object{budget("shop", atLeast(2), ours), budget("mall", atMost("0"), ours)}, plans.Before, "source: PodDisruptionBudget web: minAvailable 2 -> minAvailable 1"},
		{"a minAvailable above the number of pods does not stay", plans.Relax, "", []client.Object{budget("shop", atLeast(3), ours), budget("mall", atMost("1"), ours)}, plans.Before, "source: PodDisruptionBudget web: minAvailable 3 -> minAvailable 2"},
		{"a wave that has not left is still on its side", plans.Tighten, "", []client.Object{budget("shop", atLeast(3), ours), budget("mall", atMost("0"), ours)}, plans.Before, "source: PodDisruptionBudget web: minAvailable 3 -> minAvailable 2"},
		{"the other side may need the unit then", plans.Tighten, plans.Destination, []client.Object{budget("shop", atLeast(3), ours), budget("mall", atMost("0"), ours)}, plans.Before, "destination: PodDisruptionBudget web: maxUnavailable 0 -> maxUnavailable 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(c.world...).Build()
			on := map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}
			m := moment(c.op)
			m.Ordinals = plans.Slice{Start: 2, Replicas: 1}
			s, err := HandOver(plan(), on, func(context.Context) (plans.Side, error) { return c.needy, nil })(t.Context(), m)
			if err != nil || s.Standing != c.want || !strings.Contains(s.Reason, c.reason) {
				t.Errorf("%s (%s), %v, expected %s (%s)", s.Standing, s.Reason, err, c.want, c.reason)
			}
		})
	}
}

// A budget that allows nothing stays for a wave that follows at once. Whatever allows something is brought to the numbers
// of that wave, and any other wave gets its own numbers.
func TestATightBudgetStaysForAWaveThatFollows(t *testing.T) {
	ours := stamped("web-abc/1/9")
	two := func(p *plans.Plan) { p.MaxUnavailable = 2 }
	for name, c := range map[string]struct {
		plan                func(*plans.Plan)
		source, destination change
		follows             bool
		want                string // what is written, or ""
	}{
		"it follows":                               {nil, atLeast(5), atMost("0"), true, ""},
		"it does not follow":                       {nil, atLeast(5), atMost("0"), false, "minAvailable 5 -> minAvailable 3"},
		"the budget was opened":                    {nil, atLeast(2), atMost("0"), true, "minAvailable 2 -> minAvailable 3"},
		"the other budget allows something":        {nil, atLeast(5), atMost("1"), true, "maxUnavailable 1 -> maxUnavailable 0"},
		"the budget is bounded as on arrival":      {nil, atMost("0"), atMost("0"), true, "maxUnavailable 0 -> minAvailable 3"},
		"evictions are allowed while it is away":   {two, atLeast(5), atMost("0"), true, "maxUnavailable 0 -> maxUnavailable 1"},
		"fewer are wanted than there were allowed": {nil, atLeast(3), atMost("0"), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(budget("shop", c.source, ours), budget("mall", c.destination, ours)).Build()
			p := plan()
			if c.plan != nil {
				c.plan(p)
			}
			m := moment(plans.Tighten)
			m.Ordinals, m.Follows = plans.Slice{Start: 2, Replicas: 1}, c.follows
			s, err := Looks(p, map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}, nil)[plans.Tighten](t.Context(), m)
			if err != nil || (s.Standing == plans.After) != (c.want == "") || !strings.HasSuffix(s.Reason, c.want) {
				t.Errorf("%s (%s), %v, expected %q", s.Standing, s.Reason, err, c.want)
			}
		})
	}
}

// Relax leaves the unit where it is, and calls Needs only if neither side has it.
func TestRelaxAsksOnceWhoNeedsTheUnit(t *testing.T) {
	ours := stamped("web-abc/1/9")
	for name, c := range map[string]struct {
		source, destination change
		asked               int
	}{
		"on neither side":    {atLeast(2), atMost("0"), 1},
		"on the source":      {atLeast(1), atMost("0"), 0},
		"on the destination": {atLeast(2), atMost("1"), 0},
	} {
		api := fake.NewClientBuilder().WithObjects(budget("shop", c.source, ours), budget("mall", c.destination, ours)).Build()
		asked := 0
		m := moment(plans.Relax)
		m.Ordinals = plans.Slice{Start: 2, Replicas: 1}
		on := map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}
		s, err := Looks(plan(), on, func(context.Context) (plans.Side, error) { asked++; return plans.Source, nil })[plans.Relax](t.Context(), m)
		if err != nil || asked != c.asked || (s.Standing == plans.After) != (c.asked == 0) {
			t.Errorf("%s: %s (%s), %v, asked %d times, expected %d", name, s.Standing, s.Reason, err, asked, c.asked)
		}
		if side, err := Holder(t.Context(), plan(), on, m.Step); err != nil || !strings.HasSuffix(name, string(side)) {
			t.Errorf("%s: %q has it, %v", name, side, err)
		}
	}
}

// A wave that follows another one may leave a budget stricter than the pods that are left: what it allows decides.
func TestTheUnitIsWhereEvictionsAreAllowed(t *testing.T) {
	ours := stamped("web-abc/1/9")
	for want, c := range map[plans.Side]struct{ source, destination change }{
		"":                {atLeast(5), atMost("0")},
		plans.Source:      {atLeast(1), atMost("0")},
		plans.Destination: {atLeast(5), atMost("1")},
	} {
		api := fake.NewClientBuilder().WithObjects(budget("shop", c.source, ours), budget("mall", c.destination, ours)).Build()
		m := moment(plans.Tighten)
		m.Ordinals = plans.Slice{Start: 1, Replicas: 1}
		if side, err := Holder(t.Context(), plan(), map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}, m.Step); err != nil || side != want {
			t.Errorf("%q has it, %v, expected %q", side, err, want)
		}
	}
}

// Nobody is told that no node can be drained where nothing bounds the evictions of a side.
func TestTheUnitIsNotSaidToBeNowhereWithoutBothBudgets(t *testing.T) {
	ours := stamped("web-abc/1/9")
	for name, world := range map[string][]client.Object{
		"that of the destination is gone": {budget("shop", atLeast(1), ours)},
		"that of the source is gone":      {budget("mall", atMost("0"), ours)},
		"both allow evictions":            {budget("shop", atLeast(1), ours), budget("mall", atMost("1"), ours)},
	} {
		api := fake.NewClientBuilder().WithObjects(world...).Build()
		m := moment(plans.Tighten)
		m.Ordinals = plans.Slice{Start: 1, Replicas: 1}
		if side, err := Holder(t.Context(), plan(), map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}, m.Step); err == nil {
			t.Errorf("%s: %q has it, expected an error", name, side)
		}
	}
}

// A pod that its set has scaled away and not deleted yet counts as healthy. The budget would allow one
// eviction too many.
func TestBudgetsStayClosedUntilLatePodsAreGone(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-2"}}
	source := set("shop")
	two := int32(2)
	source.Spec.Replicas = &two
	api := fake.NewClientBuilder().WithObjects(source, pod, budget("shop", atMost("0"), stamped("web-abc/1/9")), budget("mall", atLeast(2), stamped("web-abc/1/9"))).Build()
	m := moment(plans.Tighten)
	m.Ordinals, m.From, m.Reversed = plans.Slice{Start: 2, Replicas: 1}, plans.Destination, true
	on := map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}
	for name, look := range map[string]lookOver{
		"hand over": func(on map[plans.Side]client.Client) plans.Look { return HandOver(plan(), on, nil) },
		"tighten":   looking(plans.Tighten),
	} {
		s, err := seen(t, on, m, look)
		if err != nil || s.Standing != plans.During || !strings.Contains(s.Reason, "waiting for the StatefulSet controller to delete it") {
			t.Errorf("%s: %s (%s), %v", name, s.Standing, s.Reason, err)
		}
	}
}
