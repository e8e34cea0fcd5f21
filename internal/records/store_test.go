package records

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func TestAPlanIsStoredOnce(t *testing.T) {
	store, p := NewStore(fake.NewClientBuilder().Build(), "mall", "web"), planstest.Named(t, "abc")
	if _, err := store.Plan(t.Context()); !errors.As(err, new(ErrNoPlan)) {
		t.Errorf("an absent plan is %v", err)
	}
	for range 2 { // twice, as after a death in the middle
		if err := store.Create(t.Context(), p, journal.New(p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Create(t.Context(), planstest.Named(t, "xyz"), journal.New(planstest.Named(t, "xyz"))); err == nil || !strings.Contains(err.Error(), "another plan named web") {
		t.Errorf("another plan of the same name: %v", err)
	}
	j, seen, err := store.Journal(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	j.Begun = 1
	if _, err := store.Save(t.Context(), j, seen); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Save(t.Context(), j, seen); !apierrors.IsConflict(err) {
		t.Errorf("a journal that has moved was overwritten: %v", err)
	}
}

func TestOnlyAnEndedPlanMakesRoomForAnotherOfItsName(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*plans.Plan, *journal.Journal)
		refuse string
	}{
		{"under way", func(_ *plans.Plan, j *journal.Journal) { j.Begun = 1 }, "which has not ended"},
		{"moved, and not finalized", func(_ *plans.Plan, j *journal.Journal) { j.Outcome = plans.Moved }, "which has not ended"},
		{"names kept", func(p *plans.Plan, j *journal.Journal) {
			j.StartLeg(p, plans.Finalize)
			j.Outcome, j.KeepNames = plans.Finalized, true
		}, "names --remove"},
		{"finalized", func(p *plans.Plan, j *journal.Journal) { j.StartLeg(p, plans.Finalize); j.Outcome = plans.Finalized }, ""},
		{"aborted", func(p *plans.Plan, j *journal.Journal) {
			j.StartLeg(p, plans.Abort)
			j.Outcome, j.KeepNames = plans.Aborted, false
		}, ""},
	} {
		store, old, next := NewStore(fake.NewClientBuilder().Build(), "mall", "web"), planstest.Named(t, "abc"), planstest.Named(t, "xyz")
		if err := store.Create(t.Context(), old, journal.New(old)); err != nil {
			t.Fatal(err)
		}
		if err := store.Change(t.Context(), old, func(j *journal.Journal) error {
			c.change(old, j)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		err := store.Create(t.Context(), next, journal.New(next))
		if c.refuse != "" {
			if err == nil || !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("%s: %v, expected a refusal that says %q", c.name, err, c.refuse)
			}
			if have, err := store.Plan(t.Context()); err != nil || have.ID != old.ID {
				t.Errorf("%s: the record is %v, %v", c.name, have, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		have, err := store.Plan(t.Context())
		if err != nil || have.ID != next.ID {
			t.Errorf("%s: the record is %v, %v", c.name, have, err)
		}
		if j, _, err := store.Journal(t.Context(), next); err != nil || j.Outcome != "" || j.Begun != 0 {
			t.Errorf("%s: the new plan's journal is %+v, %v", c.name, j, err)
		}
	}
}

// The record of an ended plan that finalizers keep is not deleted again and again. It stays as a whole, so that the next
// attempt says the same.
func TestARecordThatFinalizersKeepIsNamed(t *testing.T) {
	deletions := 0
	store, old, next := ended(t, fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		deletions++
		return c.Delete(ctx, o, opts...)
	}}).Build())
	var cm corev1.ConfigMap
	if err := store.home.Get(t.Context(), store.planMap(), &cm); err != nil {
		t.Fatal(err)
	}
	cm.Finalizers = []string{"example.com/audit"}
	if err := store.home.Update(t.Context(), &cm); err != nil {
		t.Fatal(err)
	}
	for n, create := range []func() error{
		func() error { return store.Create(t.Context(), next, journal.New(next)) }, func() error { return store.CreatePlan(t.Context(), next) },
		func() error { return store.Create(t.Context(), next, journal.New(next)) },
	} {
		if err := create(); err == nil || !strings.Contains(err.Error(), "ConfigMap mall/stsmigrate-web is being deleted, and its finalizers example.com/audit keep it") || deletions != n+1 {
			t.Errorf("%d deletions, then: %v", deletions, err)
		}
	}
	if _, _, err := store.Journal(t.Context(), old); err != nil {
		t.Error(err)
	}
}

// What another writer puts back is deleted more and more slowly, and not for ever.
func TestARecordThatIsPutBackIsNotDeletedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deletions := 0
		store, _, next := ended(t, fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			if deletions++; deletions > 100 {
				return errors.New("that is enough")
			}
			return nil
		}}).Build())
		if err := store.CreatePlan(t.Context(), next); err == nil || !strings.Contains(err.Error(), "is there again after every deletion") || deletions > 13 {
			t.Errorf("%d deletions, then: %v", deletions, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		deletions = 0
		if err := store.CreatePlan(ctx, next); !errors.Is(err, context.DeadlineExceeded) || deletions > 10 {
			t.Errorf("%d deletions in five seconds, then: %v", deletions, err)
		}
	})
}

// ended returns the store of a plan that has ended, that plan, and another one of its name.
func ended(t *testing.T, home client.Client) (store *Store, old, next *plans.Plan) {
	t.Helper()
	store, old, next = NewStore(home, "mall", "web"), planstest.Named(t, "abc"), planstest.Named(t, "xyz")
	if err := store.Create(t.Context(), old, journal.New(old)); err != nil {
		t.Fatal(err)
	}
	if err := store.Change(t.Context(), old, func(j *journal.Journal) error {
		j.StartLeg(old, plans.Abort)
		j.Outcome = plans.Aborted
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return store, old, next
}

func TestAStoredPlanIsImmutable(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	store := NewStore(c, "mall", "web")
	if err := store.Create(t.Context(), planstest.Named(t, "abc"), journal.New(planstest.Named(t, "abc"))); err != nil {
		t.Fatal(err)
	}
	var cm corev1.ConfigMap
	if err := c.Get(t.Context(), store.planMap(), &cm); err != nil || cm.Immutable == nil || !*cm.Immutable {
		t.Errorf("immutable is %v, %v", cm.Immutable, err)
	}
}

func TestTheWriterOfAFieldIsNamed(t *testing.T) {
	fields := func(s string) *metav1.FieldsV1 { return metav1.NewFieldsV1(s) }
	set := &appsv1.StatefulSet{}
	set.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "helm", Operation: "Update", FieldsV1: fields(`{"f:spec":{"f:template":{}}}`)},
		{Manager: "autoscaler", Operation: "Update", Subresource: "scale", FieldsV1: fields(`{"f:spec":{"f:replicas":{}}}`)},
	}
	if got := plans.Writer(set, "spec", "replicas"); got != "autoscaler (Update of scale)" {
		t.Errorf("got %q", got)
	}
	if got := plans.Writer(&appsv1.StatefulSet{}, "spec", "replicas"); got != "an unknown client" {
		t.Errorf("without managedFields: %q", got)
	}
}

// The record of a plan, and with it the Lease, can be deleted only when the plan is not needed any more.
func TestOnlyARecordThatNobodyNeedsIsForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*plans.Plan, *journal.Journal)
		held   bool
		want   string
	}{
		"it has ended": {func(p *plans.Plan, j *journal.Journal) { j.StartLeg(p, plans.Finalize); j.Outcome = plans.Finalized }, false, ""},
		"it has not":   {func(*plans.Plan, *journal.Journal) {}, false, "which has not ended, must stay"},
		"its names are kept": {func(p *plans.Plan, j *journal.Journal) {
			j.StartLeg(p, plans.Finalize)
			j.Outcome, j.KeepNames = plans.Finalized, true
		}, false, "whose names are kept"},
		"another process works on it": {func(p *plans.Plan, j *journal.Journal) { j.StartLeg(p, plans.Finalize); j.Outcome = plans.Finalized }, true, "is being carried out by a/1"},
	} {
		t.Run(name, func(t *testing.T) {
			home, alive := fake.NewClientBuilder().Build(), func(string) bool { return false }
			store, p := NewStore(home, "mall", "web"), planstest.Named(t, "abc")
			j := journal.New(p)
			c.change(p, j)
			if err := store.Create(t.Context(), p, j); err != nil {
				t.Fatal(err)
			}
			if c.held {
				if _, err := store.Acquire(t.Context(), "a/1", alive, planstest.Noon); err != nil {
					t.Fatal(err)
				}
			}
			err := store.Forget(t.Context(), p, "b/2", alive, planstest.Noon)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, expected %q", err, c.want)
			}
			var left corev1.ConfigMapList
			if err := home.List(t.Context(), &left); err != nil || len(left.Items) == 0 != (c.want == "") {
				t.Errorf("%d ConfigMaps are left: %v", len(left.Items), err)
			}
			if holder, _, err := store.Holder(t.Context(), planstest.Noon); err != nil || (holder != "") != c.held {
				t.Errorf("the Lease is %q's: %v", holder, err)
			}
		})
	}
}
