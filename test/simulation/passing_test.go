package simulation

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// passing are the answers of an API server that has just started, and the reason for which a plan is blocked if they do
// not pass. Without one they are an outage.
func passing() []struct {
	error
	reasons.ID
} {
	of := schema.GroupResource{Resource: "pods"}
	return []struct {
		error
		reasons.ID
	}{
		{apierrors.NewForbidden(of, "web-0", errors.New(`User "mover" cannot get resource "pods" in API group "" in the namespace "blue": RBAC: role "mover" not found`)), reasons.RequestRefusedByAPI},
		{apierrors.NewUnauthorized("Unauthorized"), reasons.CredentialsExpired},
		{answers.ErrNoKind{Host: "east", Path: "/apis/apps/v1/namespaces/blue/statefulsets/web"}, reasons.RequestRefusedByAPI},
		{apierrors.NewForbidden(of, "web-0", errors.New("not yet ready to handle request")), reasons.RequestRefusedByAPI},
		{apierrors.NewTooManyRequests("too many requests", 1), ""},
		{apierrors.NewInternalError(errors.New("etcdserver: request timed out")), ""},
		{apierrors.NewTimeoutError("timed out", 0), ""},
	}
}

// refusedAt carries a plan out up to its nth write on a leg. From then on the API server of one side answers every request
// alike. ok is false when the leg has no such write.
func refusedAt(t *testing.T, w *world, direction plans.Direction, n int, says func(*store) error) (p *running, r *process, ok bool) {
	t.Helper()
	r, e := w.begin(t, direction)
	for wrote := 0; wrote < n; {
		got, err := e.Advance(t.Context())
		switch {
		case err != nil:
			t.Fatal(err)
		case got.Kind == engine.Finished:
			return nil, nil, false
		case got.Kind == engine.Wrote:
			wrote++
		}
		w.others(r, got.Kind)
	}
	r.says = says
	return carried(t, w, r, e), r, true
}

// goesOn lets world and process act for a time, unless the process ends before.
func (p *running) goesOn(d time.Duration) (ended, bool) {
	for range int(d / time.Minute) {
		p.w.rest()
		if e, over := p.after(time.Minute); over {
			return e, true
		}
	}
	return ended{}, false
}

// sided reports whether every ordinal has a side.
func (w *world) sided() bool {
	for o := range w.plan.Ordinals().All() {
		has := slices.ContainsFunc(plans.Sides(), func(side plans.Side) bool {
			set, _ := get[*appsv1.StatefulSet](w.on[side], w.plan.On(side).Namespace, w.plan.On(side).Name)
			return set != nil && plans.SliceOf(set).Has(o)
		})
		if !has {
			return false
		}
	}
	return true
}

// What an API server answers while it starts, or while its rights change, decides nothing: at any write of either leg, in
// both modes, the plan waits and goes on by itself (L3). If it lasts for longer than a step may wait, the plan is blocked
// with the reason, and only with nothing in flight.
func TestAnAnswerThatMayPassIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			for _, long := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, for long: %t", mode, direction, long), func(t *testing.T) {
					t.Parallel()
					first := newWorld(threeOrdinals(mode))
					if direction == plans.Abort {
						walk(t, first, plans.Move, nil)
					}
					blocked, overdue := 0, 0
					for n, more := 0, true; more; n++ {
						answer := passing()[n%len(passing())]
						side := plans.Sides()[n/len(passing())%2]
						w := first.fork(uint64(n))
						synctest.Test(t, func(t *testing.T) {
							var got string
							if got, more = w.isRefused(t, direction, n, side, answer.error, answer.ID, long); got == "blocked" {
								blocked++
							} else if got == "overdue" {
								overdue++
							}
							unbroken(t, w)
						})
						if t.Failed() {
							t.Fatalf("that was after %d writes, on the %s: %v", n, side, answer.error)
						}
					}
					// In one cluster nothing can be recorded either, neither that it is blocked nor that it is overdue.
					if long && mode == plans.Reimport && (blocked == 0 || overdue == 0) {
						t.Errorf("%d blocked, %d overdue: expected both", blocked, overdue)
					}
				})
			}
		}
	}
}

// isRefused has a plan refused at its nth write, and returns how it waited.
func (w *world) isRefused(t *testing.T, direction plans.Direction, n int, side plans.Side, answer error, id reasons.ID, long bool) (how string, more bool) {
	t.Helper()
	p, r, more := refusedAt(t, w, direction, n, func(s *store) error {
		if s == w.on[side] {
			return answer
		}
		return nil
	})
	if !more {
		return "", false
	}
	outcome := map[plans.Direction]plans.Outcome{plans.Move: plans.Moved, plans.Abort: plans.Aborted}[direction]
	wait := stepTimeout - 2*time.Minute
	if long {
		wait = 3 * stepTimeout
	}
	got, over := p.goesOn(wait)
	if over && got.Outcome == outcome { // it needed nothing of that side any more
		return "", true
	}
	if over {
		w.isBlockedBy(t, got, id, long)
		how = "blocked"
		r.says = nil
		r, e := w.begin(t, direction)
		p = carried(t, w, r, e)
	} else {
		how = w.isOverdue(t, p, id, long)
	}
	r.says = nil
	if got := p.rests(t); got.Outcome != outcome || got.err != nil || w.journal.Overdue != "" {
		t.Fatalf("%+v, journal %+v", got, w.journal)
	}
	return how, true
}

// isBlockedBy checks that a process which has ended was blocked by a refusal that lasts, with no ordinal under way.
func (w *world) isBlockedBy(t *testing.T, got ended, id reasons.ID, long bool) {
	t.Helper()
	if !long || id == "" || got.Kind != engine.Blocked || got.ID != id || !w.sided() {
		t.Fatalf("%+v (every ordinal has a side: %t)", got, w.sided())
	}
}

// isOverdue checks what is recorded while a process goes on, and returns "overdue" if it waits for longer than it should.
func (w *world) isOverdue(t *testing.T, p *running, id reasons.ID, long bool) (how string) {
	t.Helper()
	if long && id != "" && w.journal.Overdue != "" {
		if w.journal.OverdueID != id || !p.last.Overdue {
			t.Fatalf("%+v, %+v", w.journal, p.last)
		}
		return "overdue"
	}
	if w.journal.Blocked != "" {
		t.Fatalf("it is blocked by %s, and its process goes on", w.journal.Blocked)
	}
	return ""
}
