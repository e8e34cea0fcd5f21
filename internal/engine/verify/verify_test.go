package verify

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// noon is a clock that stands still.
func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func TestAReportIsATableOrASentence(t *testing.T) {
	r := &Report{Plan: "web", State: "Moving", Step: "4/Grow", Compared: 12}
	if want := "plan web (Moving, next step 4/Grow): all 12 facts are as the plan and its journal say\n"; r.Table() != want {
		t.Errorf("got %q", r.Table())
	}
	r.Differences = []Difference{{Rule: "S4", Object: "PersistentVolume a", Seen: "its reclaim policy is\x1b[2J Delete", Expected: "Retain"}}
	if got := r.Table(); !strings.HasPrefix(got, "RULE  OBJECT              SEEN") || strings.Contains(got, "\x1b") || strings.Count(got, "\n") != 2 {
		t.Errorf("got %q", got)
	}
}

// A plan that has not begun is compared with what it was made from.
func TestASetThatIsGoneBeforeTheStartIsADifference(t *testing.T) {
	p := planstest.Named(t, "abc")
	home := clientfake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	store := records.NewStore(home, "mall", p.Name)
	if err := store.CreatePlan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	on := clusters.Clusters{plans.Source: client.Client(home), plans.Destination: home}
	r, err := Plan(t.Context(), clusters.Pair{Plan: p, On: on}, store, noon)
	if err != nil || len(r.Differences) != 1 || r.Differences[0].Seen != "it does not exist" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A journal that says less than an object shows has gone back to an older one.
func TestAJournalThatIsOlderThanAMarkIsADifference(t *testing.T) {
	p := planstest.Named(t, "abc")
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{plans.StampAnnotation: p.ID + "/2/1"}}}
	home := clientfake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(set).Build()
	for epoch, want := range map[int64]bool{1: true, 2: false} {
		store := records.NewStore(home, "mall-"+strconv.FormatInt(epoch, 10), p.Name)
		j := journal.New(p)
		j.Epoch, j.Begun = epoch, 1
		if err := store.Create(t.Context(), p, j); err != nil {
			t.Fatal(err)
		}
		r, err := Plan(t.Context(), clusters.Pair{Plan: p, On: clusters.Clusters{plans.Source: client.Client(home), plans.Destination: home}}, store, noon)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(r.Differences, func(d Difference) bool { return d.Rule == "S10" }); got != want {
			t.Errorf("epoch %d: %+v", epoch, r.Differences)
		}
	}
}

// From the first Tighten to the closing steps a budget has the numbers that the plan wrote last beside its spec. One
// that was there and fits already is not written, and is no difference.
func TestABudgetIsSignedFromTheFirstTightenOn(t *testing.T) {
	one, two := plans.Leg{Direction: plans.Move, First: 1, Lowest: 0, End: 3}, plans.Leg{Direction: plans.Move, First: 20, Lowest: 0, End: 2}
	back := plans.Leg{Direction: plans.Abort, First: 20, Lowest: 0, End: 3}
	spec := func(n int32) policyv1.PodDisruptionBudgetSpec {
		v := intstr.FromInt32(n)
		return policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &v}
	}
	for name, c := range map[string]struct {
		leg     plans.Leg
		done    int
		side    plans.Side
		existed bool
		allows  int32
		note    string
		want    bool
	}{
		"Freeze":                               {one, 0, plans.Source, true, 1, "", true},
		"the first Tighten":                    {one, 4, plans.Source, true, 1, "", true},
		"after the first Tighten":              {one, 5, plans.Source, true, 1, "", false},
		"with its numbers":                     {one, 5, plans.Source, true, 1, "maxUnavailable 1", true},
		"a first Tighten after a split":        {two, 19, plans.Source, true, 1, "", false},
		"the first Tighten of an abort":        {back, 19, plans.Source, true, 1, "", true},
		"after the first Tighten of an abort":  {back, 20, plans.Source, true, 1, "", false},
		"it was there, and allows nothing":     {one, 5, plans.Destination, true, 0, "", true},
		"it was there, and allows something":   {one, 5, plans.Destination, true, 1, "", false},
		"it is the plan's, and allows nothing": {one, 5, plans.Destination, false, 0, "", false},
		"moved":                                {one, 1000, plans.Source, true, 1, "", false},
		"closing":                              {plans.Leg{Direction: plans.Finalize, First: 20, Lowest: 3, End: 3}, 19, plans.Source, true, 1, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := planstest.Named(t, "abc")
			p.Start, p.Count, p.Window = 0, 3, 1
			p.Budget.SourceExisted, p.Budget.DestinationExisted = true, c.existed
			j := journal.New(p)
			j.Leg, j.Done, j.Begun = c.leg, c.done, c.done
			b := &policyv1.PodDisruptionBudget{Spec: spec(c.allows)}
			if c.note != "" {
				b.Annotations = map[string]string{plans.BudgetAnnotation: c.note}
			}
			x := &comparison{plan: p, journal: j, facts: &facts{}}
			x.step, x.began, x.more = j.Next(p)
			if got := x.signed(c.side, b); got != c.want {
				t.Errorf("%t before %s, expected %t", got, x.step.ID(), c.want)
			}
		})
	}
}

// What a dead process has written after the end carries the mark of the plan. It is named, with where it is said how to
// remove it. The mark of another plan is not this plan's.
func TestTheMarksOfAnEndedPlanSayHowTheyGo(t *testing.T) {
	p := planstest.Named(t, "abc")
	seen := &facts{seen: []mark{{"PodDisruptionBudget shop/web on the destination", p.ID}, {"StatefulSet shop/other on the destination", "other"}}}
	j := journal.New(p)
	j.Epoch, j.Outcome = 1, plans.Aborted
	c := comparison{plan: p, facts: seen, journal: j, report: &Report{}}
	if c.unmarked(); len(c.report.Differences) != 1 || !strings.Contains(c.report.Differences[0].Expected, `"Marks of a plan that has ended" in docs/ways-out.md`) {
		t.Errorf("%+v", c.report.Differences)
	}
	j.Outcome, c.report = "", &Report{}
	if c.unmarked(); len(c.report.Differences) != 1 || c.report.Differences[0].Expected != "none, since the plan has not begun" {
		t.Errorf("%+v", c.report.Differences)
	}
}

// A plan that has split, or has ended, has no next step until the user goes on.
func TestAPlanThatRestsHasNoNextStep(t *testing.T) {
	p := planstest.Named(t, "abc")
	for outcome, want := range map[plans.Outcome]bool{"": true, plans.Split: false} {
		j := journal.New(p)
		j.Epoch, j.Begun, j.Outcome = 1, 1, outcome
		if r := compare(p, j, &facts{}); (r.Step != "") != want {
			t.Errorf("with the outcome %q the next step is %q", outcome, r.Step)
		}
	}
}

// Sets are pinned from the Tighten to the Relax of a wave. One that stays pinned, or that another writer has changed
// meanwhile, is a difference.
func TestASetThatStaysPinnedIsADifference(t *testing.T) {
	leg := plans.Leg{Direction: plans.Move, First: 1, Lowest: 0, End: 3}
	set := func(zero bool, note bool) *appsv1.StatefulSet {
		n := int32(3)
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: appsv1.StatefulSetSpec{Replicas: &n}}
		plans.Pin(s)
		if zero {
			s.Spec.UpdateStrategy.RollingUpdate = nil
		}
		if !note {
			s.Annotations = nil
		}
		return s
	}
	for name, c := range map[string]struct {
		done, begun int
		resting     bool
		set         *appsv1.StatefulSet
		want        string // the rules that are violated
	}{
		"Tighten":                        {4, 5, false, set(false, true), ""},
		"Tighten, and it has not begun":  {4, 4, false, set(false, true), "S15"},
		"Tighten, and it is paused":      {4, 5, true, set(false, true), "S15"},
		"Shrink":                         {5, 6, false, set(false, true), ""},
		"Relax":                          {11, 12, false, set(false, true), ""},
		"moved":                          {1000, 1000, false, set(false, true), "S15"},
		"another writer has changed it":  {5, 6, false, set(true, true), "S12"},
		"another writer took the note":   {5, 6, false, set(false, false), "S15"},
		"it is not pinned, and it rests": {4, 4, false, set(true, false), ""},
	} {
		p := planstest.Named(t, "abc")
		p.Start, p.Count, p.Window = 0, 3, 1
		j := journal.New(p)
		j.Leg, j.Done, j.Begun, j.Resting = leg, c.done, c.begun, c.resting
		x := &comparison{plan: p, journal: j, facts: &facts{sets: map[plans.Side]*appsv1.StatefulSet{plans.Source: c.set}}, report: &Report{}}
		x.step, x.began, x.more = j.Next(p)
		x.rollouts()
		var got []string
		for _, d := range x.report.Differences {
			got = append(got, d.Rule)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s, before %s: %q, expected %q", name, x.step.ID(), got, c.want)
		}
	}
}
