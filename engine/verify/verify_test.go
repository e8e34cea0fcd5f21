package verify

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
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
