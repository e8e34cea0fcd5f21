package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// A journal that is older than the marks of its sets would give epochs out again, and have steps done twice.
func TestAJournalThatHasGoneBackIsNotTakenOver(t *testing.T) {
	for stamp, older := range map[string]bool{
		"web-abc/1/7": false, "web-abc/0/9": false, // as it should be, and of an earlier process
		"web-abc/1/8": true, "web-abc/2/0": true, // a later step, and a later process
	} {
		e, objects := takenOver(t, stamp)
		err := e.TakeOver(t.Context(), plans.Move)
		if gone := new(Rewound); errors.As(err, &gone) != older {
			t.Errorf("%s: %v, expected that the journal is older: %v", stamp, err, older)
		}
		if epoch := stored(t, e).Epoch; older && epoch != 1 {
			t.Errorf("%s: the journal that has gone back got the epoch %d", stamp, epoch)
		}
		if err := e.on[plans.Source].Get(t.Context(), client.ObjectKeyFromObject(objects[0]), objects[0]); err != nil {
			t.Fatal(err)
		}
		if got := objects[0].GetAnnotations()[plans.StampAnnotation]; older && got != stamp {
			t.Errorf("%s: the set has been stamped with %s", stamp, got)
		}
	}
}

// A process that takes the plan over between the two reads is no journal that has gone back.
func TestATakeoverMeanwhileIsNoOlderJournal(t *testing.T) {
	e, objects := takenOver(t, "web-abc/1/7")
	inner := unwatched{e.on[plans.Source]}
	raced := false
	racing := interceptor.NewClient(inner, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if key == client.ObjectKeyFromObject(objects[0]) && !raced {
			raced = true
			other := New(e.plan, e.store, clusters.Clusters{plans.Source: inner, plans.Destination: e.on[plans.Destination]})
			if err := other.TakeOver(ctx, plans.Move); err != nil {
				t.Fatal(err)
			}
		}
		return c.Get(ctx, key, o, opts...)
	}})
	e.fencing.on = clusters.Clusters{plans.Source: racing, plans.Destination: e.on[plans.Destination]}
	if err := e.TakeOver(t.Context(), plans.Move); err != nil {
		t.Error(err)
	}
	if epoch := stored(t, e).Epoch; epoch != 3 {
		t.Errorf("the journal has the epoch %d after two takeovers", epoch)
	}
}

// A process notices that the journal goes back under it, and stops before its next look.
func TestAProcessNoticesThatItsJournalHasGoneBack(t *testing.T) {
	for name, older := range map[string]func(*journal.Journal){
		"an earlier step":    func(j *journal.Journal) { j.Begun-- },
		"an earlier process": func(j *journal.Journal) { j.Epoch-- },
	} {
		p := planstest.Named(t, "abc")
		c := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
		store := records.NewStore(c, "mall", p.Name)
		j := journal.New(p)
		j.Epoch, j.Begun, j.Done = 2, 1, 0
		older(j)
		if err := store.Create(t.Context(), p, j); err != nil {
			t.Fatal(err)
		}
		e := New(p, store, clusters.Clusters{plans.Source: c, plans.Destination: c})
		e.epoch, e.begun = 2, 1
		got, err := e.Advance(t.Context())
		if err != nil || got.Kind != Blocked || got.Overtaken || !strings.Contains(got.Reason, "is older than what has been done") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// A backup of the journal that comes back between the two reads is found by the fence: it leaves a later stamp alone (S9).
func TestAJournalThatGoesBackMeanwhileFencesNothing(t *testing.T) {
	e, objects := takenOver(t, "web-abc/1/7")
	inner, before, raced := unwatched{e.on[plans.Source]}, stored(t, e).Epoch, false
	racing := interceptor.NewClient(inner, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if key == client.ObjectKeyFromObject(objects[0]) && !raced && stored(t, e).Epoch > before { // it fences now
			raced = true
			if err := c.Get(ctx, key, objects[0]); err != nil {
				t.Fatal(err)
			}
			plans.Stamp{Plan: "web-abc", Epoch: 9, Seq: 1}.Put(objects[0])
			if err := c.Update(ctx, objects[0]); err != nil {
				t.Fatal(err)
			}
		}
		return c.Get(ctx, key, o, opts...)
	}})
	e.fencing.on = clusters.Clusters{plans.Source: racing, plans.Destination: e.on[plans.Destination]}
	if err := e.TakeOver(t.Context(), plans.Move); err == nil || !raced {
		t.Errorf("%v; raced: %t", err, raced)
	}
	if err := inner.Get(t.Context(), client.ObjectKeyFromObject(objects[0]), objects[0]); err != nil {
		t.Fatal(err)
	}
	if got := objects[0].GetAnnotations()[plans.StampAnnotation]; got != "web-abc/9/1" {
		t.Errorf("the set has been stamped with %s", got)
	}
}
