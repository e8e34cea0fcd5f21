package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// A pod with a grace period of an hour is not overdue before that, whatever --step-timeout is.
func TestAPodHasTheTimeToEndThatItAsksFor(t *testing.T) {
	pod, set := &corev1.Pod{}, &appsv1.StatefulSet{}
	hour, half := int64(3600), int64(1800)
	pod.Spec.TerminationGracePeriodSeconds, set.Spec.Template.Spec.TerminationGracePeriodSeconds = &hour, &half
	deleted := &corev1.Pod{} // the deletion gave it more
	deleted.Spec.TerminationGracePeriodSeconds, deleted.DeletionGracePeriodSeconds = &half, &hour
	for _, c := range []struct {
		op   plans.Op
		seen []client.Object
		want time.Duration
	}{
		{plans.Vacate, []client.Object{pod, set}, time.Hour + kubeletMargin},
		{plans.Vacate, []client.Object{deleted}, time.Hour + kubeletMargin},
		{plans.Shrink, []client.Object{set}, time.Hour/2 + kubeletMargin},
		{plans.Vacate, []client.Object{&corev1.Pod{}, nil}, 10 * time.Minute},
		{plans.Grow, []client.Object{pod}, 10 * time.Minute},
	} {
		g := &clusters.ReadCache{}
		g.Clear()
		for k, o := range c.seen {
			g.Objects[clusters.ObjectKey{Name: string(rune('a' + k))}] = o
		}
		r := run{Engine: &Engine{observer: &observer{reads: g}}, Options: Options{StepTimeout: 10 * time.Minute}, last: Progress{Step: plans.Step{Op: c.op}}}
		if got := r.timeout(); got != c.want {
			t.Errorf("%s of %v: %s, expected %s", c.op, c.seen, got, c.want)
		}
	}
}

// A step of five pods that come one after the other takes five times as long as one. So the clock of a step
// restarts with every pod of the wave that comes or goes, and with no other change.
func TestAPodOfTheWaveThatComesOrGoesIsProgress(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  string
		news []clusters.Change
		want bool
	}{
		{"one comes", "web-1", []clusters.Change{{Version: "7", Turned: true}}, true},
		{"one goes", "web-2", []clusters.Change{{Gone: true, Turned: true}}, true},
		{"one changes", "web-2", []clusters.Change{{Version: "7"}}, false},
		{"one comes, and changes", "web-1", []clusters.Change{{Version: "7", Turned: true}, {Version: "8"}}, true},
		{"one of another wave goes", "web-0", []clusters.Change{{Gone: true, Turned: true}}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			wake := clusters.NewChangeSignal()
			g := &clusters.ReadCache{}
			g.Clear()
			r := run{
				Engine:   &Engine{observer: &observer{reads: g}, memory: memory{Process: Process{Recent: clusters.NewRecent()}, plan: &plans.Plan{Source: plans.Ref{Name: "web"}, Destination: plans.Ref{Name: "web"}}}},
				Options:  Options{StepTimeout: time.Minute, Wake: wake},
				deadline: time.NewTimer(time.Minute),
				last:     Progress{Step: plans.Step{Op: plans.Grow, Ordinals: plans.Slice{Start: 1, Replicas: 2}}},
			}
			time.AfterFunc(50*time.Second, func() {
				for _, news := range c.news {
					wake.Notify(clusters.ObjectKey{Cluster: plans.Source, Kind: "Pod", Namespace: "shop", Name: c.pod}, news)
				}
			})
			for began := time.Now(); time.Since(began) < 70*time.Second && !r.expired; { //nolint:forbidigo // the clock of the bubble
				if err := r.wait(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
			}
			if r.expired == c.want {
				t.Errorf("%s: it is too late after 70 seconds: %t", c.name, r.expired)
			}
		})
	}
}

// A wave that could leave, and whose budgets are opened and tightened again while it waits, does not wait for ever. A
// wait of Tighten between is another one, unless it is for the disruption controller to see what Tighten has written:
// that comes with each cycle.
func TestTheClockOfAWaitThatComesBackGoesOn(t *testing.T) {
	tightens := Progress{Kind: Wrote, Step: plans.Step{Op: plans.Tighten}, Reason: "budget web"}
	for name, c := range map[string]struct {
		between []Progress
		back    string
		want    bool
	}{
		"it comes back":        {[]Progress{{Kind: Advanced}, {Kind: Wrote, Reason: "budget web"}}, "pods are counted", true},
		"it is another one":    {[]Progress{{Kind: Wrote, Reason: "budget web"}}, "a node is not Ready", false},
		"Tighten waits for it": {[]Progress{{Kind: Waiting, Step: plans.Step{Op: plans.Tighten}, ID: reasons.PodNotReady, Reason: "a pod is down"}}, "pods are counted", false},
		"the budgets are seen": {[]Progress{tightens, {Kind: Waiting, Step: plans.Step{Op: plans.Tighten}, ID: reasons.BudgetNotObserved, Reason: "the spec is new"}}, "pods are counted", true},
		"evictions are done":   {[]Progress{tightens, {Kind: Waiting, Step: plans.Step{Op: plans.Tighten}, ID: reasons.EvictionPending, Reason: "an eviction"}}, "pods are counted", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := aClock()
			leaves := plans.Step{Op: plans.Shrink, Ordinals: plans.Slice{Start: 1, Replicas: 1}}
			r.report(Progress{Kind: Waiting, Step: leaves, Reason: "pods are counted"})
			r.ticks(6 * time.Minute)
			for _, p := range c.between {
				r.report(p)
			}
			r.report(Progress{Kind: Waiting, Step: leaves, Reason: c.back})
			if r.ticks(6 * time.Minute); r.expired != c.want {
				t.Errorf("%s: it has waited too long: %t, expected %t", name, r.expired, c.want)
			}
		})
	}
}

// aClock returns a run that has nothing but the clock of a step.
func aClock() *run {
	reads := &clusters.ReadCache{}
	reads.Clear()
	return &run{
		Engine:   &Engine{observer: &observer{reads: reads}, memory: memory{Process: Process{Recent: clusters.NewRecent(), Now: time.Now}, plan: &plans.Plan{}}}, //nolint:forbidigo // the clock of the bubble
		Options:  Options{StepTimeout: 10 * time.Minute, Wake: clusters.NewChangeSignal(), Report: func(Progress, error) {}},
		deadline: time.NewTimer(time.Minute),
	}
}

// A wall clock that is set, by hand or by NTP, is not waited for: the wait has lasted as long as the monotonic clock says.
func TestAWallClockThatIsSetIsNotWaitedFor(t *testing.T) {
	real := time.Now() //nolint:forbidigo // a time of a bubble has no monotonic clock
	for name, jump := range map[string]int64{"forward": 3600, "back": -3600} {
		synctest.Test(t, func(t *testing.T) {
			r, set, began := aClock(), int64(0), time.Now() //nolint:forbidigo // the clock of the bubble
			r.Now = func() time.Time { return wallSet(real.Add(time.Since(began)), set) }
			leaves := plans.Step{Op: plans.Shrink, Ordinals: plans.Slice{Start: 1, Replicas: 1}}
			r.report(Progress{Kind: Waiting, Step: leaves, Reason: "pods are counted"})
			r.ticks(time.Minute)
			set = jump
			r.report(Progress{Kind: Advanced})
			r.report(Progress{Kind: Waiting, Step: leaves, Reason: "pods are counted"})
			if r.ticks(8 * time.Minute); r.expired {
				t.Errorf("%s: it has waited too long after nine minutes", name)
			}
			if r.ticks(2 * time.Minute); !r.expired {
				t.Errorf("%s: it has not waited too long after eleven minutes", name)
			}
		})
	}
}

// wallSet returns a time whose wall clock was set by some seconds, and whose monotonic clock was not. The seconds are in
// the bits of the first word of a time.Time above those of the nanoseconds.
func wallSet(at time.Time, seconds int64) time.Time {
	word := (*uint64)(unsafe.Pointer(&at))
	*word += uint64(seconds) << 30
	return at
}

// ticks lets time pass for a run that waits.
func (r *run) ticks(d time.Duration) {
	for end := time.After(d); ; {
		select {
		case <-end:
			return
		case <-r.deadline.C:
			r.expired = true
		}
	}
}

// The clock of a wait that comes back begins again when an API server is back: nothing could end the wait meanwhile.
func TestAnOutageBetweenIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := aClock()
		leaves := plans.Step{Op: plans.Shrink, Ordinals: plans.Slice{Start: 1, Replicas: 1}}
		r.report(Progress{Kind: Waiting, Step: leaves, Reason: "volume pv-1 is still attached"})
		r.ticks(5 * time.Second) // the budgets are opened
		for range 90 {
			if _, err := r.failed(t.Context(), Progress{}, errors.New("connection refused")); err != nil {
				t.Fatal(err)
			}
			r.ticks(10 * time.Second)
		}
		r.report(Progress{Kind: Wrote, Step: plans.Step{Op: plans.Tighten}, Reason: "budget web"})
		r.report(Progress{Kind: Waiting, Step: plans.Step{Op: plans.Tighten}, ID: reasons.BudgetNotObserved, Reason: "the spec is new"})
		r.report(Progress{Kind: Waiting, Step: leaves, Reason: "volume pv-1 is still attached"})
		if r.ticks(9 * time.Minute); r.expired {
			t.Error("nine minutes after the API server is back it has waited too long")
		}
		if r.ticks(2 * time.Minute); !r.expired {
			t.Error("it never waits too long")
		}
	})
}

// A wait for a turn between two looks does not hide that a claim is never bound (L1).
func TestAWaitAroundAQueueGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := aClock()
		tightens := plans.Step{Op: plans.Tighten, Ordinals: plans.Slice{Start: 1, Replicas: 1}}
		for range 3 {
			r.report(Progress{Kind: Waiting, Step: tightens, ID: reasons.ClaimNotBound, Reason: "claim data-web-1 is Pending"})
			r.ticks(4 * time.Minute)
			if r.expired {
				return
			}
			r.report(Progress{Kind: Waiting, Step: tightens, ID: reasons.WavesAtLimit, Reason: waitsForPermit, Queued: true})
			r.ticks(time.Minute)
		}
		t.Error("a claim that is not bound is waited for for ever")
	})
	synctest.Test(t, func(t *testing.T) { // nobody looks while it waits for its turn
		r := aClock()
		tightens := plans.Step{Op: plans.Tighten, Ordinals: plans.Slice{Start: 1, Replicas: 1}}
		for range 2 {
			r.report(Progress{Kind: Waiting, Step: tightens, ID: reasons.OrdinalDown, Reason: "pod web-0 is not Ready"})
			r.ticks(time.Minute)
			r.report(Progress{Kind: Waiting, Step: tightens, ID: reasons.WavesAtLimit, Reason: waitsForPermit, Queued: true})
			r.ticks(20 * time.Minute)
		}
		r.report(Progress{Kind: Waiting, Step: tightens, ID: reasons.OrdinalDown, Reason: "pod web-0 is not Ready"})
		if r.ticks(time.Minute); r.expired {
			t.Error("three minutes of waiting, and forty of waiting for a turn, are too long")
		}
	})
}

// What a blocked plan waited for before does not hide why it is blocked.
func TestABlockedPlanIsNotOverdue(t *testing.T) {
	e, _ := takenOver(t, "web-abc/1/7")
	e.epoch = stored(t, e).Epoch
	changed(t, e, func(j *journal.Journal) {
		j.OverdueID, j.Overdue, j.WaitingID, j.Waiting = reasons.VolumeInUse, "volume a is still attached", reasons.ClusterNotReached, "no answer"
	})
	if _, err := e.Block(t.Context(), plans.Step{}, reasons.SetDiffers, "another writer has changed web"); err != nil {
		t.Fatal(err)
	}
	if j := stored(t, e); j.Overdue != "" || j.Waiting != "" || j.BlockedID != reasons.SetDiffers {
		t.Errorf("overdue %q, waiting %q, blocked %q", j.Overdue, j.Waiting, j.BlockedID)
	}
	j := stored(t, e)
	j.Overdue = "volume a is still attached" // of an earlier release
	var v View
	v.describe(e.plan, j, requests.Requested{}, func(verb string) string { return verb })
	if v.Overdue != "" || v.Reason != "another writer has changed web" {
		t.Errorf("overdue %q, because %q", v.Overdue, v.Reason)
	}
}
