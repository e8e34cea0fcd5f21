package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Wherever a process dies, the next one continues. The end is the same as without a crash, and no pod was
// created or deleted twice (SC-6, 3541-48).
func TestAProcessMayDieAnywhere(t *testing.T) {
	for name, c := range map[string]struct {
		pods string
		set  []func(*Set)
		edit func(*fixture)
	}{
		"creation":            {"", is(claims("data")), func(*fixture) {}},
		"creation, Parallel":  {"", is(claims("data"), parallel), func(*fixture) {}},
		"scaling down":        {"0 1 2 3 4", is(claims("data"), retains("DD"), replicas(2)), func(*fixture) {}},
		"a range that moves":  {"0 1 2", is(start(2)), func(*fixture) {}},
		"an update":           {"0 1 2", is(unavailable("2")), func(s *fixture) { reimaged(s, "web:2") }},
		"an update, Parallel": {"0 1 2", is(unavailable("2"), parallel), func(s *fixture) { reimaged(s, "web:2") }},
		"a recovery":          {"0o 1o! 2o?", is(enforced), func(*fixture) {}},
		"a roll-back":         {"0 1 2", nil, func(s *fixture) { reimaged(s, "web:2"); s.live(); reimaged(s, "web:1") }},
		"adoption":            {"0 1 2", nil, func(s *fixture) { s.pods["web-1"].OwnerReferences = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			begin := func() *fixture {
				s := play(t, c.pods, c.set...)
				c.edit(s)
				return s
			}
			whole := begin()
			effects := strings.Fields(strings.Join(whole.live(), " "))
			want := whole.end()
			for n := 1; n <= len(effects); n++ {
				for _, pass := range []int{1, 2, 3} { // the pass in which the process dies after n effects
					s := begin()
					for range pass - 1 {
						s.sync()
						s.moveOn()
					}
					s.dies = n
					did := strings.Fields(s.sync())
					if s.err != nil && !errors.Is(s.err, errDead) {
						t.Fatal(s.err)
					}
					s.dies = 0
					did = append(did, strings.Fields(strings.Join(s.live(), " "))...)
					if got := s.end(); got != want {
						t.Errorf("dead after %d effects of pass %d: it ends with\n%s\nexpected\n%s", n, pass, got, want)
					}
					for _, d := range slices.Compact(slices.Sorted(slices.Values(did))) {
						if times(did, d) > times(effects, d) && strings.ContainsAny(d, "+-") {
							t.Errorf("dead after %d effects of pass %d: %s was done %d times: %v", n, pass, d, times(did, d), did)
						}
					}
				}
			}
		})
	}
}

func times(in []string, what string) (n int) {
	for _, s := range in {
		if s == what {
			n++
		}
	}
	return n
}

// end describes the state after everything has come to rest.
func (s *fixture) end() string {
	var out []string
	for _, p := range sortedByName(s.pods) {
		out = append(out, fmt.Sprintf("%s %s %v", p.Name, p.Spec.Containers[0].Image, len(p.OwnerReferences)))
	}
	for _, c := range sortedByName(s.claims) {
		out = append(out, c.Name+" "+s.owners(c.Name))
	}
	st := s.set.Status
	out = append(out, fmt.Sprintf("%d %d %d %t", st.Replicas, st.ReadyReplicas, st.UpdatedReplicas, st.CurrentRevision == st.UpdateRevision))
	return strings.Join(out, "\n")
}
