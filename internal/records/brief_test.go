package records

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// A journal can be saved however many things are wrong with a large set.
func TestReasonsHaveALength(t *testing.T) {
	p := planstest.Named(t, "abc")
	home := fake.NewClientBuilder().Build()
	store, j := NewStore(home, "mall", "web"), journal.New(planstest.Named(t, "abc"))
	if err := store.Create(t.Context(), p, j); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("ä", 1<<20)
	if err := store.Change(t.Context(), p, func(j *journal.Journal) error { j.Blocked, j.Waiting, j.Overdue = long, long, long; return nil }); err != nil {
		t.Fatal(err)
	}
	got, _, err := store.Journal(t.Context(), p)
	raw, _ := json.Marshal(got)
	if err != nil || len(raw) > 5*MaxReasonBytes || !strings.HasSuffix(got.Blocked, "(cut)") {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}
