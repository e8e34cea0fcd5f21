package records

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// Where the records are, a user who may not read the object of another namespace is told by the record whether the plan was
// begun: without its journal, one that was not begun waits for its approval, and one that was is lost.
func TestARecordTellsWhetherItsPlanWasBegun(t *testing.T) {
	home, p := fake.NewClientBuilder().Build(), planstest.Named(t, "abc")
	p.Name, p.ID = "shop.web", "shop.web-abc"
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	store := NewStore(home, "stsmigrate", p.Name)
	if err := store.CreatePlan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if j, err := store.JournalOrNew(t.Context(), p); err != nil || !j.Detached || !j.Untouched() {
		t.Errorf("not begun: %+v, %v", j, err)
	}
	var record corev1.ConfigMap
	if err := home.Get(t.Context(), store.planMap(), &record); err != nil {
		t.Fatal(err)
	}
	record.Finalizers = []string{UnderWay}
	if err := home.Update(t.Context(), &record); err != nil {
		t.Fatal(err)
	}
	var none ErrNoJournal
	if _, err := store.JournalOrNew(t.Context(), p); !errors.As(err, &none) || !none.Begun {
		t.Errorf("begun: %v", err)
	}
	if _, err := NewStore(home, "stsmigrate", "web").JournalOrNew(t.Context(), &plans.Plan{Name: "web"}); err == nil {
		t.Error("a plan of the orchestrator's namespace without an object has a journal")
	}
}

// A request changes the object that was read, as often as others are faster, and no other one of its name.
func TestARequestIsForTheObjectThatWasRead(t *testing.T) {
	home := fake.NewClientBuilder().Build()
	o := NewDeclared("shop", "db")
	o.Object["spec"] = map[string]any{"source": map[string]any{"name": "web"}, "destination": map[string]any{}}
	o.SetUID("one")
	if err := home.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	read := func() *Declared {
		d, err := ReadDeclared(t.Context(), home, "shop", "db")
		if err != nil || d == nil {
			t.Fatal(d, err)
		}
		return d
	}
	old, pause := read(), func(d *plans.Declaration) error { d.Paused = true; return nil }
	if err := Request(t.Context(), home, read(), func(d *plans.Declaration) error { d.Careful = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := Request(t.Context(), home, old, pause); err != nil {
		t.Fatal(err)
	}
	if d := read(); !d.Spec.Paused || !d.Spec.Careful {
		t.Errorf("%+v", d.Spec)
	}
	if err := home.Delete(t.Context(), NewDeclared("shop", "db")); err != nil {
		t.Fatal(err)
	}
	next := NewDeclared("shop", "db")
	next.Object["spec"] = o.Object["spec"]
	next.SetUID("two")
	if err := home.Create(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	next.SetLabels(map[string]string{"a": "b"}) // or its version would be that of the first one here
	if err := home.Update(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if err := Request(t.Context(), home, old, pause); err == nil || read().Spec.Paused {
		t.Errorf("the next object of this name is paused: %v", err)
	}
}
