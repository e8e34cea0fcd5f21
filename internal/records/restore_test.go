package records

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// A recovered journal is stored where there is none, and beside its own plan only.
func TestARecordIsRecoveredForItsOwnPlanOnly(t *testing.T) {
	home, p, other := fake.NewClientBuilder().Build(), planstest.Named(t, "abc"), planstest.Named(t, "xyz")
	store := NewStore(home, "mall", "web")
	if err := store.CreatePlan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := store.Restore(t.Context(), other, journal.New(other)); err == nil {
		t.Error("the journal of another plan is stored")
	}
	if err := home.Get(t.Context(), client.ObjectKey(store.journalMap()), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("a journal is there: %v", err)
	}
	if err := store.Restore(t.Context(), p, journal.New(p)); err != nil {
		t.Fatal(err)
	}
	begun := journal.New(p)
	begun.Begun = 1
	if err := store.Restore(t.Context(), p, begun); err == nil {
		t.Error("a journal that exists is replaced")
	}
	if j, _, err := store.Journal(t.Context(), p); err != nil || j.Begun != 0 {
		t.Errorf("the journal is %+v, %v", j, err)
	}
}

// An edited plan keeps its ID. Who stores it must not believe that it is the stored one.
func TestAPlanOfAnotherContentIsNotTakenForStored(t *testing.T) {
	store, p := NewStore(fake.NewClientBuilder().Build(), "mall", "web"), planstest.Named(t, "abc")
	if err := store.Create(t.Context(), p, journal.New(p)); err != nil {
		t.Fatal(err)
	}
	edited := *p
	edited.Ignored = []string{"images"}
	if err := edited.Seal(); err != nil {
		t.Fatal(err)
	}
	if err := store.CreatePlan(t.Context(), p); err != nil {
		t.Errorf("the same plan again: %v", err)
	}
	if err := store.CreatePlan(t.Context(), &edited); err == nil {
		t.Error("a plan of the same ID and another content counts as stored")
	}
}

// The journal is the better part of a record. With its plan gone, the plan is stored again, and nothing is rebuilt.
func TestAPlanIsPutBackBesideItsJournal(t *testing.T) {
	for name, c := range map[string]struct {
		lost       []string // keys of the record that are deleted
		another    bool     // the file is another plan's
		back, says bool
	}{
		"nothing is lost":          {},
		"the plan is lost":         {lost: []string{"plan"}, back: true},
		"all is lost":              {lost: []string{"plan", "journal"}},
		"the file is another plan": {lost: []string{"plan"}, another: true, says: true},
	} {
		t.Run(name, func(t *testing.T) {
			home, p := fake.NewClientBuilder().Build(), planstest.Named(t, "abc")
			store := NewStore(home, "mall", "web")
			begun := journal.New(p)
			begun.Begun = 1
			if err := store.Restore(t.Context(), p, begun); err != nil {
				t.Fatal(err)
			}
			for _, what := range c.lost {
				key := map[string]client.ObjectKey{"plan": client.ObjectKey(store.planMap()), "journal": client.ObjectKey(store.journalMap())}[what]
				gone := &corev1.ConfigMap{}
				gone.Namespace, gone.Name = key.Namespace, key.Name
				if err := home.Delete(t.Context(), gone); err != nil {
					t.Fatal(err)
				}
			}
			file := p
			if c.another {
				file = planstest.Named(t, "xyz")
			}
			back, err := store.Orphaned(t.Context(), file)
			if back != c.back || (err != nil) != c.says {
				t.Errorf("to be put back: %t, %v", back, err)
			}
			if !c.back {
				return
			}
			if err := store.PutBack(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if j, _, err := store.Journal(t.Context(), p); err != nil || j.Begun != 1 {
				t.Errorf("the journal is %+v, %v", j, err)
			}
			if have, err := store.Plan(t.Context()); err != nil || have.ID != p.ID {
				t.Errorf("the plan is %v, %v", have, err)
			}
		})
	}
}
