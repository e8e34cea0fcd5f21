package engine

import (
	"context"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// This file keeps the timeline of the journal. No safety rule depends on it.

// arrival returns what the timeline records of a wave, beside its times.
func (e *memory) arrival(j *journal.Journal, step plans.Step, observed plans.Observation) journal.Wave {
	w := journal.Wave{Seq: step.Seq, Ordinals: step.Ordinals, To: step.To(), Epoch: e.epoch, By: e.Holder, Writes: e.uncounted + e.Recent.Sent()}
	e.uncounted = 0
	for o := range step.Ordinals.All() {
		nodes := [2]string{1: observed.Nodes[o]}
		if f := j.Flight; f != nil && f.Ordinals == step.Ordinals {
			nodes[0] = f.Pod(o).Node
		}
		w.Nodes = append(w.Nodes, nodes)
	}
	w.Places, w.Seen = j.Timeline.PlacesOf(step.Ordinals)
	j.Timeline.Placed = nil
	return w
}

// record adds an event, which the next write of the journal carries.
func (e *memory) record(kind journal.EventKind, id reasons.ID, what string) {
	if e.Now != nil {
		e.journal.Timeline.Record(e.Now(), journal.Event{Kind: kind, ID: id, By: e.Holder, What: what})
	}
}

// requested records the request for which the plan is taken over. An orchestrator that only continues what was asked
// before has no request.
func (e *memory) requested(j *journal.Journal, w plans.Command) {
	if e.Now == nil {
		return
	}
	if j.Timeline.Begun == nil {
		j.Timeline.Begun = &metav1.Time{Time: e.Now().UTC().Truncate(time.Second)}
	}
	if c := e.Checks; c != nil && !c.At.IsZero() {
		j.Timeline.Checks = c
	}
	by := w.By
	if by == "" && w.Observed != nil {
		by = plans.DeclarationKind + " " + e.plan.Name
	}
	what := words(w)
	if e.Careful {
		what += "; careful"
	}
	if by != "" {
		j.Timeline.Record(e.Now(), journal.Event{Kind: journal.Requested, By: by, What: what})
	}
}

// words returns a request in words.
func words(w plans.Command) string {
	out := []string{string(w.Direction)}
	for _, more := range []struct {
		asked bool
		what  string
	}{
		{w.Observed != nil && w.Observed.Paused, "pause"},
		{w.SkipGates, "skip the gates"},
		{w.KeepNames, "keep the names"},
		{w.RemoveNames, "remove the names"},
		{w.Limits.Until != nil, "until ordinal " + strconv.Itoa(int(ptr.Deref(w.Limits.Until, 0)))},
		{w.Limits.PauseAfter > 0, "pause after " + strconv.Itoa(int(w.Limits.PauseAfter)) + " ordinals"},
		{w.Assurance.NodeGone != "", "vouched: node " + w.Assurance.NodeGone + " is gone"},
		{w.Assurance.Readopt, "vouched: the unstamped objects are the plan's"},
		{w.Assurance.MaxUnavailable > 0, "vouched: " + strconv.Itoa(int(w.Assurance.MaxUnavailable)) + " ordinals may be unavailable"},
		{w.Assurance.SourceGone, "vouched: the source's cluster no longer exists"},
		{w.Assurance.OtherTemplate != "", "vouched: the data may be used by the other pod template (" + w.Assurance.OtherTemplate + ")"},
		{len(w.Assurance.OtherCopies) > 0, "vouched: pods may start with what the side has that receives them of " + strings.Join(w.Assurance.OtherCopies, ", ")},
		{w.Assurance.SkipPlaces, "skip the proof of the places"},
		{len(w.Assurance.Ignore) > 0, "vouched: the waves may leave in spite of the checks " + strings.Join(w.Assurance.Ignore, ", ")},
	} {
		if more.asked {
			out = append(out, more.what)
		}
	}
	return strings.Join(out, "; ")
}

// offload moves a full timeline to its own ConfigMap, between two waves. The order must hold: the entries are stored
// there BEFORE they leave the journal with its next write. If the process dies in between, they are in both, and a
// reader shows them once. If they cannot be stored, they stay in the journal.
func (e *memory) offload(ctx context.Context) {
	if t := &e.journal.Timeline; t.Full() && e.store.Offload(ctx, e.plan, *t) == nil {
		*t = t.Emptied()
	}
}
