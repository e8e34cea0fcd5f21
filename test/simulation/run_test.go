package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/runner"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// machine runs one process after another, each of which carries the plan out as a command does: under its Lease, with
// the checks, and by a clock that is the machine's own.
type machine struct {
	name  string
	ahead time.Duration // of its clock
	world *world
	lock  *sync.Mutex
	rng   *rand.Rand
	rate  int // one of so many writes kills the process; 0 for none
	// died is when a process of any machine died last; zero when another one has the plan.
	died  *time.Time
	waits time.Duration // the longest time from a death to the next process that has the plan
	said  []string
}

func (m *machine) now() time.Time { return time.Now().Add(m.ahead) }

// process runs one process until it ends or dies.
func (m *machine) process(ctx context.Context, n int, direction plans.Direction) error {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	m.lock.Lock()
	r := m.world.process()
	m.lock.Unlock()
	r.takingOver = true
	r.at = func(int) fault {
		if r.now.kind == "ConfigMap" && r.epoch > 0 && r.takingOver { // its fence is complete
			r.takingOver = false
			m.world.fenced = max(m.world.fenced, r.epoch)
		}
		if m.rate > 0 && m.rng.IntN(m.rate) == 0 {
			return []fault{crashBefore, crashAfter}[m.rng.IntN(2)]
		}
		return ""
	}
	on := clusters.Clusters{}
	died := func() {
		*m.died = time.Now()
		kill()
	}
	for side, c := range r.stores {
		on[side] = served{c, m.lock, sync.OnceFunc(died)}
	}
	c := runner.Runner{
		Plan: m.world.plan, Store: records.NewStore(on[plans.Destination], green, planName), On: on,
		Holder: fmt.Sprintf("%s/%d", m.name, n), Now: m.now, Pace: runner.Pace{StepTimeout: time.Hour},
		// A machine knows of its own processes which of them live: this one alone.
		Dead:     func(holder string) bool { return strings.HasPrefix(holder, m.name+"/") },
		Report:   func(_ *engine.Engine, p engine.Progress, _ error) { m.heard(p) },
		Complain: func(err error) { m.said = append(m.said, err.Error()) },
	}
	_, _, err := c.Run(ctx, plans.Command{Direction: direction})
	if r.dead {
		return errDead
	}
	return err
}

// heard takes notice of progress, which shows that a living process has the plan.
func (m *machine) heard(p engine.Progress) {
	if p.Kind == engine.Blocked {
		m.said = append(m.said, p.Reason)
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	if !m.died.IsZero() {
		m.waits = max(m.waits, time.Since(*m.died))
		*m.died = time.Time{}
	}
}

// carries runs processes until the plan has ended.
func (m *machine) carries(ctx context.Context) {
	for n := range 200 {
		m.lock.Lock()
		j := m.world.journal
		m.lock.Unlock()
		direction := j.Leg.Direction
		if direction == plans.Move && j.Outcome == plans.Moved {
			direction = plans.Finalize
		}
		if j.Ended() || ctx.Err() != nil {
			return
		}
		err := m.process(ctx, n, direction)
		if err != nil && !errors.Is(err, errDead) && !errors.As(err, new(records.ErrLeaseTaken)) {
			m.said = append(m.said, err.Error())
		}
		if errors.As(err, new(records.ErrLeaseTaken)) {
			<-time.After(5 * time.Second)
		}
	}
}

// Two machines whose clocks disagree run processes that die: the run itself, with its Lease, its checks, its waits and
// its retries, brings the plan to its end, and after a death goes on when the Lease has expired (L1, L2).
func TestRunsOfTwoMachinesBringAPlanToItsEnd(t *testing.T) {
	t.Parallel()
	from, to := seedsOf(1, 1000)
	clocks := []time.Duration{0, -time.Hour, 10 * time.Second, time.Hour}
	for _, mode := range modes() {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			drawn(t, "runs", from, to, 1000)
			first := newWorld(threeOrdinals(mode))
			done := goldenOf(t, first.fork(0), journey{plans.Move, plans.Finalize})
			for seed := from; seed <= to; seed++ {
				w, ahead := first.fork(seed), clocks[seed%4]
				synctest.Test(t, func(t *testing.T) { w.isCarried(t, ahead) })
				cleanEnd(t, w, done.end)
				if t.Failed() {
					t.Fatalf("that was seed %d, with a clock that is %s ahead", seed, ahead)
				}
			}
		})
	}
}

// isCarried lets two machines carry the plan out, while the controllers act ten times a second.
func (w *world) isCarried(t *testing.T, ahead time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 6*time.Hour) // of the bubble
	defer stop()
	var lock sync.Mutex
	var died time.Time
	var all [2]*machine
	var working, acting sync.WaitGroup
	for k := range all {
		all[k] = &machine{name: fmt.Sprintf("machine-%d", k), world: w, lock: &lock, rng: rand.New(rand.NewPCG(w.options.Seed, uint64(k))), rate: 40, died: &died}
		working.Go(func() { all[k].carries(ctx) })
	}
	all[1].ahead = ahead
	acted := make(chan struct{})
	acting.Go(func() {
		for {
			select {
			case <-acted:
				return
			case <-time.After(100 * time.Millisecond):
				lock.Lock()
				w.tick()
				lock.Unlock()
			}
		}
	})
	working.Wait()
	close(acted)
	acting.Wait()
	// A process of the other machine waits out the Lease, twice if the clock of the dead one was ahead, and asks every
	// five seconds. It then looks, and the controllers take their time.
	const limit = 2*records.LeaseSeconds*time.Second + 15*time.Second
	for _, m := range all {
		if m.waits > limit {
			t.Errorf("L2: %s after a death nobody had the plan, at most %s were promised", m.waits, limit)
		}
		if !w.journal.Ended() {
			t.Errorf("L1: the plan has not ended; %s said %q", m.name, m.said[max(0, len(m.said)-5):])
		}
	}
	home, lease := w.on[plans.Destination], key{"Lease", green, records.LeaseName(planName)}
	if _, left := home.objects[lease]; left {
		if died.IsZero() {
			t.Errorf("S15: the last process has ended and not died, and its Lease is left: %+v; the machines said %q and %q", home.objects[lease], all[0].said, all[1].said)
		}
		home.remove(lease) // the plan owns it, and goes with it
	}
	unbroken(t, w)
}
