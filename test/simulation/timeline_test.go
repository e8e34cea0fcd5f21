package simulation

import (
	"fmt"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// A move of 60 whose processes die all the time has a complete record of each ordinal, and the journal stays small.
func TestTheTimelineOutlivesEveryProcess(t *testing.T) {
	t.Parallel()
	sc := threeOrdinals(plans.Reimport)
	sc.Ordinals = 60
	w := newWorld(sc)
	processes, written := 0, 0
	for done := false; !done && processes < 500; processes++ {
		done = w.someWrites(t, fmt.Sprint("process-", processes), 6+processes%6, faults()[processes%2], &written)
	}
	store := records.NewStore(w.process().stores[plans.Destination], green, planName)
	all, err := store.Timeline(t.Context(), w.plan, &w.journal)
	if err != nil || len(all.Waves) != 60 || all.Omitted != 0 || processes < 60 {
		t.Fatalf("%d records of 60 ordinals, moved by %d processes (%d omitted): %v", len(all.Waves), processes, all.Omitted, err)
	}
	inTurn(t, all.Waves)
	if inJournal := len(w.journal.Timeline.Waves); inJournal > 30 {
		t.Errorf("the journal still has %d records", inJournal)
	}
	if written == 0 || written > 10 {
		t.Errorf("the records of 60 ordinals took %d writes of their own", written)
	}
}

// inTurn requires a complete record of each ordinal from 59 downwards.
func inTurn(t *testing.T, waves []journal.Wave) {
	t.Helper()
	for k, wave := range waves {
		if wave.Ordinals != (plans.Slice{Start: int32(59 - k), Replicas: 1}) || wave.To != plans.Destination || wave.Nodes[0][0] == "" || wave.Nodes[0][1] == "" {
			t.Errorf("record %d is %+v", k, wave)
		}
		if !wave.Arrived().After(wave.Left.Time) || wave.By == "" || wave.Epoch == 0 {
			t.Errorf("record %d is incomplete: %+v", k, wave)
		}
		if k > 0 && wave.Left.Time.Before(waves[k-1].Arrived()) {
			t.Errorf("ordinal %d has left before the one before it arrived: %+v, %+v", 59-k, waves[k-1], wave)
		}
	}
}

// someWrites runs one process until it dies at its n-th write after the takeover, and reports whether the plan is finished. It counts the
// writes of stored timelines.
func (w *world) someWrites(t *testing.T, name string, n int, how fault, written *int) bool {
	t.Helper()
	r := w.process()
	first := -1
	r.at = func(k int) fault {
		if r.now.name == records.RecordName(planName)+"-timeline" {
			*written++
		}
		if first >= 0 && k-first >= n {
			return how
		}
		return ""
	}
	e, err := r.takeOver(t.Context(), plans.Move)
	if err != nil {
		t.Fatal(err)
	}
	e.Now, e.Holder, first = w.clock, name, w.writes
	for range 10_000 {
		p, err := e.Advance(t.Context())
		switch {
		case r.dead:
			return false
		case p.Kind == engine.Finished:
			return true
		case err != nil || p.Kind == engine.Blocked:
			t.Fatalf("%s: %+v: %v", name, p, err)
		}
		w.rest()
	}
	t.Fatal("it never ends")
	return false
}
