package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// The next command does not depend on which process keeps the names, only on whether a
// process carries the plan.
func TestTheStatusSaysWhatComesNext(t *testing.T) {
	const finalize, resume = "finalize cleans up the source; until then abort rolls back", "resume or abort"
	const goesOn, keep = "the orchestrator continues it", "a pod that restarts is not found at its new address unless this runs: names -w"
	for name, c := range map[string]struct {
		holder             string
		change             func(*journal.Journal)
		declare            func(*plans.Declaration)
		state, next, names string
	}{
		"arrived":                          {"", func(j *journal.Journal) { j.Outcome = plans.Moved }, nil, "Moved", finalize, keep},
		"arrived, names kept by a command": {"me", func(j *journal.Journal) { j.Outcome = plans.Moved }, nil, "Moved", finalize, ""},
		"arrived, kept by an orchestrator": {"orch", func(j *journal.Journal) { j.Detached, j.Outcome = true, plans.Moved }, nil, "Moved", finalize, ""},
		"arrived, and one is about to":     {"", func(j *journal.Journal) { j.Detached, j.Outcome = true, plans.Moved }, nil, "Moved", finalize, ""},
		"to be finalized by one": {"orch", func(j *journal.Journal) {
			j.Detached, j.Outcome = true, plans.Moved
		}, func(d *plans.Declaration) { d.Direction = plans.Finalize }, "Moved", "", ""},
		"blocked, and asked to go on":              {"", func(j *journal.Journal) { j.Detached, j.Blocked = true, "why" }, func(d *plans.Declaration) { d.Request = &plans.Request{ID: "1", Resume: true} }, "Blocked", goesOn, ""},
		"blocked, and that was heard":              {"", func(j *journal.Journal) { j.Detached, j.Blocked, j.Observed.Request = true, "why", "1" }, func(d *plans.Declaration) { d.Request = &plans.Request{ID: "1", Resume: true} }, "Blocked", resume, ""},
		"paused, kept by an orchestrator":          {"orch", func(j *journal.Journal) { j.Detached, j.Paused = true, true }, nil, "Paused", resume, ""},
		"blocked, kept by an orchestrator":         {"orch", func(j *journal.Journal) { j.Detached, j.Blocked = true, "why" }, nil, "Blocked", resume, ""},
		"under way by a command":                   {"me", func(*journal.Journal) {}, nil, "Moving", "", ""},
		"under way by an orchestrator":             {"orch", func(j *journal.Journal) { j.Detached = true }, nil, "Moving", "", ""},
		"between two orchestrators":                {"", func(j *journal.Journal) { j.Detached = true }, nil, "Waiting", goesOn, ""},
		"stopped":                                  {"", func(*journal.Journal) {}, nil, "Stopped", resume, keep},
		"finalized":                                {"", func(j *journal.Journal) { j.Outcome = plans.Finalized }, nil, "Finalized", "", ""},
		"finalized, and names are kept for longer": {"", func(j *journal.Journal) { j.Outcome, j.KeepNames = plans.Finalized, true }, nil, "Finalized", "", keep},
	} {
		p := &plans.Plan{Count: 3, Window: 1, Names: plans.Names{Mode: plans.Bridge, Service: "web"}}
		j := journal.New(p)
		j.Epoch, j.Observed.Direction = 1, plans.Move
		c.change(j)
		v, d := &View{Holder: c.holder}, p.Declared()
		if c.declare != nil {
			c.declare(&d)
		}
		asked := requests.Requested{Work: !j.Idle(p)}
		if j.Detached {
			asked = requests.Read(p, j, &d)
		}
		v.describe(p, j, asked, func(verb string) string { return verb })
		if alone := strings.Contains(c.next, "the orchestrator continues it") || name == "arrived, and one is about to" || name == "blocked, and that was heard"; v.Unattended != alone {
			t.Errorf("%s: unattended is %t", name, v.Unattended)
		}
		if string(v.State) != c.state || v.Next != c.next || v.Names != c.names {
			t.Errorf("%s: %s, next %q, names %q; expected %s, %q, %q", name, v.State, v.Next, v.Names, c.state, c.next, c.names)
		}
		for _, next := range v.Commands {
			if !strings.Contains(c.next, next.Command) || next.Why == "" {
				t.Errorf("%s: the command %+v is not in %q", name, next, c.next)
			}
		}
		if typed := c.next != "" && c.next != goesOn; typed != (len(v.Commands) > 0) {
			t.Errorf("%s: %d commands for %q", name, len(v.Commands), c.next)
		}
	}
}

// A process that comes to the end of a plan during a Status does not look like a process that has died.
func TestTheEndOfAPlanIsNotSeenAsAStop(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	clock, p := func() time.Time { return noon }, planstest.Named(t, "abc")
	home := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	store := records.NewStore(home, "mall", "web")
	j := journal.New(p)
	j.Epoch = 1
	if err := store.Create(t.Context(), p, j); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Acquire(t.Context(), "other", func(string) bool { return false }, clock); err != nil {
		t.Fatal(err)
	}
	looks := 0
	ends := interceptor.NewClient(home, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		err := c.Get(ctx, key, o, opts...)
		if looks++; looks == 1 {
			if err := store.Change(ctx, p, func(j *journal.Journal) error { j.Outcome = plans.Moved; return nil }); err != nil {
				t.Error(err)
			}
			if err := c.Delete(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: records.LeaseName("web")}}); err != nil {
				t.Error(err)
			}
		}
		return err
	}})
	v, err := Status(t.Context(), p, records.NewStore(ends, "mall", "web"), clusters.Clusters{}, map[plans.Side]error{plans.Source: context.Canceled, plans.Destination: context.Canceled}, clock, func(verb string) string { return verb })
	if err != nil || v.State != plans.StateMoved {
		t.Errorf("%+v, %v", v, err)
	}
}
