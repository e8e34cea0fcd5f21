package orchestrator

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/plans"
)

// What is in the place of a plan or of its journal, and is neither, is left alone, and nothing is stored
// beside it.
func TestAPlanIsNotStoredOverWhatIsNotItsOwn(t *testing.T) {
	p := planNamed(t, "abc")
	for _, name := range []string{"stsmigrate-web", "stsmigrate-web-journal"} {
		other := &corev1.ConfigMap{ObjectMeta: named("mall", name), Data: map[string]string{"who": "somebody"}}
		home := fake.NewClientBuilder().WithObjects(other).Build()
		if err := NewStore(home, "mall", "web").Create(t.Context(), p, plans.NewJournal(p)); err == nil || !strings.Contains(err.Error(), "mall/"+name) {
			t.Errorf("%s: %v", name, err)
		}
		var all corev1.ConfigMapList
		if err := home.List(t.Context(), &all); err != nil || len(all.Items) != 1 || all.Items[0].Data["who"] != "somebody" {
			t.Errorf("%s: there is %v, %v", name, all.Items, err)
		}
	}
}

// A death in the middle of making room does not keep the name for ever.
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
		store, old, next := NewStore(home, "mall", "web"), planNamed(t, "abc"), planNamed(t, "xyz")
		if err := store.Create(t.Context(), old, plans.NewJournal(old)); err != nil {
			t.Fatal(err)
		}
		if err := store.Change(t.Context(), old, func(j *plans.Journal) error { j.Outcome = plans.Aborted; return nil }); err != nil {
			t.Fatal(err)
		}
		if err := store.Create(t.Context(), next, plans.NewJournal(next)); !errors.Is(err, dead) {
			t.Fatal(err)
		}
		dies = false
		if err := store.Create(t.Context(), next, plans.NewJournal(next)); err != nil {
			t.Errorf("after a death at deletion %d: %v", at, err)
		}
		if j, _, err := store.Journal(t.Context(), next); err != nil || j.Plan != next.ID {
			t.Errorf("the journal is %+v, %v", j, err)
		}
	}
}
