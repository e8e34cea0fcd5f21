package simulation

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// misfortune makes things fail for one process after another: pods crash and flap, nodes fail and vanish, API
// servers are unreachable, writes fail, and the user reverses the plan.
type misfortune struct {
	w      *world
	rng    *rand.Rand
	away   map[string]int // for how many requests a cluster is unreachable
	strike bool
	word   plans.Assurance // the word for the next process
}

// happens may let one failure happen.
func (m *misfortune) happens() {
	if !m.strike {
		return
	}
	s := m.w.stores[m.rng.IntN(len(m.w.stores))]
	switch m.rng.IntN(120) {
	case 0, 1, 2:
		if pod := m.one(s); pod != nil && pod.DeletionTimestamp == nil {
			must(s.Delete(context.TODO(), clone(pod)))
		}
	case 3, 4, 5:
		if pod := m.one(s); ready(pod) {
			next := clone(pod)
			next.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
			s.put(next)
		}
	case 6:
		m.power(s)
	case 7:
		m.vanish(s)
	case 8:
		m.away[s.name] = 1 + m.rng.IntN(40)
	}
}

func (m *misfortune) one(s *store) *corev1.Pod {
	pods := all[*corev1.Pod](s)
	if len(pods) == 0 {
		return nil
	}
	return pods[m.rng.IntN(len(pods))]
}

// power makes a node fail, or recover.
func (m *misfortune) power(s *store) {
	nodes := all[*corev1.Node](s)
	next := clone(nodes[m.rng.IntN(len(nodes))])
	status := corev1.ConditionFalse
	if next.Status.Conditions[0].Status == corev1.ConditionFalse {
		status = corev1.ConditionTrue
	}
	next.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	s.put(next)
}

// vanish removes a node for good. Another machine with another name replaces it.
func (m *misfortune) vanish(s *store) {
	nodes := all[*corev1.Node](s)
	gone := nodes[m.rng.IntN(len(nodes))]
	for side, on := range m.w.on {
		if on == s {
			m.w.bury(side, gone.Name)
			break // both sides may be in one cluster
		}
	}
	fresh := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: gone.Name + "x"}}
	fresh.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	must(s.Create(context.TODO(), fresh))
}

// ceases lets everything recover.
func (m *misfortune) ceases() {
	m.strike = false
	clear(m.away)
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
		if n := m.rng.IntN(150); m.strike && n < len(faults()) {
			return faults()[n]
		}
		return ""
	}
	return r
}

// vouched finds the node that the user has to vouch for.
var vouched = regexp.MustCompile(`--node-gone (\S+)`)

// goes runs one process until it ends, or nothing changes any more. It returns the last reason.
func (m *misfortune) goes(t *testing.T, direction plans.Direction) string {
	t.Helper()
	r := m.process()
	e, err := r.takeOver(t.Context(), direction)
	m.word = plans.Assurance{}
	if err != nil {
		return err.Error()
	}
	idle, reason := 0, ""
	for range 3000 {
		m.happens()
		p, err := e.Advance(t.Context())
		reason = p.Reason
		switch {
		case r.dead || p.Kind == engine.Finished || p.Kind == engine.Paused:
			return reason
		case p.Kind == engine.Blocked:
			if asked := vouched.FindStringSubmatch(reason); asked != nil && r.fate(p) == nil {
				m.word.NodeGone = asked[1]
			}
			return reason
		case err != nil:
			reason = err.Error()
		}
		idle++
		if m.w.others(r, engine.Waiting) || p.Kind == engine.Wrote || p.Kind == engine.Advanced {
			idle = 0
		}
		if idle > 60 {
			if asked := vouched.FindStringSubmatch(reason); asked != nil {
				m.word.NodeGone = asked[1]
			}
			return reason
		}
	}
	return reason
}

// request returns the direction that the user requests next.
func (m *misfortune) command() plans.Direction {
	j := m.w.journal
	switch {
	case j.Leg.Direction != plans.Move:
		return j.Leg.Direction
	case j.Outcome == plans.Moved:
		return []plans.Direction{plans.Finalize, plans.Abort}[m.rng.IntN(2)]
	case m.rng.IntN(8) == 0:
		return plans.Abort
	}
	return plans.Move
}

// Whatever fails and recovers: no disk has two writers, none is lost, and the plan ends (S1, S4, S5, S9, L1,
// L6).
func TestEveryPlanEndsInSpiteOfMisfortunes(t *testing.T) {
	t.Parallel()
	from, to := seedsOf(10, 1000)
	for name, sc := range shapes() {
		if len(sc.Gates) > 0 {
			continue // a gate whose pod is gone answers no, which is not the subject of this test
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newWorld(sc)
			for seed := from; seed <= to; seed++ {
				w := first.fork(seed)
				m := &misfortune{w: w, rng: rand.New(rand.NewPCG(seed, 77)), away: map[string]int{}, strike: true}
				w.foreign = true // not every unavailable pod is ours
				var said []string
				for round := 0; round < 60 && !w.journal.Ended(); round++ {
					if round == 30 {
						m.ceases()
					}
					said = append(said, m.goes(t, m.command()))
				}
				w.rest()
				unbroken(t, w)
				if marks := w.marked(); !w.journal.Ended() || len(marks) > 0 {
					t.Fatalf("seed %d: it ended %q with marks on %q; it said %q", seed, w.journal.Outcome, marks, slices.Compact(said)[max(0, len(slices.Compact(said))-4):])
				}
			}
		})
	}
}
