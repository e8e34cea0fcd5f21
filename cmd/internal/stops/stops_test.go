package stops

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func step(op plans.Op) plans.Step {
	return plans.Step{Seq: 9, Op: op, Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source}
}

// Whoever stops a run learns at once what it waits for, what the next signal does, and what is down then.
func TestASignalIsAnsweredWithWhatItLeavesDown(t *testing.T) {
	waits := engine.Progress{Kind: engine.Waiting, Step: step(plans.Vacate), ID: reasons.VolumeAttached, Reason: "volume pv-1 is still attached", Left: noon().Add(-72 * time.Second)}
	writes := waits
	writes.Kind, writes.Reason, writes.ID = engine.Wrote, "delete claim data-web-2", ""
	between := engine.Progress{Kind: engine.Waiting, Step: step(plans.Tighten), Reason: "waits"}
	for name, c := range map[string]struct {
		last                    engine.Progress
		first, second, at, asks string
	}{
		"a wave that waits": {
			waits, "stopping as soon as web-2 has arrived, on neither side for 1m12s now; it waits: volume pv-1 is still attached [VolumeAttached] (one more signal stops after the current write, with web-2 down)",
			"stopping after the current write, with web-2 on neither side; one more signal stops at once", "stopped at once: web-2, on neither side since 11:58:48 UTC, may stay down until `resume`",
			"Stop now, and leave web-2 down? It can be continued later.",
		},
		"a wave": {
			writes, "stopping as soon as web-2 has arrived, on neither side for 1m12s now (one more signal stops after the current write, with web-2 down)",
			"stopping after the current write, with web-2 on neither side; one more signal stops at once", "stopped at once: web-2, on neither side since 11:58:48 UTC, may stay down until `resume`",
			"Stop now, and leave web-2 down? It can be continued later.",
		},
		"nothing in flight": {between, "stopping: no ordinal is in flight", "stopping after the current write; one more signal stops at once", "", "Stop? Nothing is in flight, and it can be continued later."},
	} {
		told := ""
		w := New(planstest.Named(t, "abc"), journal.New(planstest.Named(t, "abc")), "`resume`", noon)
		w.Tell = func(what string) { told = what }
		w.Learn(c.last)
		if !strings.HasPrefix(w.Asks(), "Stop as soon as web-2 has arrived?") && c.at != "" {
			t.Errorf("%s: it asks %q first", name, w.Asks())
		}
		if got := w.Says(program.Finishes); got != c.first || told != got {
			t.Errorf("%s: it says %q, and tells %q", name, got, told)
		}
		if got := w.Asks(); got != c.asks {
			t.Errorf("%s: it then asks %q", name, got)
		}
		if got := w.Says(program.Stops); got != c.second || told != got {
			t.Errorf("%s: it says %q, and tells %q", name, got, told)
		}
		if got := w.AtOnce(); got != c.at {
			t.Errorf("%s: it says at once %q", name, got)
		}
	}
}

// A run that goes on with a wave in flight knows that before it has seen anything.
func TestARunKnowsTheWaveThatItFindsInFlight(t *testing.T) {
	p := planstest.Named(t, "abc")
	j := journal.New(p)
	for s, _ := p.Step(j.Leg, 1); s.Op != plans.Release; s, _ = p.Step(j.Leg, s.Seq+1) {
		j.Done, j.Begun = s.Seq, s.Seq
	}
	j.Flight = &plans.Flight{Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source}
	if got := New(p, j, "", noon).Says(program.Finishes); !strings.HasPrefix(got, "stopping as soon as web-2 has arrived") {
		t.Error(got)
	}
}

// What is left in flight is what the clusters show, or else what the run last saw.
func TestWhatARunLeavesIsReadOrRemembered(t *testing.T) {
	p, away := planstest.Named(t, "abc"), errors.New("no route")
	flying := engine.Progress{Step: step(plans.Grow), Left: noon().Add(-time.Minute)}
	seen := &engine.InFlight{Pods: "web-2", Message: "web-2 is down on both sides"}
	for name, c := range map[string]struct {
		v      *engine.View
		unread error
		last   engine.Progress
		want   string
	}{
		"read":                     {&engine.View{InFlight: seen}, nil, flying, "Meanwhile web-2 is down on both sides.\n"},
		"read, and it has arrived": {&engine.View{}, nil, flying, ""},
		"not read":                 {nil, away, flying, "Meanwhile web-2 was on neither side since 11:59:00 UTC when this process last looked.\n"},
		"not read, nothing flies":  {nil, away, engine.Progress{Step: step(plans.Tighten)}, ""},
	} {
		got := After(p, c.v, c.unread, c.last, noon())
		if got.Sentence() != c.want || (got.Unread != nil) != (c.unread != nil) {
			t.Errorf("%s: %q, unread %v", name, got.Sentence(), got.Unread)
		}
	}
}
