package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dashboard"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/orchestrator/fleet"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// house is an API server with plans, and the replicas that share them. Its clock is that of the bubble. Journals, Leases
// and Reconcile are real; what a run does in the clusters takes time and nothing else.
type house struct {
	// started are the replicas of all times, and workers what reconciles in them.
	started  []*replica
	workers  sync.WaitGroup
	t        *testing.T
	client   client.WithWatch
	plans    map[string]*plans.Plan
	replicas int
	lock     sync.Mutex
	// hangs has the clusters that do not answer, and since when.
	hangs map[types.UID]time.Time
	// left is when the ordinals of a plan left that are on neither side, and longest how long some were there.
	left    map[string]time.Time
	longest time.Duration
	over    map[string]bool
	ended   chan struct{} // has a value after each plan that has ended
}

func newHouse(t *testing.T) *house {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithStatusSubresource(records.NewDeclared("", "")).Build()
	return &house{t: t, client: c, plans: map[string]*plans.Plan{}, hangs: map[types.UID]time.Time{}, left: map[string]time.Time{}, over: map[string]bool{}, ended: make(chan struct{}, 1000)}
}

// add hands a plan over that has not begun.
func (b *house) add(name string, from, to types.UID) {
	b.t.Helper()
	p := plan(b.t)
	p.Name, p.ID, p.Hash = name, name+"-id", ""
	p.Source.Cluster, p.Destination.Cluster = from, to
	p.Source.Context, p.Destination.Context = string(from), string(to)
	var err error
	if p.Hash, err = plans.Fingerprinted(p); err != nil {
		b.t.Fatal(err)
	}
	j := journal.New(p)
	j.Detached, j.Observed.Direction = true, plans.Move
	if err := records.NewStore(b.client, "stsmigrate", name).Create(b.t.Context(), p, j); err != nil {
		b.t.Fatal(err)
	}
	declare(b.t, b.client, p, func(*plans.Declaration) {})
	b.plans[name] = p
}

// silence is what a process knows of a cluster: that it hangs, a while after it has begun to.
func (b *house) silence(of plans.Ref) error {
	b.lock.Lock()
	defer b.lock.Unlock()
	if since, hangs := b.hangs[of.Cluster]; hangs && time.Since(since) >= 15*time.Second {
		return fmt.Errorf("cluster %s does not answer", of.Cluster)
	}
	return nil
}

func (b *house) answers(p *plans.Plan) bool {
	b.lock.Lock()
	defer b.lock.Unlock()
	_, from := b.hangs[p.Source.Cluster]
	_, to := b.hangs[p.Destination.Cluster]
	return !from && !to
}

// replica is a process.
type replica struct {
	*Orchestrator
	house *house
	queue workqueue.TypedDelayingInterface[string]
	kill  context.CancelFunc
	alive context.Context //nolint:containedctx // it is the life of the process
}

// start begins a process with room for so many plans.
func (b *house) start(room int) *replica {
	b.t.Helper()
	g, err := newGauges(prometheus.NewRegistry())
	if err != nil {
		b.t.Fatal(err)
	}
	b.replicas++
	h := New(Setup{
		Board: dashboard.NewBoard(), gauges: g, Live: b.client, Cached: b.client, Namespace: "stsmigrate", MaxPlans: room,
		Holder: fmt.Sprintf("process-%d", b.replicas), Dead: func(string) bool { return false },
		Fleet: fleet.New(fleet.Setup{Home: &rest.Config{Host: "https://127.0.0.1:1"}, Own: "own"}),
		Now:   time.Now, StepTimeout: time.Minute, Events: &record.FakeRecorder{}, //nolint:forbidigo // the clock of the bubble
	})
	h.reached = b.silence
	r := &replica{Orchestrator: h, house: b, queue: workqueue.NewTypedDelayingQueue[string]()}
	r.alive, r.kill = context.WithCancel(b.t.Context())
	h.act = r.moves
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &coordinationv1.LeaseList{}} {
		r.watches(list)
	}
	for name := range b.plans {
		r.queue.Add(name)
	}
	go r.hears()
	for range 4 {
		b.workers.Go(r.works)
	}
	b.started = append(b.started, r)
	context.AfterFunc(r.alive, r.queue.ShutDown)
	return r
}

func (r *replica) watches(list client.ObjectList) {
	w, err := r.house.client.Watch(r.alive, list, client.InNamespace("stsmigrate"))
	if err != nil {
		r.house.t.Fatal(err)
	}
	go func() {
		defer w.Stop()
		for {
			select {
			case e := <-w.ResultChan():
				if o, is := e.Object.(client.Object); is && o.GetLabels()[plans.PlanLabel] != "" {
					r.queue.Add(o.GetLabels()[plans.PlanLabel])
				}
			case <-r.alive.Done():
				return
			}
		}
	}()
}

// hears passes on what the process itself wakes.
func (r *replica) hears() {
	for {
		select {
		case e := <-r.news:
			r.queue.Add(e.Object.GetLabels()[plans.PlanLabel])
		case <-r.alive.Done():
			return
		}
	}
}

func (r *replica) works() {
	for {
		name, ends := r.queue.Get()
		if ends {
			return
		}
		again, err := r.Reconcile(r.alive, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "stsmigrate", Name: name}})
		if err != nil {
			again.RequeueAfter = time.Second
		}
		if again.RequeueAfter > 0 {
			r.queue.AddAfter(name, again.RequeueAfter)
		}
		r.queue.Done(name)
		r.counts()
	}
}

// counts fails the test if the process has more plans under way than it has room for.
func (r *replica) counts() {
	r.lock.Lock()
	defer r.lock.Unlock()
	if n := len(r.running()); n > r.MaxPlans {
		r.house.t.Errorf("%s has %d plans under way, and room for %d", r.Holder, n, r.MaxPlans)
	}
}

// moving reports whether ordinals of a plan between clusters that answer are on neither side, in a run of the process.
func (r *replica) moving() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, of := range r.running() {
		if of.flies.Load() && r.house.answers(of.plan) {
			return true
		}
	}
	return false
}

const (
	checksTake = 10 * time.Second
	stepTakes  = 200 * time.Millisecond
)

var errKilled = errors.New("the process is killed")

// pause waits as a run does, and returns how it ends if it does.
func (r *replica) pause(of *run, long time.Duration) error {
	select {
	case <-r.alive.Done():
		return errKilled
	case <-of.stop:
		return engine.ErrStopped
	case <-time.After(long):
		return nil
	}
}

// moves stands for run.do: it checks, takes the Lease, and does one step after the other.
func (r *replica) moves(ctx context.Context, of *run) error {
	if of.fresh {
		if err := r.pause(of, checksTake); err != nil {
			return err
		}
		of.turns(&of.passed, true)
	}
	l, err := of.store().Acquire(ctx, r.Holder, r.dead(ctx, of.plan.Name), r.Now)
	if err != nil {
		return err
	}
	living, stop := context.WithCancel(r.alive)
	defer stop()
	go l.Keep(living)
	for err == nil {
		err = r.step(ctx, of)
	}
	if !errors.Is(err, errKilled) {
		_ = l.Release(ctx, errors.Is(err, errOver))
	}
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

var errOver = errors.New("the plan has ended")

// step does one step, as soon as both clusters answer.
func (r *replica) step(ctx context.Context, of *run) error {
	if err := r.pause(of, stepTakes); err != nil {
		return err
	}
	if !of.flies.Load() {
		select {
		case <-of.finish:
			return engine.ErrStopped
		default:
		}
	}
	if !r.house.answers(of.plan) {
		return nil
	}
	var now *journal.Journal
	err := of.store().Change(ctx, of.plan, func(j *journal.Journal) error {
		now = j
		j.Epoch = max(j.Epoch, 1)
		s, began, more := j.Next(of.plan)
		if began {
			j.Done = s.Seq
			s, _, more = j.Next(of.plan)
		}
		if !more {
			j.StartLeg(of.plan, plans.Finalize)
			at := metav1.NewTime(r.Now())
			j.Outcome, j.EndedAt = plans.Finalized, &at
			return nil
		}
		u := plans.Undo{}
		if s.Moves() {
			u.Flight = &plans.Flight{Ordinals: s.Ordinals, From: plans.Source}
		}
		j.Begin(of.plan, s, u)
		return nil
	})
	if err != nil {
		return err
	}
	down := now.Down(of.plan)
	of.turns(&of.flies, down)
	return r.house.notes(of.plan.Name, down, now.Over())
}

// notes measures how long ordinals are on neither side.
func (b *house) notes(name string, down, over bool) error {
	b.lock.Lock()
	defer b.lock.Unlock()
	since, was := b.left[name]
	switch {
	case down && !was:
		b.left[name] = time.Now() //nolint:forbidigo // the clock of the bubble
	case !down && was:
		delete(b.left, name)
		if name[0] != 'h' { // what a hung cluster holds up takes as long as it hangs
			b.longest = max(b.longest, time.Since(since))
		}
	}
	if over {
		if !b.over[name] {
			b.ended <- struct{}{}
		}
		b.over[name] = true
		return errOver
	}
	return nil
}

// hang has a cluster hang, or answer again, and tells the processes when they would know.
func (b *house) hang(cluster types.UID, hangs bool, all []*replica) {
	b.lock.Lock()
	delete(b.hangs, cluster)
	if hangs {
		b.hangs[cluster] = time.Now() //nolint:forbidigo // the clock of the bubble
	}
	b.lock.Unlock()
	for _, r := range all {
		time.AfterFunc(15*time.Second, r.again)
	}
}

// waitFor returns when so many plans have ended, or after a time.
func (b *house) waitFor(n int, within time.Duration) {
	b.t.Helper()
	late := time.After(within)
	for range n {
		select {
		case <-b.ended:
		case <-late:
			b.t.Errorf("after %s %d of %d plans have ended", within, len(b.over), n)
			return
		}
	}
}

// Three replicas have room for ten of forty plans. The cluster of half of them hangs, before and while they move, and
// replicas are killed: of the others no ordinal is on neither side for longer than a takeover and its wave take, and they
// end as if there were no other plans.
func TestOrdinalsOnNeitherSideHaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHouse(t)
		for k := range 20 {
			b.add(fmt.Sprintf("h%02d", k), "east", "hung")
			b.add(fmt.Sprintf("p%02d", k), "east", "west")
		}
		rooms := []int{4, 3, 3}
		var all []*replica
		for _, n := range rooms {
			all = append(all, b.start(n))
		}
		<-time.After(25 * time.Second) // the first of both move
		b.hang("hung", true, all)
		stop := make(chan struct{})
		var kills sync.WaitGroup
		kills.Go(func() {
			for k := 0; ; k = (k + 1) % 3 {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Second):
				}
				for !all[k].moving() { // it dies when that does the most harm
					select {
					case <-stop:
						return
					case <-time.After(stepTakes):
					}
				}
				all[k].kill()
				all[k] = b.start(rooms[k])
			}
		})
		b.waitFor(20, 20*time.Minute)
		close(stop)
		kills.Wait()
		b.lock.Lock()
		longest, left := b.longest, len(b.over)
		b.lock.Unlock()
		if longest > 30*time.Second || longest < 10*time.Second {
			t.Errorf("ordinals were on neither side for up to %s, expected at most 30 s, and a takeover at least; %d plans have ended", longest, left)
		}
		b.hang("hung", false, all)
		b.waitFor(20, 20*time.Minute)
		for _, r := range b.started {
			r.kill()
			r.all.Wait()
		}
		b.workers.Wait() // no time passes after this
	})
}
