package move_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/discovery"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// ownBed starts two clusters for a test that breaks them.
func ownBed(t *testing.T) *cluster.Bed {
	t.Helper()
	own, err := cluster.StartBed(t.Context(), "", cluster.Options{PodStart: podStart, PodStop: podStop, DetachDelay: detachDelay})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return own
}

// Both control planes become those of the next minor version, one after the other, while the move goes on.
func TestTheControlPlanesAreUpgradedInMidMove(t *testing.T) {
	if os.Getenv("UPGRADE") == "" {
		t.Skip("UPGRADE=1 (make faults) builds the control plane of the next Kubernetes version, which takes minutes")
	}
	t.Parallel()
	bin, err := cluster.BuildFor(t.Context(), "1.37", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
	if err != nil {
		t.Fatal(err)
	}
	s := newMigration(t, reimport, options{replicas: 4, bed: ownBed(t)})
	before := s.state(s.source)
	s.planned()
	p := start(t, s.applyArgs()...)
	for _, at := range []struct {
		step string
		on   *end
	}{{"web-3 Release", s.source}, {"web-1 Shrink", s.destination}} {
		p.until(at.step)
		from := s.version(at.on)
		stop, err := at.on.cluster.Upgrade(bin)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		s.eventually("the control plane answers", func(ctx context.Context) bool { return at.on.cluster.Ping(ctx) == nil })
		if to := s.version(at.on); to == from {
			t.Errorf("the API server of %s has the version %s as before", at.on.cluster.Name, to)
		}
	}
	p.end().expect(t, done, "moved: 4 ordinals")
	s.arrived(before)
	before.Set.UpdateStrategy = s.state(s.source).Set.UpdateStrategy // a newer API server shows another default
	run(t, s.args("finalize")...).expect(t, done)
	s.settled(before)
}

// version returns the version of the API server of a side.
func (s *migration) version(on *end) string {
	s.t.Helper()
	api, err := discovery.NewDiscoveryClientForConfig(on.cluster.Config())
	if err != nil {
		s.t.Fatal(err)
	}
	v, err := api.ServerVersion()
	if err != nil {
		s.t.Fatal(err)
	}
	return v.GitVersion
}

// One side is restored from a backup that was made some waves ago. What has happened since then has happened on the
// other side only, so the rules cannot hold any more: the plan is blocked, whatever is tried, verify names what
// differs, and no disk is destroyed.
func TestABackupThatIsRestoredBlocksThePlan(t *testing.T) {
	t.Parallel()
	for n, c := range []struct {
		side   string
		alive  bool
		whys   []string // why the plan is blocked, by how far the process had come
		differ []string // what verify says
	}{
		{"source", true, []string{"has ordinal 1 in its range again", "has the ordinals [0..2]"}, []string{"S7", "S1    pod web-2"}},
		{"source", false, []string{"has the ordinals [0..2]"}, []string{"S7", "S1    pod web-2"}},
		{"destination", true, []string{"is older than what has been done"}, []string{"S10", "S7"}},
		{"destination", false, []string{"is older than what has been done"}, []string{"S10", "S7"}},
	} {
		if os.Getenv("MOVE_ALL") == "" && n != day%4 {
			continue // another one every day: each has two clusters of its own
		}
		name := c.side + " between two processes"
		if c.alive {
			name = c.side + " under a process"
		}
		t.Run(name, func(t *testing.T) {
			s := newMigration(t, reimport, options{replicas: 4, bed: ownBed(t)})
			before := s.state(s.source)
			s.planned()
			s.restored(map[string]*end{"source": s.source, "destination": s.destination}[c.side], c.alive, c.whys)
			budgets := s.budgets()
			for _, args := range [][]string{s.args("resume"), s.applyArgs()} {
				blockedFor(t, run(t, args...), c.whys)
			}
			same(t, "budgets", budgets, s.budgets())
			run(t, s.args("verify")...).expect(t, blocked, c.differ...)
			if r := run(t, s.args("abort")...); r.code != held {
				t.Errorf("abort ended with %d: %s", r.code, r.stderr)
			}
			destroyed, err := s.bed.Backend.Destroyed()
			if err != nil {
				t.Fatal(err)
			}
			for claim, handle := range before.handles() {
				if slices.Contains(destroyed, handle) {
					t.Errorf("the data of claim %s (disk %s) is destroyed", claim, handle)
				}
			}
		})
	}
}

// blockedFor requires that a command has ended with a blocked plan, for one of the reasons.
func blockedFor(t *testing.T, r result, whys []string) {
	t.Helper()
	r.expect(t, held)
	if !slices.ContainsFunc(whys, func(why string) bool { return strings.Contains(r.stdout+r.stderr, why) }) {
		t.Errorf("expected one of %q in\n%s%s", whys, r.stdout, r.stderr)
	}
}

// restored brings the cluster of a side back to what it was two waves ago: while the process is at work, or between
// two processes.
func (s *migration) restored(on *end, alive bool, whys []string) {
	s.t.Helper()
	// Nothing moves while the backup is made, so that it always shows the same wave.
	run(s.t, append(s.applyArgs(), "--pause-after", "1")...).expect(s.t, done, "paused")
	back, err := on.cluster.Checkpoint()
	if err != nil {
		s.t.Fatal(err)
	}
	args := s.args("resume")
	if !alive {
		args = append(args, "--pause-after", "2")
	}
	p := start(s.t, args...)
	p.until("web-1 Grow")
	if !alive {
		p.end().expect(s.t, done, "paused")
	}
	stop, err := back()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(stop)
	s.eventually("the control plane answers", func(ctx context.Context) bool { return on.cluster.Ping(ctx) == nil })
	if alive {
		blockedFor(s.t, p.end(), whys)
	}
	s.eventually("the Lease can be written", func(ctx context.Context) bool { return s.silenced(ctx) == nil })
}

// budgets returns the specs of the PodDisruptionBudgets of both sides.
func (s *migration) budgets() (out []policyv1.PodDisruptionBudgetSpec) {
	s.t.Helper()
	for _, on := range []*end{s.source, s.destination} {
		var all policyv1.PodDisruptionBudgetList
		s.list(on, &all)
		for _, b := range all.Items {
			out = append(out, b.Spec)
		}
	}
	return out
}
