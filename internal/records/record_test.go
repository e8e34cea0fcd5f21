package records

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// An object in the place of a plan or of its journal that is neither is left unchanged, and nothing is
// stored beside it.
func TestAPlanIsNotStoredOverWhatIsNotItsOwn(t *testing.T) {
	p := planstest.Named(t, "abc")
	for _, name := range []string{"stsmigrate-web", "stsmigrate-web-journal"} {
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: name}, Data: map[string]string{"who": "somebody"}}
		home := fake.NewClientBuilder().WithObjects(other).Build()
		if err := NewStore(home, "mall", "web").Create(t.Context(), p, journal.New(p)); err == nil || !strings.Contains(err.Error(), "mall/"+name) {
			t.Errorf("%s: %v", name, err)
		}
		var all corev1.ConfigMapList
		if err := home.List(t.Context(), &all); err != nil || len(all.Items) != 1 || all.Items[0].Data["who"] != "somebody" {
			t.Errorf("%s: there is %v, %v", name, all.Items, err)
		}
	}
}

// A plan without its label is not found by any list, and another writer may have created it.
func TestAPlanWithoutItsLabelIsNotTakenForStored(t *testing.T) {
	home, p := fake.NewClientBuilder().Build(), planstest.Named(t, "abc")
	store := NewStore(home, "mall", "web")
	if err := store.Create(t.Context(), p, journal.New(p)); err != nil {
		t.Fatal(err)
	}
	var cm corev1.ConfigMap
	if err := home.Get(t.Context(), store.planMap(), &cm); err != nil {
		t.Fatal(err)
	}
	cm.Labels = nil
	if err := home.Update(t.Context(), &cm); err != nil {
		t.Fatal(err)
	}
	if err := store.Create(t.Context(), p, journal.New(p)); err == nil || !strings.Contains(err.Error(), "mall/stsmigrate-web is there without") {
		t.Error(err)
	}
}

// A death in the middle of making room does not block the name for ever.
func TestRoomIsMadeInSpiteOfADeath(t *testing.T) {
	dead := errors.New("dead")
	for at := range 2 {
		deletions := 0
		dies := true
		home := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if deletions++; dies && deletions > at {
				return dead
			}
			return c.Delete(ctx, o, opts...)
		}}).Build()
		store, old, next := NewStore(home, "mall", "web"), planstest.Named(t, "abc"), planstest.Named(t, "xyz")
		if err := store.Create(t.Context(), old, journal.New(old)); err != nil {
			t.Fatal(err)
		}
		if err := store.Change(t.Context(), old, func(j *journal.Journal) error { j.StartLeg(old, plans.Abort); j.Outcome = plans.Aborted; return nil }); err != nil {
			t.Fatal(err)
		}
		if err := store.Create(t.Context(), next, journal.New(next)); !errors.Is(err, dead) {
			t.Fatal(err)
		}
		dies = false
		if err := store.Create(t.Context(), next, journal.New(next)); err != nil {
			t.Errorf("after a death at deletion %d: %v", at, err)
		}
		if j, _, err := store.Journal(t.Context(), next); err != nil || j.Plan != next.ID {
			t.Errorf("the journal is %+v, %v", j, err)
		}
	}
}

// A plan that could change, or that is stored in the place of another one, is not accepted.
func TestAStoredPlanNeverChanges(t *testing.T) {
	for want, change := range map[string]func(*corev1.ConfigMap){
		"ConfigMap mall/stsmigrate-web: it is not immutable":      func(cm *corev1.ConfigMap) { cm.Immutable = nil },
		"ConfigMap mall/stsmigrate-web: it is not immutable, and": func(cm *corev1.ConfigMap) { *cm.Immutable = false },
		"ConfigMap mall/stsmigrate-foo: it holds plan web, which": func(cm *corev1.ConfigMap) { cm.Name = "stsmigrate-foo" },
		"ConfigMap mall/stsmigrate-web: the plan was edited after": func(cm *corev1.ConfigMap) {
			cm.Data[planKey] = strings.Replace(cm.Data[planKey], "window: 1", "window: 3", 1)
		},
	} {
		home := fake.NewClientBuilder().Build()
		p := planstest.Named(t, "abc")
		if err := NewStore(home, "mall", "web").Create(t.Context(), p, journal.New(p)); err != nil {
			t.Fatal(err)
		}
		var cm corev1.ConfigMap
		if err := home.Get(t.Context(), NewStore(home, "mall", "web").planMap(), &cm); err != nil {
			t.Fatal(err)
		}
		if err := home.Delete(t.Context(), &cm); err != nil {
			t.Fatal(err)
		}
		cm.ResourceVersion = ""
		change(&cm)
		if err := home.Create(t.Context(), &cm); err != nil {
			t.Fatal(err)
		}
		_, err := NewStore(home, "mall", strings.TrimPrefix(cm.Name, "stsmigrate-")).Plan(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
		if got, err := List(t.Context(), home, "", planstest.Noon); err != nil || len(got) != 1 || got[0].State != plans.StateUnreadable || !strings.Contains(got[0].Reason, want) {
			t.Errorf("listed: %+v, %v, expected %q", got, err, want)
		}
	}
}

// A plan that was deleted and recreated with its ID and different content does not match the journal. A
// plan that was restored unchanged does.
func TestAJournalIsOfOneContentOfItsPlan(t *testing.T) {
	home := fake.NewClientBuilder().Build()
	store, p := NewStore(home, "mall", "web"), planstest.Named(t, "abc")
	if err := store.Create(t.Context(), p, journal.New(p)); err != nil {
		t.Fatal(err)
	}
	again, err := store.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Journal(t.Context(), again); err != nil {
		t.Errorf("the same plan again: %v", err)
	}
	again.Ignored, again.Hash = []string{"writers"}, ""
	if again.Hash, err = plans.Fingerprinted(again); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Journal(t.Context(), again); err == nil || !strings.Contains(err.Error(), "the same ID and another content") {
		t.Errorf("another plan with its ID: %v", err)
	}
}

// When the plan is gone, its journal is what is left of a move that has begun. Only that of an ended plan goes.
func TestTheJournalOfALostPlanStaysWhileItIsNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*plans.Plan, *journal.Journal)
		goes   bool
	}{
		"under way": {func(_ *plans.Plan, j *journal.Journal) { j.Begun = 1 }, false},
		"moved":     {func(_ *plans.Plan, j *journal.Journal) { j.Outcome = plans.Moved }, false},
		"names kept": {func(p *plans.Plan, j *journal.Journal) {
			j.StartLeg(p, plans.Finalize)
			j.Outcome, j.KeepNames = plans.Finalized, true
		}, false},
		"aborted":       {func(p *plans.Plan, j *journal.Journal) { j.StartLeg(p, plans.Abort); j.Outcome = plans.Aborted }, true},
		"taken over":    {func(_ *plans.Plan, j *journal.Journal) { j.Epoch = 1 }, false},
		"only approved": {func(_ *plans.Plan, j *journal.Journal) { j.Detached, j.Blocked = true, "no consent" }, true},
	} {
		for how, remove := range map[string]func(*Store) error{
			"another plan is stored":   func(s *Store) error { p := planstest.Named(t, "xyz"); return s.Create(t.Context(), p, journal.New(p)) },
			"the journal is collected": func(s *Store) error { return s.Delete(t.Context()) },
		} {
			home, old := fake.NewClientBuilder().Build(), planstest.Named(t, "abc")
			store, j := NewStore(home, "mall", "web"), journal.New(old)
			c.change(old, j)
			if err := store.Create(t.Context(), old, j); err != nil {
				t.Fatal(err)
			}
			if err := home.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "stsmigrate-web"}}); err != nil {
				t.Fatal(err)
			}
			err := remove(store)
			have, _, lost := store.Journal(t.Context(), old)
			if gone := lost != nil; gone != c.goes || !gone && have.Outcome != j.Outcome {
				t.Errorf("%s, %s: the journal is gone: %t, expected %t (%v)", name, how, gone, c.goes, err)
			}
		}
	}
}

// Nobody knows whether a plan whose journal cannot be read has ended.
func TestAPlanWithoutItsJournalMakesNoRoom(t *testing.T) {
	home, old, next := fake.NewClientBuilder().Build(), planstest.Named(t, "abc"), planstest.Named(t, "xyz")
	store := NewStore(home, "mall", "web")
	if err := store.Create(t.Context(), old, journal.New(old)); err != nil {
		t.Fatal(err)
	}
	if err := home.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "stsmigrate-web-journal"}}); err != nil {
		t.Fatal(err)
	}
	if err := store.Create(t.Context(), next, journal.New(next)); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("another plan is stored: %v", err)
	}
	if err := store.Forget(t.Context(), old, "a/1", func(string) bool { return false }, planstest.Noon); err == nil {
		t.Error("the plan is forgotten")
	}
	if have, err := store.Plan(t.Context()); err != nil || have.ID != old.ID {
		t.Errorf("the plan is %v, %v", have, err)
	}
}

// The user may store the next plan of a name at any moment, and begin it. What is deleted of the ended
// plan is what was read of it.
func TestTheNextPlanOfANameIsNotDeletedWithTheLast(t *testing.T) {
	for how, remove := range map[string]func(*Store, *plans.Plan) error{
		"the journal is collected": func(s *Store, _ *plans.Plan) error { return s.Delete(t.Context()) },
		"the record is forgotten": func(s *Store, p *plans.Plan) error {
			return s.Forget(t.Context(), p, "a/1", func(string) bool { return false }, planstest.Noon)
		},
		"a third plan is stored": func(s *Store, _ *plans.Plan) error { return s.CreatePlan(t.Context(), planstest.Named(t, "third")) },
		"the user takes it back": func(s *Store, p *plans.Plan) error { return Undeclare(t.Context(), s.home, "mall", p) },
	} {
		for _, begun := range []bool{false, true} {
			home, old, next := withUIDs(), planstest.Named(t, "abc"), planstest.Named(t, "xyz")
			plain, first := NewStore(home, "mall", "web"), journal.New(old)
			first.StartLeg(old, plans.Abort)
			first.Outcome = plans.Aborted
			if err := plain.Create(t.Context(), old, first); err != nil {
				t.Fatal(err)
			}
			stored := false
			slow := interceptor.NewClient(home, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				err := c.Get(ctx, key, o, opts...)
				if key.Name != "stsmigrate-web-journal" || stored {
					return err
				}
				stored = true // the old journal was read, and the next plan is stored before the answer arrives
				if begun {
					j := journal.New(next)
					j.Epoch, j.Begun = 1, 1
					return errors.Join(err, plain.Create(ctx, next, j), plain.Offload(ctx, next, arrivedAt(next, 5)))
				}
				return errors.Join(err, plain.CreatePlan(ctx, next))
			}})
			err := remove(NewStore(slow, "mall", "web"), old)
			if have, err := plain.Plan(t.Context()); err != nil || have.ID != next.ID {
				t.Errorf("%s, begun %t: the stored plan is %v, %v", how, begun, have, err)
			}
			if !begun {
				continue
			}
			if j, _, lost := plain.Journal(t.Context(), next); lost != nil || j.Begun != 1 {
				t.Errorf("%s: the journal is %+v, %v (%v)", how, j, lost, err)
			}
			if got, lost := plain.Timeline(t.Context(), next, emptied(next)); lost != nil || len(got.Waves) != 1 {
				t.Errorf("%s: the timeline is %+v, %v", how, got, lost)
			}
		}
	}
}

// withUIDs returns an API server that gives each object a UID, and deletes only the object of the UID that
// a deletion names.
func withUIDs() client.WithWatch {
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID(uuid.NewUUID())
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			var asked client.DeleteOptions
			asked.ApplyOptions(opts)
			is, _ := o.DeepCopyObject().(client.Object)
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), is); err != nil {
				return err
			}
			if p := asked.Preconditions; p != nil && p.UID != nil && *p.UID != is.GetUID() {
				return apierrors.NewConflict(corev1.Resource("configmaps"), o.GetName(), errors.New("the UID is another one"))
			}
			return c.Delete(ctx, o, opts...)
		},
	}).Build()
}
