package journal

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// vacating returns a journal whose first wave is on neither side.
func vacating(p *plans.Plan) *Journal {
	j := New(p)
	for s, more := p.Step(j.Leg, 1); more; s, more = p.Step(j.Leg, s.Seq+1) {
		if j.Begun, j.Done = s.Seq, s.Seq-1; s.Op == plans.Vacate {
			j.Flight = &plans.Flight{Ordinals: s.Ordinals, From: s.From, Pods: []plans.Pod{{Ordinal: s.Ordinals.Start, Node: "n1"}}}
			return j
		}
	}
	panic("there is no Vacate")
}

func TestAWordIsKeptWithWhatItWasSaidOf(t *testing.T) {
	p := planstest.Three()
	j := vacating(p)
	for range 2 {
		if err := j.Assure(p, plans.Assurance{NodeGone: "n1"}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(j.Flight.NodesGone, []string{"n1"}) || !strings.Contains(strings.Join(j.AssuredFacts(), ""), "node n1 of the source is gone for good") {
		t.Errorf("%+v, %q", j.Flight, j.AssuredFacts())
	}
	j.StartLeg(p, plans.Abort)
	if err := j.Assure(p, plans.Assurance{NodeGone: "n2", MaxUnavailable: 3, Readopt: true}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(j.Flight.NodesGone, []string{"n1", "n2"}) || j.allows(p) != 3 {
		t.Errorf("%+v, %d", j.Flight, j.allows(p))
	}
	if err := j.Assure(p, plans.Assurance{}); err != nil || j.Assurances.Readopt || j.allows(p) != 3 {
		t.Errorf("%v: %+v", err, j.Assurances)
	}
}

// Between two clusters a wave does not leave while a node of the other cluster has its volumes attached. That node may
// never detach them, and no other step would ask for the user's word.
func TestAWordIsKeptForTheWaveThatIsAboutToLeave(t *testing.T) {
	p := planstest.Three()
	p.Destination.Cluster, p.Claims[0].Mode = "two", plans.Reimport
	for _, op := range []plans.Op{plans.Tighten, plans.Shrink} {
		j := New(p)
		s, began, _ := j.Next(p)
		for ; s.Op != op; s, began, _ = j.Next(p) {
			j.Begun, j.Done = s.Seq, s.Seq
		}
		for range 2 {
			if err := j.Assure(p, plans.Assurance{NodeGone: "n1"}); err != nil {
				t.Fatal(err)
			}
		}
		if got := j.At(p, s, began, plans.Stamp{}).NodesGoneThere; !slices.Equal(got, []string{"n1"}) || j.Flight != nil {
			t.Errorf("%s: %q, %+v", op, got, j.Flight)
		}
		if facts := strings.Join(j.AssuredFacts(), ""); !strings.Contains(facts, "node n1 of the destination is gone for good, or cannot use the volumes of ordinals [4], which leave the source") {
			t.Errorf("%s: %s", op, facts)
		}
		if err := j.Assure(p, plans.Assurance{}); err != nil || j.Assurances.Ahead == nil {
			t.Errorf("%s: the next takeover forgets it: %v", op, err)
		}
		for next := s; ; {
			next, _ = p.Step(j.Leg, next.Seq+1)
			if next.Ordinals == s.Ordinals {
				continue
			}
			if got := j.At(p, next, false, plans.Stamp{}).NodesGoneThere; len(got) > 0 {
				t.Errorf("%s: %q counts for %s", op, got, next.ID())
			}
			break
		}
	}
	j := New(p)
	if err := j.Assure(p, plans.Assurance{NodeGone: "n1"}); err == nil {
		t.Error("accepted before the first wave")
	}
}

// Two clusters may name nodes alike. A word given with the ordinal down is one of the cluster that the plan waits for
// (S1), also if it comes with the abort.
func TestAWordIsOfTheClusterThatThePlanWaitsFor(t *testing.T) {
	apart := planstest.Three()
	apart.Destination.Cluster, apart.Claims[0].Mode = "two", plans.Reimport
	turned := func(to plans.Op) func(*plans.Plan, *Journal) {
		return func(p *plans.Plan, j *Journal) {
			j.StartLeg(p, plans.Abort)
			for s, _, _ := j.Next(p); s.Op != to; s, _, _ = j.Next(p) {
				j.Begun, j.Done = s.Seq, s.Seq
			}
		}
	}
	waits := func(_ *plans.Plan, j *Journal) { j.Flight.WaitsThere = true }
	for name, c := range map[string]struct {
		plan  *plans.Plan
		to    []func(*plans.Plan, *Journal)
		there bool
	}{
		"Vacate waits for the one that is left":      {apart, nil, false},
		"Vacate waits for the other one":             {apart, []func(*plans.Plan, *Journal){waits}, true},
		"the abort was asked of the source":          {apart, []func(*plans.Plan, *Journal){turned(plans.Tighten)}, false},
		"the abort was asked of the destination":     {apart, []func(*plans.Plan, *Journal){waits, turned(plans.Tighten)}, true},
		"the abort waits for the destination":        {apart, []func(*plans.Plan, *Journal){turned(plans.Vacate)}, true},
		"the abort waits for it before the claim":    {apart, []func(*plans.Plan, *Journal){turned(plans.Claim)}, true},
		"there is one cluster, and it has each node": {planstest.Three(), []func(*plans.Plan, *Journal){turned(plans.Vacate)}, false},
	} {
		j := vacating(c.plan)
		before := j.Flight
		for _, to := range c.to {
			to(c.plan, j)
		}
		if err := j.Assure(c.plan, plans.Assurance{NodeGone: "n9"}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		here, there, said := j.Flight.NodesGone, j.Flight.NodesGoneThere, "node n9 of the source is"
		if c.there {
			here, there, said = there, here, "node n9 of the destination is"
		}
		if !slices.Equal(here, []string{"n9"}) || len(there) > 0 || !strings.Contains(strings.Join(j.AssuredFacts(), ""), said) {
			t.Errorf("%s: %+v, %q", name, j.Flight, j.AssuredFacts())
		}
		if len(before.NodesGone)+len(before.NodesGoneThere) > 0 {
			t.Errorf("%s: the flight of before has the word, too: %+v", name, before)
		}
	}
}

func TestAWordThatHasNoMeaningIsRefused(t *testing.T) {
	p := planstest.Three()
	for name, w := range map[string]plans.Assurance{
		"more than there are": {MaxUnavailable: 6}, "less than nothing": {MaxUnavailable: -1}, "before the end": {SourceGone: true}, "with nothing in flight": {NodeGone: "n1"},
	} {
		j := vacating(p)
		j.StartLeg(p, plans.Abort)
		if w.NodeGone != "" {
			j.Flight = nil
		}
		if err := j.Assure(p, w); err == nil {
			t.Errorf("%s: %+v was accepted", name, w)
		}
	}
}

// Only an abort may take more ordinals down than the plan says (S2), and a node that is gone means nothing for a
// wave that has arrived (S1).
func TestAWordIsRefusedOutsideItsTime(t *testing.T) {
	p := planstest.Three()
	moving := vacating(p)
	if err := moving.Assure(p, plans.Assurance{MaxUnavailable: 3}); err == nil || !strings.Contains(err.Error(), "is not being aborted") || moving.Assurances.MaxUnavailable != 0 {
		t.Errorf("during the move: %v, %+v", err, moving.Assurances)
	}
	arrived := vacating(p)
	for s, _, _ := arrived.Next(p); s.Op != plans.Tighten; s, _, _ = arrived.Next(p) {
		arrived.Begun, arrived.Done = s.Seq, s.Seq
	}
	if err := arrived.Assure(p, plans.Assurance{NodeGone: "n2"}); err == nil || !strings.Contains(err.Error(), "no ordinals in flight") || len(arrived.Flight.NodesGone) > 0 {
		t.Errorf("when the wave has arrived: %v, %+v", err, arrived.Flight)
	}
}

func TestARecreatedSetIsComparedWithThePlan(t *testing.T) {
	p := planstest.Three()
	three := int32(3)
	was := appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &three, ServiceName: "web"}}
	seen, err := plans.Fingerprints(&was, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Start, p.Count, p.Seen = 0, 3, seen
	keep := appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType}
	one := int32(1)
	for name, c := range map[string]struct {
		edit func(*appsv1.StatefulSetSpec)
		same bool
	}{
		"with fewer ordinals": {func(s *appsv1.StatefulSetSpec) { s.Replicas = &one }, true},
		"with a start":        {func(s *appsv1.StatefulSetSpec) { s.Ordinals = &appsv1.StatefulSetOrdinals{} }, true},
		"keeping its claims":  {func(s *appsv1.StatefulSetSpec) { s.PersistentVolumeClaimRetentionPolicy = &keep }, true},
		"of another Service":  {func(s *appsv1.StatefulSetSpec) { s.ServiceName = "other" }, false},
		"of another template": {func(s *appsv1.StatefulSetSpec) { s.Template.Labels = map[string]string{"a": "b"} }, false},
	} {
		now := was.DeepCopy()
		c.edit(&now.Spec)
		if same, err := p.Seen.SameSource(now, p, plans.Saved{}); err != nil || same != c.same {
			t.Errorf("%s: %t (%v)", name, same, err)
		}
	}
}

// Before a wave leaves, the plan may ask about a node of either cluster, or of the only one. The word is of the cluster that
// was asked about last, of that wave alone, and none is taken in one cluster that was not asked for (S1).
func TestAWordBeforeAWaveLeavesIsOfTheClusterThatWasAskedAbout(t *testing.T) {
	apart := planstest.Three()
	apart.Destination.Cluster, apart.Claims[0].Mode = "two", plans.Reimport
	for name, c := range map[string]struct {
		plan        *plans.Plan
		asks        []plans.Side
		here, there []string
		said        string
	}{
		"the one that is left":          {apart, []plans.Side{plans.Source}, []string{"n1"}, []string{}, "node n1 of the source is gone"},
		"the one that receives":         {apart, []plans.Side{plans.Destination}, nil, []string{"n1"}, "node n1 of the destination is gone"},
		"the other one since":           {apart, []plans.Side{plans.Source, plans.Destination}, nil, []string{"n1"}, "node n1 of the destination is gone"},
		"the only one":                  {planstest.Three(), []plans.Side{plans.Source}, []string{"n1"}, []string{}, "node n1 of the source is gone"},
		"the only one, not asked about": {planstest.Three(), nil, nil, nil, ""},
	} {
		j := New(c.plan)
		s, began, _ := j.Next(c.plan)
		for ; s.Op != plans.Tighten; s, began, _ = j.Next(c.plan) {
			j.Begun, j.Done = s.Seq, s.Seq
		}
		for _, side := range c.asks {
			if !j.Asks(s, side) || j.Asks(s, side) || j.Asks(s, "") {
				t.Errorf("%s: it does not tell what is news", name)
			}
		}
		err := j.Assure(c.plan, plans.Assurance{NodeGone: "n1"})
		if (err != nil) != (len(c.asks) == 0) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		m := j.At(c.plan, s, began, plans.Stamp{})
		if !slices.Equal(m.NodesGone, c.here) || !slices.Equal(m.NodesGoneThere, c.there) || !strings.Contains(strings.Join(j.AssuredFacts(), ""), c.said) {
			t.Errorf("%s: %q, %q, %q", name, m.NodesGone, m.NodesGoneThere, j.AssuredFacts())
		}
		s.Ordinals.Start--
		if m := j.At(c.plan, s, began, plans.Stamp{}); len(m.NodesGone)+len(m.NodesGoneThere) > 0 {
			t.Errorf("%s: it counts for another wave, too: %+v", name, m)
		}
	}
}

// What the user accepts of the checks is for the direction in which it was said. The word for two templates says itself what
// it is about.
func TestWhatIsAcceptedIsForOneDirection(t *testing.T) {
	p := planstest.Three()
	j := New(p)
	for _, w := range []plans.Assurance{{Ignore: []string{"nodes-fit"}}, {Ignore: []string{"nodes-fit", "classes"}, OtherTemplate: "0123abcd"}, {}} {
		if err := j.Assure(p, w); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(j.Assurances.Ignored, []string{"classes", "nodes-fit"}) || j.At(p, plans.Step{}, false, plans.Stamp{}).Template != "0123abcd" {
		t.Errorf("%+v", j.Assurances)
	}
	if said := strings.Join(j.AssuredFacts(), "; "); !strings.Contains(said, "0123abcd") || !strings.Contains(said, "classes, nodes-fit") {
		t.Errorf("status shows %q", said)
	}
	j.StartLeg(p, plans.Abort)
	if len(j.Assurances.Ignored) > 0 || j.Assurances.OtherTemplate == "" {
		t.Errorf("on the abort: %+v", j.Assurances)
	}
	for _, word := range []string{"yes", "0123ABCD", "0123abcde"} {
		if err := j.Assure(p, plans.Assurance{OtherTemplate: word}); err == nil {
			t.Errorf("%q is taken for a word", word)
		}
	}
}
