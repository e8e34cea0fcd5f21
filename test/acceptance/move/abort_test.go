package move_test

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
)

// 3335-29
func TestAbortWalksEverythingBack(t *testing.T) {
	for where, line := range map[string][]string{
		"before the first ordinal":   {"volume", "-> Retain"},
		"after ordinal 3":            {"web-3 Grow", "available on the destination"},
		"in the middle of ordinal 2": {"web-2 Release", "delete claim data-web-2"},
	} {
		t.Run(where, func(t *testing.T) {
			inBothModes(t, options{}, func(s *migration) {
				t := s.t
				before, there := s.state(s.source), s.names("destination")
				w := s.watched()
				s.planned()
				p := start(t, s.applyArgs()...)
				p.until(line...)
				p.signal(syscall.SIGINT)
				r := p.end().expect(t, interrupted, "stopped; no ordinal is in flight", "stsmigrate resume web", "stsmigrate abort web")
				if n := len(r.complaints()); n < 2 || n > 3 { // with names, also which command keeps them
					t.Errorf("it says %q", r.complaints())
				}
				s.shows(done, "Stopped ", "unavailable=0", "stsmigrate resume web")
				run(t, s.args("abort")...).expect(t, done, "aborted")
				proper(t, w, 2)
				s.asBefore(before, there)
			})
		})
	}
}

func TestAbortWalksACompleteMoveBack(t *testing.T) {
	inBothModes(t, options{}, func(s *migration) {
		t := s.t
		before, there := s.state(s.source), s.names("destination")
		w := s.watched()
		s.planned()
		run(t, s.applyArgs()...).expect(t, done, "moved: 5 ordinals")
		run(t, s.args("abort")...).expect(t, done, "aborted")
		proper(t, w, 2)
		s.asBefore(before, there)
	})
}

func TestAbortSurvivesKills(t *testing.T) {
	inBothModes(t, options{}, func(s *migration) {
		t := s.t
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, seed))
		before, there := s.state(s.source), s.names("destination")
		w := s.watched()
		s.planned()
		p := start(t, s.applyArgs()...)
		for range 25 + random.IntN(40) { // number of lines; a move has more than a hundred
			p.line()
		}
		p.signal(syscall.SIGKILL)
		p.end().expect(t, killed)
		t.Logf("%d kills", s.killed(random, 12, s.args("abort")))
		proper(t, w, 2)
		s.asBefore(before, there)
	})
}

// asBefore checks that an aborted move has left nothing but its record, that no data is lost, and that the
// plan can be neither resumed nor finalized.
func (s *migration) asBefore(before state, there []string) {
	s.t.Helper()
	s.ready(s.source)
	same(s.t, "source", before, s.state(s.source))
	left := slices.DeleteFunc(s.names("destination"), func(name string) bool {
		return slices.Contains([]string{"ConfigMap/stsmigrate-web", "ConfigMap/stsmigrate-web-journal", "ConfigMap/stsmigrate-web-timeline"}, name)
	})
	same(s.t, "objects of the destination", there, left)
	s.unmarked()
	nothingLost(s.t, before)
	s.shows(walkedBack, "Aborted")
	s.verified()
	run(s.t, s.applyArgs()...).expect(s.t, walkedBack, "aborted; make a new plan")
	run(s.t, s.args("abort")...).expect(s.t, done, "nothing to do")
	run(s.t, s.args("finalize")...).expect(s.t, failed, "has ended")
}
