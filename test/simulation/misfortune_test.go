package simulation

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	cmp2 "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// misfortune makes things fail for one process after another: pods crash and flap, nodes fail and vanish, API
// servers are unreachable, writes fail, and the user reverses the plan.
type misfortune struct {
	w       *world
	rng     *rand.Rand
	away    map[string]int // for how many requests a cluster is unreachable
	strike  bool
	without map[actorOf]bool // kinds of failures that do not happen
	most    int              // how many failures happen; 0 for no limit
	struck  int              // how many have happened
	word    plans.Assurance  // the word for the next process
	advised bool             // the last reason names a pod to delete, and the user does so
	// tactic is the strategy that the user has last given the set of a side.
	tactic map[plans.Side]appsv1.StatefulSetUpdateStrategy
}

// strikes reports whether one more failure happens, and notes it in the transcript.
func (m *misfortune) strikes(format string, args ...any) bool {
	if m.most > 0 && m.struck == m.most {
		return false
	}
	m.struck++
	m.w.trail = append(m.w.trail, fmt.Sprintf("failure %d: "+format, append([]any{m.struck}, args...)...))
	return true
}

// happens may let one failure happen, of which the checks of the world take notice at once: what was answered before it is
// older than it.
func (m *misfortune) happens() {
	if before := m.struck; m.strike {
		if m.befalls(); m.struck > before {
			m.w.check()
		}
	}
}

// actorOf is one kind of failure.
type actorOf string

const (
	deletions actorOf = "deleted pods"
	flaps     actorOf = "pods that are not ready"
	power     actorOf = "nodes that fail"
	vanishing actorOf = "nodes that vanish"
	lingering actorOf = "pods that take long to end"
	slowness  actorOf = "volumes that are slow"
	outages   actorOf = "outages"
	visitors  actorOf = "pods that name claims"
	breakage  actorOf = "applications that break"
	growth    actorOf = "sets that grow"
	rollouts  actorOf = "templates that change"
	tactics   actorOf = "update strategies that change"
	writing   actorOf = "failing writes"
	turning   actorOf = "aborts on the way"
)

func actorsOf() []actorOf {
	return []actorOf{deletions, flaps, power, vanishing, lingering, slowness, outages, visitors, breakage, growth, rollouts, tactics, writing, turning}
}

// befalls may let one failure happen.
func (m *misfortune) befalls() {
	s := m.w.stores[m.rng.IntN(len(m.w.stores))]
	n := m.rng.IntN(120)
	kinds := []actorOf{deletions, deletions, deletions, flaps, flaps, flaps, power, vanishing, lingering, slowness, outages, visitors, visitors, breakage, growth, rollouts, rollouts, tactics}
	if n >= len(kinds) || m.without[kinds[n]] {
		return
	}
	switch kinds[n] {
	case deletions, flaps, lingering, breakage:
		m.afflict(kinds[n], s)
	case growth:
		m.grows(s)
	case rollouts:
		m.rollsOut(s)
	case tactics:
		m.setsStrategy(s)
	case power:
		m.power(s)
	case vanishing:
		m.vanish(s)
	case slowness:
		if m.strikes("cluster %s is slow with volumes", s.name) {
			m.w.slow[s.name] = 1 + m.rng.IntN(60)
		}
	case outages:
		if n := 1 + m.rng.IntN(40); m.strikes("cluster %s is away for %d requests", s.name, n) {
			m.away[s.name] = n
		}
	case visitors:
		m.visits(s)
	case writing, turning: // of the processes and of the user
	}
}

// afflict lets a failure of a kind happen to one pod of a cluster.
func (m *misfortune) afflict(kind actorOf, s *store) {
	switch pod := m.one(s); kind {
	case deletions:
		if pod != nil && pod.DeletionTimestamp == nil && m.strikes("%s of %s is deleted", keyOf(pod), s.name) {
			must(s.Delete(context.TODO(), clone(pod)))
		}
	case flaps:
		if ready(pod) && m.strikes("%s of %s is not ready", keyOf(pod), s.name) {
			next := clone(pod)
			next.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
			s.put(next)
		}
	case lingering:
		if pod != nil && m.strikes("%s of %s will take long to end", keyOf(pod), s.name) {
			m.w.lingers[pod.UID] = 1 + m.rng.IntN(60)
		}
	case breakage:
		if ready(pod) && m.strikes("%s of %s is broken for as long as it lives", keyOf(pod), s.name) {
			next := clone(pod)
			next.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
			s.put(next)
			m.w.crashing = append(m.w.crashing, pod.UID)
		}
	default: // of clusters, nodes and processes
	}
}

// grows lets a user or an autoscaler give a set one ordinal more than the plan knows.
func (m *misfortune) grows(s *store) {
	sets := all[*appsv1.StatefulSet](s)
	if len(sets) == 0 {
		return
	}
	set := sets[m.rng.IntN(len(sets))]
	if slice := plans.SliceOf(set); slice.End() == m.w.plan.End() && slice.Replicas > 0 && m.strikes("the set of %s grows", set.Namespace) {
		next := clone(set)
		next.Spec.Replicas = new(slice.Replicas + 1)
		must(s.Update(context.TODO(), next))
	}
}

// shrinks takes back what grows has added.
func (m *misfortune) shrinks() {
	for _, s := range m.w.stores {
		for _, set := range all[*appsv1.StatefulSet](s) {
			if slice := plans.SliceOf(set); slice.End() > m.w.plan.End() {
				next := clone(set)
				next.Spec.Replicas = new(slice.Replicas - slice.End() + m.w.plan.End())
				must(s.Update(context.TODO(), next))
			}
		}
	}
}

func (m *misfortune) one(s *store) *corev1.Pod {
	pods := all[*corev1.Pod](s)
	if len(pods) == 0 {
		return nil
	}
	return pods[m.rng.IntN(len(pods))]
}

// visits lets a pod of another workload come that names a claim of the set, or go. It may have to wait for that claim.
func (m *misfortune) visits(s *store) {
	for _, side := range plans.Sides() {
		if m.w.on[side] != s || len(m.w.options.Templates) == 0 || len(m.w.stores) == 1 && m.rng.IntN(2) == 0 {
			continue
		}
		o := m.w.plan.Start + m.rng.Int32N(m.w.plan.Count)
		if m.strikes("a pod of %s names the claim of ordinal %d", m.w.namespace(side), o) {
			m.w.stranger(side, o)
		}
		return
	}
}

// power makes a node fail, or recover.
func (m *misfortune) power(s *store) {
	nodes := all[*corev1.Node](s)
	next := clone(nodes[m.rng.IntN(len(nodes))])
	status := corev1.ConditionTrue
	if up(next) {
		status = corev1.ConditionFalse
	}
	next.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	if m.strikes("node %s is Ready: %s", next.Name, status) {
		s.put(next)
	}
}

// vanish removes a node for good. Another machine with another name replaces it.
func (m *misfortune) vanish(s *store) {
	nodes := all[*corev1.Node](s)
	gone := nodes[m.rng.IntN(len(nodes))]
	if !m.strikes("node %s vanishes", gone.Name) {
		return
	}
	for side, on := range m.w.on {
		if on == s {
			m.w.bury(side, gone.Name)
			break // both sides may be in one cluster
		}
	}
	fresh := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: gone.Name + "x"}}
	fresh.Status.Allocatable = roomForPods()
	fresh.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	must(s.Create(context.TODO(), fresh))
}

// ceases lets everything recover.
func (m *misfortune) ceases() {
	m.strike = false
	clear(m.away)
	m.w.dismiss()
	m.w.crashing, m.w.app.fickle = nil, false
	m.shrinks()
	for _, s := range m.w.stores {
		for _, node := range all[*corev1.Node](s) {
			next := clone(node)
			next.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			s.put(next)
		}
	}
}

// process returns the next process.
func (m *misfortune) process() *process {
	r := m.w.process()
	r.word = m.word
	r.away = func(s *store) bool {
		m.away[s.name]--
		return m.away[s.name] >= 0
	}
	r.at = func(int) fault {
		if n := m.rng.IntN(150); m.strike && n < len(faults()) && !m.without[writing] && m.strikes("the write of %s: %s", r.now, faults()[n]) {
			return faults()[n]
		}
		return ""
	}
	return r
}

// vouched finds the node that the user has to vouch for.
var vouched = regexp.MustCompile(`--node-gone (\S+)`)

// readies lets the user do what the last process has asked for, and at the end put both sets in order.
func (m *misfortune) readies() {
	if m.advised {
		m.w.dismiss()
	}
	if !m.strike {
		m.settles()
	}
}

// goes runs one process until it ends, or nothing changes any more. It returns the last reason.
func (m *misfortune) goes(ctx context.Context, direction plans.Direction) string {
	m.readies()
	r := m.process()
	e, err := r.takeOver(ctx, direction)
	m.word, m.advised = plans.Assurance{}, false
	if err != nil {
		return err.Error()
	}
	idle, reason := 0, ""
	for range 3000 {
		m.happens()
		r.tell()
		p, err := e.Advance(ctx)
		reason = p.Reason
		switch {
		case r.dead || p.Kind == engine.Finished || p.Kind == engine.Paused:
			return reason
		case p.Kind == engine.Blocked:
			if asked := vouched.FindStringSubmatch(reason); asked != nil && r.fate(p) == nil {
				m.word.NodeGone = asked[1]
			}
			_ = e.Ease(ctx) // as every process does at its end
			return reason
		case err != nil:
			reason = err.Error()
		}
		idle++
		if m.w.others(r, engine.Waiting) || p.Kind == engine.Wrote || p.Kind == engine.Advanced {
			idle = 0
		}
		if idle > 60 {
			m.heeds(reason)
			_ = e.Ease(ctx)
			return reason
		}
	}
	return reason
}

// heeds lets the user do next what the reason of a plan that does not go on asks for.
func (m *misfortune) heeds(reason string) {
	if asked := vouched.FindStringSubmatch(reason); asked != nil {
		m.word.NodeGone = asked[1]
	}
	m.advised = strings.Contains(reason, "pod nightly-")
}

// command returns the direction that the user requests next.
func (m *misfortune) command() plans.Direction {
	j := m.w.journal
	switch {
	case j.Leg.Direction != plans.Move:
		return j.Leg.Direction
	case j.Outcome == plans.Moved:
		return []plans.Direction{plans.Finalize, plans.Abort}[m.rng.IntN(2)]
	case m.rng.IntN(8) == 0 && !m.without[turning] && m.strikes("the user aborts"):
		return plans.Abort
	}
	return plans.Move
}

// schedule is one run of a plan among failures. It is the same again for the same fields.
type schedule struct {
	shape   string // the name of the options
	options options
	seed    uint64
	without []actorOf
	most    int // how many failures happen; 0 for no limit
}

// String returns the schedule as SIM_SCHEDULE takes it.
func (c schedule) String() string {
	var without []string
	for _, a := range c.without {
		without = append(without, string(a))
	}
	return fmt.Sprintf("%s; seed %d; ordinals %d; failures %d; without %s", c.shape, c.seed, c.options.Ordinals, c.most, strings.Join(without, ", "))
}

// besideLater ends the name of a shape in which what is sent beside an engine overlaps its looks.
const besideLater = ", overlapping"

// scheduleOf reads what String returns.
func scheduleOf(text string) (c schedule, err error) {
	shape, numbers, _ := strings.Cut(text, "; ")
	plain, late := strings.CutSuffix(shape, besideLater)
	c = schedule{shape: shape, options: shapes()[plain]}
	c.options.Overlaps = late
	numbers, without, _ := strings.Cut(numbers, "; without ")
	if _, err := fmt.Sscanf(numbers, "seed %d; ordinals %d; failures %d", &c.seed, &c.options.Ordinals, &c.most); err != nil || c.options.Mode == "" {
		return c, fmt.Errorf("%q is no schedule: expected a line as a failure prints it: %w", text, err)
	}
	for name := range strings.SplitSeq(without, ", ") {
		if name != "" {
			c.without = append(c.without, actorOf(name))
		}
	}
	return c, nil
}

// begin returns a world of its own with the failures of the schedule.
func (c schedule) begin(first *world) *misfortune {
	w := first.fork(c.seed)
	w.foreign = true                                // not every unavailable pod is ours
	w.app.fickle, w.app.again = c.seed%2 == 0, true // a pod that has gone is asked again
	w.rolls = true                                  // what rolls obeys no budget
	m := &misfortune{tactic: map[plans.Side]appsv1.StatefulSetUpdateStrategy{}, w: w, rng: rand.New(rand.NewPCG(c.seed, 77)), away: map[string]int{}, strike: true, without: map[actorOf]bool{}, most: c.most}
	for _, a := range c.without {
		m.without[a] = true
	}
	return m
}

// play returns what went wrong, or "", and the transcript: every write of a process, and every failure.
func (c schedule) play(ctx context.Context, first *world) (why string, transcript []string) {
	m := c.begin(first)
	w := m.w
	var said []string
	for round := 0; round < 60 && !w.journal.Ended(); round++ {
		if round == 30 {
			m.ceases()
		}
		said = append(said, m.goes(ctx, m.command()))
	}
	w.rest()
	said = slices.Compact(said)
	marks := w.marked()
	switch {
	case len(w.broken) > 0:
		why = strings.Join(w.broken, "; ")
	case len(m.unlike()) > 0:
		why = m.unlike()
	case !w.journal.Ended() || len(marks) > 0:
		why = fmt.Sprintf("it ended %q with marks on %q; it said %q", w.journal.Outcome, marks, said[max(0, len(said)-4):])
	}
	return why, w.trail
}

// shrink returns a schedule that still goes wrong, with as few ordinals, kinds of failures and failures as possible,
// and why.
// wrong plays a schedule, and returns what went wrong, or "".
func (c schedule) shrink(wrong func(schedule) string) (small schedule, why string) {
	why = wrong(c)
	for again := true; again; {
		again = false
		var tries []schedule
		if fewest := int32(1 + min(len(c.options.Gates), 1)); c.options.Ordinals > fewest { // a gate may ask another pod
			less := c
			less.options.Ordinals--
			tries = append(tries, less)
		}
		for _, a := range actorsOf() {
			if !slices.Contains(c.without, a) {
				less := c
				less.without = append(slices.Clone(c.without), a)
				tries = append(tries, less)
			}
		}
		for n := c.most; n > 1 && n > c.most-3; n-- {
			less := c
			less.most = n - 1
			tries = append(tries, less)
		}
		if c.most == 0 || c.most > 3 { // by halves first
			less := c
			less.most = max(cmp.Or(c.most, 1<<10)/2, 1)
			tries = append(tries, less)
		}
		for _, less := range tries {
			if found := wrong(less); found != "" {
				c, why, again = less, found, true
				break
			}
		}
	}
	return c, why
}

// Whatever fails and recovers: no disk has two writers, none is lost, and the plan ends (S1, S4, S5, S9, L1,
// L6).
func TestEveryPlanEndsInSpiteOfMisfortunes(t *testing.T) {
	t.Parallel()
	from, to := seedsOf(50, 2500)
	for name, sc := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drawn(t, "schedules", from, to, 2500)
			first := newWorld(sc)
			for seed := from; seed <= to; seed++ {
				c := schedule{shape: name, options: sc, seed: seed}
				if why, _ := c.play(t.Context(), first); why != "" {
					c.report(t)
				}
			}
		})
	}
}

// report prints the smallest schedule that goes wrong, how it is played again, and its transcript.
func (c schedule) report(t *testing.T) {
	t.Helper()
	small, why := c.shrink(func(c schedule) string {
		why, _ := c.play(t.Context(), newWorld(c.options))
		return why
	})
	_, transcript := small.play(t.Context(), newWorld(small.options))
	t.Fatalf("seed %d: %s\nSIM_SCHEDULE=%q go test ./test/simulation -v -run TestTheScheduleThatIsAskedFor plays it again:\n%s", c.seed, why, small, strings.Join(transcript, "\n"))
}

// A schedule that went wrong is played again by the line that was printed, and prints the same transcript.
func TestTheScheduleThatIsAskedFor(t *testing.T) {
	t.Parallel()
	text := cmp.Or(os.Getenv("SIM_SCHEDULE"), "reimport, in waves; seed 3; ordinals 4; failures 20; without outages")
	c, err := scheduleOf(text)
	if err != nil {
		t.Fatal(err)
	}
	if c.String() != text {
		t.Errorf("%q was read as %q", text, c)
	}
	why, transcript := c.play(t.Context(), newWorld(c.options))
	t.Log(strings.Join(transcript, "\n"))
	if why != "" {
		t.Error(why)
	}
	_, again := c.play(t.Context(), newWorld(c.options))
	if diff := cmp2.Diff(transcript, again); diff != "" {
		t.Errorf("the second time it was another one:\n%s", diff)
	}
	if c.most > 0 && !strings.Contains(strings.Join(transcript, "\n"), fmt.Sprintf("failure %d:", c.most)) {
		t.Errorf("the transcript does not have all of %d failures", c.most)
	}
}

// Whoever reads a schedule that went wrong wants only what it takes.
func TestAScheduleShrinksToWhatItTakes(t *testing.T) {
	t.Parallel()
	needed := []actorOf{power, writing}
	two := func(c schedule) string {
		if c.options.Ordinals < 2 || c.most > 0 && c.most < 5 || slices.ContainsFunc(c.without, func(a actorOf) bool { return slices.Contains(needed, a) }) {
			return ""
		}
		return fmt.Sprintf("broken with %d", c.options.Ordinals)
	}
	small, why := schedule{options: options{Ordinals: 4}}.shrink(two)
	if small.options.Ordinals != 2 || small.most != 5 || why != "broken with 2" {
		t.Errorf("got %d ordinals, %d failures and %q, want 2, 5 and what those say", small.options.Ordinals, small.most, why)
	}
	if len(small.without) != len(actorsOf())-len(needed) {
		t.Errorf("got a schedule without %q, want one with only %q", small.without, needed)
	}
}
