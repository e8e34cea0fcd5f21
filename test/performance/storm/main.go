// Command storm lets three orchestrators move many sets between two clusters at once. Meanwhile they are
// killed or suspended at random, the credentials of one cluster are replaced, and the API server of the
// destination is away for a minute. Command storm prints the cost, and fails unless every plan completes, no
// witness has seen a violation, and nothing is left behind. One more plan cannot begin, and is aborted. The
// plans of a hostile tenant must have no effect; with -open, only the orchestrators reject them. Each orchestrator runs in a
// cgroup with the memory limit of the chart, beside a tenant and a cluster that try to fill it, and none may end by itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/orchestrator"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
	"github.com/stsmigrate/stsmigrate/test/internal/witness"
)

// options are the command-line flags.
type options struct {
	plans, pods, processes int
	watched                int     // plans with a witness
	qps                    float64 // of an orchestrator, to one cluster
	waves                  int     // of an orchestrator, in one cluster
	memory                 int64   // limit of the container of an orchestrator, in MiB
	every, outage          time.Duration
	nap                    time.Duration // for how long one of them is suspended, in place of every third that is killed
	// renew and fail are the times, after the start, at which the credentials end and the API server is
	// killed.
	renew, fail time.Duration
	seed        uint64
	// open leaves the home without policies, so that the orchestrators read the journals that a tenant has
	// forged.
	open bool
	// audit prints what the orchestrators have requested, by resource, and what all programs have, while the plans moved.
	audit bool
	// terms measures what plans, ordinals and plans at rest cost, in place of a storm.
	terms bool
	// nodes, foreign and resting are what the clusters have beside the plans of a storm: nodes beside three, volumes and
	// attachments of others in each, and plans that have moved. events is how often volumes of others change at the end.
	nodes, foreign, resting, events int
	// quiet is how long nothing is asked of the orchestrators, so that their requests are those of plans at rest.
	quiet time.Duration
	// cgroup puts each orchestrator into a cgroup with its memory limit.
	cgroup bool
	// bombs is how many ConfigMaps of each sort a tenant writes that become large in memory, and floods adds a cluster whose
	// answers have no end.
	bombs  int
	floods bool
}

func main() {
	var o options
	flag.IntVar(&o.plans, "plans", 50, "how many sets are moved at once")
	flag.IntVar(&o.pods, "pods", 3, "how many pods each has")
	flag.IntVar(&o.processes, "processes", 3, "how many orchestrators there are")
	flag.IntVar(&o.watched, "witnesses", 50, "how many of the sets have a witness at most")
	flag.Float64Var(&o.qps, "cluster-qps", 50, "as for the orchestrator")
	flag.IntVar(&o.waves, "cluster-waves", 16, "as for the orchestrator")
	flag.Int64Var(&o.memory, "memory", 512, "the memory limit of an orchestrator's container, in MiB, which decides how many plans it takes")
	flag.DurationVar(&o.every, "kill", 20*time.Second, "how often one of them is killed, on average; 0 for never")
	flag.DurationVar(&o.nap, "nap", 40*time.Second, "for how long one of them is suspended, in place of every third that is killed; 0 for never")
	flag.DurationVar(&o.outage, "outage", time.Minute, "for how long the destination's API server is away; 0 for not at all")
	flag.DurationVar(&o.renew, "renew", 10*time.Second, "when the credentials for the destination are replaced; 0 for never")
	flag.DurationVar(&o.fail, "fail", 30*time.Second, "when the destination's API server is killed")
	flag.Uint64Var(&o.seed, "seed", 1, "what decides who is killed when")
	flag.BoolVar(&o.open, "open", false, "leave the policies out in the cluster of the orchestrators: a tenant can forge journals, and nobody but the orchestrators refuses them")
	flag.BoolVar(&o.audit, "audit", false, "print what was requested, by resource and by program, as the audit logs of both API servers say")
	flag.BoolVar(&o.terms, "terms", false, "measure in place of a storm: move -plans of -pods pods and as many of one pod, and print what a plan, an ordinal, and a plan at rest cost")
	flag.IntVar(&o.nodes, "nodes", 0, "how many nodes each cluster has beside three, with -terms")
	flag.IntVar(&o.foreign, "volumes", 0, "how many volumes and attachments of others each cluster has, with -terms")
	flag.IntVar(&o.resting, "resting", 0, "how many plans have moved and are at rest, with -terms")
	flag.IntVar(&o.events, "events", 0, "how often volumes of others change at the end, with -terms")
	flag.DurationVar(&o.quiet, "quiet", 2*time.Minute, "for how long nothing is asked of the orchestrators, with -terms")
	flag.BoolVar(&o.cgroup, "cgroup", true, "run each orchestrator in a cgroup with its memory limit, which needs root")
	flag.IntVar(&o.bombs, "bombs", 100, "how many ConfigMaps of each of three sorts, of 1 MiB, a tenant writes that would fill the memory; 0 for none, and for no other bombs of it")
	flag.BoolVar(&o.floods, "floods", true, "add a cluster whose answers have no end")
	flag.Parse()
	fixture.Main("storm", func(ctx context.Context) error { return run(ctx, o) })
}

// storm is one run.
type storm struct {
	options
	dir        string
	bed        *cluster.Bed
	kubeconfig string // of a user, for both clusters
	stsmigrate string
	kubectl    string
	tokens     []string // all tokens that the orchestrators have had
	east, west client.WithWatch
	replicas   *replicas
	server     func() // ends the API server that was started again
	unlie      func() // ends the fake API server
	// lied records that the orchestrators have queried the fake server, and strayed that they followed its
	// redirect.
	lied, strayed atomic.Bool
	// flooded is how often the cluster was asked whose answers have no end, and uncaged says why there are no cgroups.
	flooded  atomic.Int64
	uncaged  string
	before   map[string]string            // the objects of the victim
	cores    string                       // who used this machine while the plans moved
	span     struct{ from, to time.Time } // in which they moved
	began    time.Time
	saying   sync.Mutex
	agreeing sync.Mutex
}

func (s *storm) say(format string, args ...any) {
	fmt.Printf("%7.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

func run(ctx context.Context, o options) (err error) {
	quiet := zapr.NewLogger(zap.NewNop()) // of watches that end with their API server
	log.SetLogger(quiet)
	klog.SetLogger(quiet)
	if rooms := o.processes * orchestrator.Unreserved(orchestrator.PlansWithin(o.memory<<20*4/5)); rooms < o.plans+1 { // and the one that is held
		return fmt.Errorf("%d plans at once, and one that is held: %d orchestrators with %d MiB have room for %d until plans are finalized; raise -memory or -processes", o.plans, o.processes, o.memory, rooms)
	}
	s := &storm{options: o, began: time.Now()}
	if s.dir, err = os.MkdirTemp("", "stsmigrate-storm-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if err := s.build(ctx); err != nil {
		return err
	}
	s.say("starting two clusters, east and west")
	s.bed, err = cluster.StartBed(ctx, filepath.Join(s.dir, "bed"), o.cluster())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.bed.Stop(context.WithoutCancel(ctx))) }()
	if err := s.connect(); err != nil {
		return err
	}
	s.say("installing the orchestrator in east, and %d sets of %d", s.plans, s.pods)
	if err := s.install(ctx); err != nil {
		return err
	}
	if s.terms {
		return s.measure(ctx)
	}
	all, err := s.sets(ctx, "", s.plans, s.pods)
	if err != nil {
		return err
	}
	if err := errors.Join(s.deceive(ctx), s.attack(ctx), s.explode(ctx), s.flood(ctx)); err != nil {
		return err
	}
	defer func() {
		s.replicas.stop()
		if s.server != nil {
			s.server()
		}
		s.unlie()
	}()
	moved, err := s.move(ctx, all)
	if err != nil {
		return err
	}
	return s.verdict(ctx, all, moved)
}

// cluster returns what each cluster is.
func (o options) cluster() cluster.Options {
	c := cluster.Options{PodStart: time.Second, PodStop: time.Second, StopByUID: true, Audit: o.audit || o.terms, Nodes: o.nodes}
	if o.nodes > 0 {
		c.Heartbeat = 5 * time.Minute // as that of a kubelet whose node does not change
	}
	return c
}

func (s *storm) build(ctx context.Context) (err error) {
	s.say("building the programs")
	s.replicas = &replicas{dir: s.dir, qps: s.qps, waves: s.waves, memory: s.memory << 20 * 4 / 5, own: make(chan error, 1000)}
	s.cage()
	if s.replicas.program, err = fixture.Build(ctx, s.dir, "orchestrator"); err != nil {
		return err
	}
	if s.stsmigrate, err = fixture.Build(ctx, s.dir, "stsmigrate"); err != nil {
		return err
	}
	s.kubectl, err = cluster.Program(ctx, "kubectl")
	return err
}

// cage has the orchestrators run in cgroups, or says why they do not.
func (s *storm) cage() {
	s.uncaged = "they are switched off (-cgroup=false)"
	if s.cgroup {
		trial, err := newCage(fmt.Sprintf("stsmigrate-storm-%d", os.Getpid()), s.memory<<20)
		if err == nil {
			err = trial.remove()
		}
		if err == nil {
			s.replicas.limit, s.uncaged = s.memory<<20, ""
			return
		}
		s.uncaged = err.Error()
	}
	s.say("NO CGROUPS: nothing limits the memory of the orchestrators, since %s", s.uncaged)
}

func (s *storm) connect() (err error) {
	s.kubeconfig = filepath.Join(s.dir, "kubeconfig")
	if err := fixture.Kubeconfig(s.kubeconfig, s.bed.East, s.bed.West); err != nil {
		return err
	}
	if s.east, err = client.NewWithWatch(s.bed.East.Config(), client.Options{Scheme: clusters.Scheme()}); err != nil {
		return err
	}
	s.west, err = client.NewWithWatch(s.bed.West.Config(), client.Options{Scheme: clusters.Scheme()})
	return err
}

// person runs stsmigrate as a user does.
func (s *storm) person(ctx context.Context, args ...string) error {
	out, err := fixture.Command(ctx, s.kubeconfig, s.dir, s.stsmigrate, args...).CombinedOutput()
	if err := s.wrote(out); err != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("stsmigrate %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// wrote saves the output that a user sees.
func (s *storm) wrote(text []byte) error {
	s.saying.Lock()
	defer s.saying.Unlock()
	f, err := os.OpenFile(filepath.Join(s.dir, users), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// moving is a set that is being moved, and its witness.
type moving struct {
	fixture.Set
	name   string // of the plan
	before map[fixture.Disk]string
	eyes   *witness.Witness
}

// sets creates sets in east, and their namespaces in west, for plans of a group.
func (s *storm) sets(ctx context.Context, group string, plans, pods int) ([]*moving, error) {
	all := make([]*moving, plans)
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for k := range all {
		g.Go(func() error {
			var err error
			all[k], err = s.set(inner, fmt.Sprintf("shop-%s%02d", group, k), fmt.Sprintf("web-%s%02d", group, k), pods)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, m := range all[:min(s.watched, plans)] {
		var err error
		if m.eyes, err = witness.Watch(ctx, fixture.Name, 1, witness.Side{Config: s.bed.East.Config(), Namespace: m.Namespace}, witness.Side{Config: s.bed.West.Config(), Namespace: m.Namespace}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// set creates one set, for a plan of that name.
func (s *storm) set(ctx context.Context, namespace, plan string, pods int) (*moving, error) {
	m := &moving{Set: fixture.Set{Namespace: namespace, Replicas: int32(pods), Claims: []string{"data"}}, name: plan}
	if err := fixture.Namespace(ctx, namespace, s.bed.East, s.bed.West); err != nil {
		return nil, err
	}
	if err := m.Install(ctx, s.bed.East.Config()); err != nil {
		return nil, err
	}
	var err error
	m.before, err = m.Handles(ctx, s.bed.East.Config())
	return m, err
}

// detach hands all plans to the orchestrator.
func (s *storm) detach(ctx context.Context, all []*moving) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for _, m := range all {
		g.Go(func() error { return s.handOver(ctx, m) })
	}
	return g.Wait()
}

func (s *storm) handOver(ctx context.Context, m *moving) error {
	file := m.name + ".yaml"
	if err := s.person(ctx, "plan", fixture.Name, "--name", m.name, "-n", m.Namespace, "--context", "east", "--to-context", "west", "--out", file); err != nil {
		return err
	}
	if err := errors.Join(s.permit(ctx, file, "rbac", "consent"), s.agree(ctx, file)); err != nil {
		return err
	}
	return s.person(ctx, "apply", file, "--detach", "--home-context", "east", "--yes")
}

// move runs all plans and disturbances, and returns how long the moves took.
func (s *storm) move(ctx context.Context, all []*moving) (time.Duration, error) {
	s.say("handing over %d plans", s.plans)
	// A plan is not handed over while no orchestrator is alive, so this heartbeat stands in for one. The
	// plans begin all at once when everything is in place.
	alive := records.NewHeartbeat(s.east, s.east, home, "storm", "", time.Now)
	if err := alive.Beat(ctx); err != nil {
		return 0, err
	}
	lives, enough := context.WithCancel(ctx)
	defer enough()
	go alive.Keep(lives, func(renewed, swept error) {
		if err := errors.Join(renewed, swept); err != nil {
			s.say("%s", err)
		}
	})
	if err := errors.Join(s.detach(ctx, all), s.hinder(ctx)); err != nil {
		return 0, err
	}
	enough()
	if err := s.replicas.start(s.processes); err != nil {
		return 0, err
	}
	s.say("all are handed over, and %d orchestrators begin", s.processes)
	trouble, ctx := errgroup.WithContext(ctx) // a failure of a disturbance ends the storm
	weather, calm := context.WithCancel(ctx)
	defer calm()
	trouble.Go(func() error { return s.kills(weather) })
	trouble.Go(func() error { return s.replicas.outlive(weather) })
	rough, over := context.WithCancel(ctx)
	defer over()
	once := make(chan error, 2)
	for _, happens := range []func(context.Context) error{s.rotate, s.away} {
		trouble.Go(func() error {
			err := happens(rough)
			once <- err
			return err
		})
	}
	took, err := s.arrive(ctx, all)
	if err != nil {
		return 0, errors.Join(err, context.Cause(ctx))
	}
	over()
	if err := errors.Join(<-once, <-once, s.answers(ctx)); err != nil { // a user would wait too
		return 0, err
	}
	if err := s.finalize(ctx, all); err != nil {
		return 0, err
	}
	s.say("all are finalized")
	if err := s.giveUp(ctx); err != nil {
		return 0, err
	}
	calm()
	if err := s.shownInTime(ctx, all); err != nil {
		return 0, errors.Join(err, context.Cause(ctx))
	}
	return took, trouble.Wait()
}

// finalize finalizes all plans, as a user does.
func (s *storm) finalize(ctx context.Context, all []*moving) error {
	for _, m := range all {
		if err := s.person(ctx, "finalize", m.name, "-n", home, "--context", "east", "--yes"); err != nil {
			return err
		}
	}
	_, err := s.until(ctx, all, "Finalized")
	return err
}

// shownInTime waits until all plans are shown to be ready: the process that has finalized one may have been killed before
// it could say so, and another one says it when it has begun. The verdict looks once more.
func (s *storm) shownInTime(ctx context.Context, all []*moving) error {
	var missing []string
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		var err error
		missing, err = s.shown(ctx, all)
		return len(missing) == 0, err
	})
	if wait.Interrupted(err) && len(missing) > 0 {
		return fmt.Errorf("two minutes after the last plan was finalized: %s", strings.Join(missing, "; "))
	}
	return err
}

// arrive waits until all plans have moved. It returns how long that took, and keeps who used this machine meanwhile.
func (s *storm) arrive(ctx context.Context, all []*moving) (time.Duration, error) {
	before, err := lookAtCPU()
	if err != nil {
		return 0, err
	}
	if _, err := s.until(ctx, all, "Moved"); err != nil {
		return 0, err
	}
	after, err := lookAtCPU()
	if err != nil {
		return 0, err
	}
	s.cores, s.span.from, s.span.to = after.since(before), before.at, after.at
	s.say("all are moved")
	return after.at.Sub(before.at), nil
}

// figures prints what the storm has cost.
func (s *storm) figures(moved time.Duration, worst, wrong int) {
	u := s.replicas.used()
	limits := fmt.Sprintf("%d MiB by a cgroup, which held %d MiB at most", s.memory, u.caged>>20)
	if s.uncaged != "" {
		limits = "NONE, since " + s.uncaged
	}
	ordinals := s.plans * s.pods
	fmt.Printf("\nplans                       %d of %d ordinals\ntime until all are moved    %.1f s\norchestrators killed        %d times, suspended %d times\npeak memory of one          %d MiB\nits memory limit            %s\nthe endless cluster         asked %d times\nrequests to the clusters    %d (%.1f per ordinal, finalizing included)\na wave was on neither side  %.1f s on average\nmost down at once in a set  %d (d = 1)\nviolations, leftovers, leaks %d\nthe machine, meanwhile      %s\n",
		s.plans, ordinals, moved.Seconds(), s.replicas.killed, s.replicas.suspended, u.peak>>20, limits, s.flooded.Load(), u.requests, float64(u.requests)/float64(ordinals), u.down/float64(max(u.waves, 1)), worst, wrong, s.cores)
}

// seen returns what the witnesses have seen, and what has become of the volumes. worst is how many ordinals of one set were
// unavailable at once.
func (s *storm) seen(ctx context.Context, all []*moving) (wrong []string, worst int, err error) {
	for _, m := range all {
		if m.eyes != nil {
			r := m.eyes.Stop()
			worst = max(worst, r.MaxUnavailable)
			for _, v := range r.Violations {
				wrong = append(wrong, m.name+": the witness saw "+v)
			}
		}
		after, err := m.Handles(ctx, s.bed.West.Config())
		if err != nil {
			return nil, 0, err
		}
		if len(after) != s.pods || !maps.Equal(m.before, after) {
			wrong = append(wrong, fmt.Sprintf("%s: its volumes were %v and are %v", m.name, m.before, after))
		}
	}
	return wrong, worst, nil
}

// verdict checks the result and prints the figures.
func (s *storm) verdict(ctx context.Context, all []*moving, moved time.Duration) error {
	wrong, worst, err := s.seen(ctx, all)
	if err != nil {
		return err
	}
	if worst > 1 {
		wrong = append(wrong, fmt.Sprintf("%d ordinals of a set were unavailable at once", worst))
	}
	for _, check := range []func(context.Context, []*moving) ([]string, error){s.leftovers, s.leaks, s.shown, s.unharmed, s.answered} {
		found, err := check(ctx, all)
		if err != nil {
			return err
		}
		wrong = append(wrong, found...)
	}
	destroyed, err := s.bed.Backend.Destroyed()
	if err != nil {
		return err
	}
	if len(destroyed) > 0 {
		wrong = append(wrong, fmt.Sprintf("volumes were destroyed: %v", destroyed))
	}
	if s.floods && s.flooded.Load() == 0 {
		wrong = append(wrong, "nobody has asked the cluster whose answers have no end")
	}
	s.figures(moved, worst, len(wrong))
	if s.audit {
		table, err := s.table()
		if err != nil {
			return err
		}
		fmt.Printf("\n%s", table)
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}
