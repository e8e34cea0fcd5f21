package orchestrator

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

var errDead = errors.New("the process is dead")

// mortal returns a client of a process that dies at write number at, before or after the write takes
// effect, and the count of writes.
func mortal(c client.Client, at int, after bool) (mortal client.Client, written *int) {
	written = new(int)
	dies := func(write func() error) error {
		*written++
		switch {
		case *written < at, *written == at && after:
			if err := write(); err != nil || *written < at {
				return err
			}
		}
		return errDead
	}
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return dies(func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return dies(func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return dies(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return dies(func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return dies(func() error { return c.SubResource(sub).Apply(ctx, o, opts...) })
		},
	}), written
}

// life does everything that a process does about a plan until nothing is left to take over, except the
// moves.
func life(t *testing.T, h *Orchestrator, p *plans.Plan) error {
	t.Helper()
	h.ending = true // runs are not part of this test
	for range 2 {   // the journal that the first pass creates requeues the plan
		if _, err := h.Reconcile(t.Context(), request()); err != nil {
			return err
		}
	}
	store := records.NewStore(h.Live, h.Namespace, p.Name)
	j, _, err := store.Journal(t.Context(), p)
	if err != nil {
		return err
	}
	d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
	if err != nil {
		return err
	}
	if what, asked := actionFor(p, j, h.said(j, d)); what == carry {
		if err := h.guard(t.Context(), p); err != nil {
			return err
		}
		none := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
		r := &run{orchestrator: h, plan: p, what: carry, command: asked.Command}
		if err := engine.New(p, store, clusters.Clusters{plans.Source: none, plans.Destination: none}).Accept(t.Context(), r.command, r.still); err != nil {
			return err
		}
	}
	_, err = h.Reconcile(t.Context(), request())
	return err
}

// Wherever a process dies between two writes, the next process carries the request out, and only once.
func TestADeathDoublesNoRequest(t *testing.T) {
	ask := func(a plans.Request) func(*plans.Declaration) { return func(d *plans.Declaration) { d.Request = &a } }
	underWay := func(j *journal.Journal) { j.Epoch, j.Done, j.Begun = 2, 1, 1 }
	held := func(j *journal.Journal) { underWay(j); j.Blocked = "volume a is in use" }
	for name, c := range map[string]wishing{
		"a plan is approved": {nil, func(*plans.Declaration) {}, func(j *journal.Journal) bool { return j.Detached && j.Epoch > 0 && j.Blocked == "" }, held},
		"a plan is approved, and rests": {
			nil, func(d *plans.Declaration) { d.Paused = true },
			func(j *journal.Journal) bool { return j.Paused && j.Epoch == 0 }, func(*journal.Journal) {},
		},
		"a blocked plan goes on": {held, ask(plans.Request{ID: "1", Resume: true}), func(j *journal.Journal) bool { return j.Blocked == "" }, held},
		"a plan turns round, with a word": {held, func(d *plans.Declaration) {
			d.Direction, d.Request = plans.Abort, &plans.Request{ID: "1", MaxUnavailable: 2}
		}, func(j *journal.Journal) bool {
			return j.Leg.Direction == plans.Abort && j.Assurances.MaxUnavailable == 2 && j.Blocked == ""
		}, func(j *journal.Journal) { j.Assurances.MaxUnavailable, j.Blocked = 0, "a node is gone" }},
		"a plan rests": {underWay, func(d *plans.Declaration) { d.Paused = true }, func(j *journal.Journal) bool { return j.Paused }, func(*journal.Journal) {}},
		"it goes a part of the way": {
			underWay, ask(plans.Request{ID: "1", PauseAfter: 1}), func(j *journal.Journal) bool { return j.PauseAt == 2 },
			func(j *journal.Journal) { j.Paused, j.PauseAt, j.Resting = true, 0, true },
		},
		"what means nothing is answered": {underWay, ask(plans.Request{ID: "1", NodeGone: "n"}), func(j *journal.Journal) bool { return j.Observed.Refused != "" && j.Observed.Request == "1" }, held},
	} {
		t.Run(name, func(t *testing.T) {
			deaths := 0
			for at := 1; ; at++ {
				alive := true
				for _, after := range []bool{false, true} {
					alive = c.dies(t, at, after) && alive
				}
				if alive {
					break
				}
				deaths++
			}
			if deaths < 1 {
				t.Error("nothing was ever written")
			}
		})
	}
}

// wishing is a request, and the plan that it is for.
type wishing struct {
	before  func(*journal.Journal) // nil for no journal
	declare func(*plans.Declaration)
	done    func(*journal.Journal) bool
	// meanwhile changes the plan after the request was carried out: the request must not apply again.
	meanwhile func(*journal.Journal)
}

// dies lets a process die at a write, before or after it, and reports whether the process ended before
// that write.
func (c wishing) dies(t *testing.T, at int, after bool) bool {
	t.Helper()
	h, p := fixture(t)
	store := records.NewStore(h.Live, h.Namespace, p.Name)
	change := func(f func(*journal.Journal)) {
		if err := store.Change(t.Context(), p, func(j *journal.Journal) error { f(j); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if c.before == nil {
		if err := h.Live.Delete(t.Context(), journalOf(p)); err != nil {
			t.Fatal(err)
		}
	} else {
		change(c.before)
	}
	declare(t, h.Live, p, c.declare)
	live := h.Live
	var written *int
	h.Live, written = mortal(live, at, after)
	_ = life(t, h, p)
	alive := *written < at
	next, _ := fixture(t)
	next.Live, next.Cached = live, watched(live.(client.WithWatch))
	if err := life(t, next, p); err != nil {
		t.Fatalf("death at write %d (after it: %t): %v", at, after, err)
	}
	j, _, err := store.Journal(t.Context(), p)
	if err != nil || !c.done(j) {
		t.Fatalf("death at write %d (after it: %t): the wish is lost: %+v, %v", at, after, j, err)
	}
	change(c.meanwhile)
	want, _, err := store.Journal(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if err := life(t, next, p); err != nil {
		t.Fatal(err)
	}
	got, _, err := store.Journal(t.Context(), p)
	want.Epoch = got.Epoch // every process that carries the plan out raises the epoch
	if err != nil || !equality.Semantic.DeepEqual(got, want) {
		t.Fatalf("death at write %d (after it: %t): it was done twice: %+v, %v\nwas %+v", at, after, got, err, want)
	}
	return alive
}

func journalOf(p *plans.Plan) client.Object {
	return &corev1.ConfigMap{ObjectMeta: named("stsmigrate", records.RecordName(p.Name)+"-journal")}
}
