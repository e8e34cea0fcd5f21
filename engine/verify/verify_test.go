package verify

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/records"
)

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
	r, err := Plan(t.Context(), clusters.Pair{Plan: p, On: on}, store)
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
		r, err := Plan(t.Context(), clusters.Pair{Plan: p, On: clusters.Clusters{plans.Source: client.Client(home), plans.Destination: home}}, store)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(r.Differences, func(d Difference) bool { return d.Rule == "S10" }); got != want {
			t.Errorf("epoch %d: %+v", epoch, r.Differences)
		}
	}
}
