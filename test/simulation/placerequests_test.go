package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/clusters/clusterstest"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/runner"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// sortOf is what requests are counted by. away are those that were sent while an ordinal was on neither side.
type sortOf struct {
	kind, verb, of string
	away           bool
}

// tallied counts the requests of a process.
type tallied map[sortOf]int

// sum adds up the requests of some kinds.
func (n tallied) sum(counts func(sortOf) bool) (sum int) {
	for what, times := range n {
		if counts(what) {
			sum += times
		}
	}
	return sum
}

func (n tallied) reads() int {
	return n.sum(func(a sortOf) bool { return a.kind == "read" })
}

// writes are those that are stored, and those that are tried.
func (n tallied) writes() int {
	return n.sum(func(a sortOf) bool { return a.kind != "read" })
}

// more says what was sent more often than in another run.
func (n tallied) more(than tallied) string {
	var out []string
	for what, times := range n {
		if more := times - than[what]; more > 0 {
			out = append(out, fmt.Sprintf("%d %+v", more, what))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// counted is the client of a process whose requests are counted.
type counted struct {
	served
	n tallied
}

func (c counted) count(verb string, o any, dryRun []string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	kind := "write"
	switch {
	case verb == "get" || verb == "list":
		kind = "read"
	case len(dryRun) > 0:
		kind = "dry run"
	}
	c.n[sortOf{kind, verb, strings.TrimSuffix(clusters.KindOf(o), "List"), c.r.w.inFlight()}]++
}

func (c counted) Get(ctx context.Context, k client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	c.count("get", into, nil)
	return c.served.Get(ctx, k, into, opts...)
}

func (c counted) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	c.count("list", into, nil)
	return c.served.List(ctx, into, opts...)
}

func (c counted) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	c.count("create", o, (&client.CreateOptions{}).ApplyOptions(opts).DryRun)
	return c.served.Create(ctx, o, opts...)
}

func (c counted) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	c.count("update", o, (&client.UpdateOptions{}).ApplyOptions(opts).DryRun)
	return c.served.Update(ctx, o, opts...)
}

func (c counted) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	c.count("patch", o, (&client.PatchOptions{}).ApplyOptions(opts).DryRun)
	return c.served.Patch(ctx, o, p, opts...)
}

func (c counted) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	c.count("delete", o, (&client.DeleteOptions{}).ApplyOptions(opts).DryRun)
	return c.served.Delete(ctx, o, opts...)
}

// watched is a process that carries a plan out as a command does: with its checks, and with watches that tell it of
// everything at once.
type watched struct {
	*running
	lock *sync.Mutex // the process sends nothing while the world changes
	n    tallied
}

func watching(t *testing.T, w *world, direction plans.Direction) watched {
	t.Helper()
	lock, n, r, on := &sync.Mutex{}, tallied{}, w.process(), clusters.Clusters{}
	for side, c := range r.stores {
		on[side] = counted{served{c, lock, func() {}}, n}
	}
	e := engine.New(w.plan, records.NewStore(on[plans.Destination], green, planName), on)
	e.Gates.Prober = prober{r}
	runner.Checked(e, e.Recent.Clients(w.plan, on), time.Now)
	r.takingOver = true
	if err := e.Accept(t.Context(), plans.Command{Direction: direction}, nil); err != nil {
		t.Fatal(err)
	}
	r.takingOver = false
	w.fenced = max(w.fenced, r.epoch)
	wake := clusters.NewChangeSignal()
	wake.Recent = e.Recent
	e.Recent.Keep(time.Now, clusterstest.Covering{})
	for side, s := range w.on {
		s.watches = append(s.watches, func(k key, c clusters.Change) {
			wake.Notify(clusters.ObjectKey{Cluster: side, Kind: k.kind, Namespace: k.namespace, Name: k.name}, c)
		})
	}
	return watched{carriedBy(t, w, r, e, engine.Options{Wake: wake, StepTimeout: time.Hour}), lock, n}
}

// acts lets the world change.
func (p watched) acts(how func()) {
	p.lock.Lock()
	how()
	p.lock.Unlock()
	synctest.Wait()
}

// movedWithPlaces counts the requests of a move in which each place is ready after so many changes of the status of its
// placeholder, each of which takes so long.
func movedWithPlaces(t *testing.T, sc options, changes int, each time.Duration) (n tallied) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(sc)
		w.options.Placeless = true
		p := watching(t, w, plans.Move)
		n = p.n
		for range 1000 {
			p.acts(w.rest)
			p.awaitPlace(w, changes, each)
			if got, over := p.after(100 * time.Millisecond); over {
				if got.Outcome != plans.Moved || got.err != nil {
					t.Errorf("%+v", got)
				}
				unbroken(t, w)
				return
			}
		}
		t.Errorf("it never ends: %+v", p.last)
	})
	return n
}

// awaitPlace changes the status of a placeholder that has no node, and gives it one.
func (p watched) awaitPlace(w *world, changes int, each time.Duration) {
	waits := func() *corev1.Pod {
		all := w.placeholders(plans.Destination)
		if k := slices.IndexFunc(all, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil }); k >= 0 {
			return clone(all[k])
		}
		return nil
	}
	if waits() == nil {
		return
	}
	for k := range changes {
		if pod := waits(); pod != nil {
			pod.Status.Message = fmt.Sprintf("looked at %d nodes", k)
			p.acts(func() { w.on[plans.Destination].put(pod) })
		}
		p.after(each)
		p.acts(w.rest)
	}
	w.options.Placeless, w.quiet = false, -1
	p.acts(w.rest)
	w.options.Placeless = true
}

// While a place is waited for, everything is up. However often its placeholder changes meanwhile, that costs one read each
// time; what is asked and written before an ordinal leaves is asked and written once, when its place is there.
func TestRequestsDoNotGrowWithTheChangesOfAPlace(t *testing.T) {
	const minutes, few, many = 2 * time.Minute, 4, 60
	sc := placed(threeOrdinals(plans.Reimport), plans.Warm)
	calm, busy := movedWithPlaces(t, sc, few, minutes/few), movedWithPlaces(t, sc, many, minutes/many)
	if more := busy.writes() - calm.writes(); more > 0 {
		t.Errorf("%d more writes and dry runs with more changes:\n%s", more, busy.more(calm))
	}
	if more, changes := busy.reads()-calm.reads(), 3*(many-few); more > changes+60 { // what is kept for half a second does not fall on the same reads
		t.Errorf("%d more reads with %d more changes:\n%s", more, changes, busy.more(calm))
	}
}

// A place that is there when its ordinal may leave costs little: the placeholder and its anchor, and no budget is opened for them.
func TestAPlaceThatIsThereCostsFewRequests(t *testing.T) {
	without, with := movedWithPlaces(t, placed(threeOrdinals(plans.Reimport), ""), 0, 0), movedWithPlaces(t, placed(threeOrdinals(plans.Reimport), plans.Warm), 2, 500*time.Millisecond)
	stored := func(a sortOf) bool { return a.kind == "write" }
	t.Logf("for three ordinals, with and without places: %d and %d reads, %d and %d writes, %d and %d with dry runs", with.reads(), without.reads(),
		with.sum(stored), without.sum(stored), with.writes(), without.writes())
	if more := with.sum(stored) - without.sum(stored); more > 3*5 {
		t.Errorf("%d more writes for three ordinals:\n%s", more, with.more(without))
	}
	down := func(a sortOf) bool { return a.away }
	t.Logf("while an ordinal is down: %d and %d", with.sum(down), without.sum(down))
	if more := with.sum(down) - without.sum(down); more > 3*6 {
		t.Errorf("%d more requests for three ordinals while they are down:\n%s", more, with.more(without))
	}
}
