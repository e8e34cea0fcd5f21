package orchestrator

import (
	"context"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/records"
)

// What a process takes, and what a plan under way adds to it, as the largest storm has measured it
// (docs/results/storm.md), rounded up.
const (
	processBytes = 64 << 20
	planBytes    = 3 << 19
)

// PlansWithin returns how many plans fit into the memory that the program may take; 0 for any number, where nothing
// limits that. More would end the process, then the one that takes its plans over, and so on.
func PlansWithin(limit int64) int {
	if limit == math.MaxInt64 {
		return 0
	}
	return int(max((limit-processBytes)/planBytes, 1))
}

// urgency is the order in which plans get the room that there is.
type urgency int

const (
	inFlight urgency = iota // ordinals are on neither side
	begun
	kept // only names and drains: a pod that restarts has no name meanwhile
	unbegun
)

func urgencyOf(p *plans.Plan, j *plans.Journal, what action) urgency {
	switch {
	case what == keep:
		return kept
	case j.Down(p):
		return inFlight
	case j.Epoch > 0:
		return begun
	}
	return unbegun
}

// waiter is a plan that waits for room in this process.
type waiter struct {
	urgency urgency
	since   time.Time
	told    bool
}

// hasRoom says whether a plan may be begun here, and else lets it wait: until then any other process may take it. The
// lock is held.
func (h *Orchestrator) hasRoom(name string, u urgency) bool {
	before := 0
	for other, w := range h.waiting {
		if other != name && w.urgency < u {
			before++
		}
	}
	if h.MaxPlans == 0 || len(h.runs)+before < h.MaxPlans {
		h.waitsNoMore(name)
		return true
	}
	w := h.waiting[name]
	if w == nil {
		w = &waiter{since: h.Now()}
		h.waiting[name] = w
		h.gauges.waiting.WithLabelValues().Set(float64(len(h.waiting)))
	}
	w.urgency = u
	h.makeRoom()
	return false
}

// makeRoom ends as many runs that only keep names as there are plans with ordinals on neither side that wait. The
// lock is held.
func (h *Orchestrator) makeRoom() {
	wanted := 0
	for _, w := range h.waiting {
		if w.urgency == inFlight {
			wanted++
		}
	}
	for _, r := range h.runs {
		if r.displaced {
			wanted--
		}
	}
	for _, r := range h.runs {
		if wanted > 0 && r.what == keep && !r.displaced {
			r.displaced = true
			r.end()
			wanted--
		}
	}
}

// waitsNoMore forgets that a plan waits, which may let those behind it begin. The lock is held.
func (h *Orchestrator) waitsNoMore(name string) {
	if h.waiting[name] != nil {
		delete(h.waiting, name)
		h.gauges.waiting.WithLabelValues().Set(float64(len(h.waiting)))
		h.freed()
	}
}

// freed lets all plans that wait for room be looked at: which of them has it, their urgency says. The lock is held.
func (h *Orchestrator) freed() {
	if len(h.waiting) == 0 || h.ending {
		return
	}
	var names []string
	for name := range h.waiting {
		names = append(names, name)
	}
	go func() { // there may be more than the channel holds
		for _, name := range names {
			h.wake(name)
		}
	}()
}

// crowded tells of a plan that nobody has had room for, once, and returns when it is to be looked at for that; as before
// for one that does not wait. At first another process may be about to take it.
func (h *Orchestrator) crowded(ctx context.Context, p *plans.Plan, j *plans.Journal, before time.Duration) (time.Duration, error) {
	h.lock.Lock()
	w := h.waiting[p.Name]
	if w == nil || w.told || before > 0 {
		h.lock.Unlock()
		return before, nil
	}
	if left := mirrorRetryInterval - h.Now().Sub(w.since); left > 0 {
		h.lock.Unlock()
		return left, nil
	}
	w.told = true
	keeps := w.urgency == kept
	h.lock.Unlock()
	why := fmt.Sprintf("it waits for room: %d plans are under way in an orchestrator at most (--max-plans), and no other one has taken it; it goes on by itself. "+
		"More replicas or more memory make room, and so does finalizing plans that have moved", h.MaxPlans)
	h.Events.Event(h.object(p), corev1.EventTypeNormal, "WaitsForRoom", why)
	if keeps || j.Waiting == why { // what only keeps names is not taken over, which would take the words back
		return 0, nil
	}
	return 0, records.NewStore(h.Live, h.Namespace, p.Name).Change(ctx, p, func(now *plans.Journal) error {
		if now.Epoch == j.Epoch { // nobody has taken it meanwhile
			now.Waiting = why
		}
		return nil
	})
}
