package move_test

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// hearsHangups lets what a test starts hear a hang-up. Under nohup it is ignored, and what is started there ignores it too.
func hearsHangups(t *testing.T) {
	t.Helper()
	unheard := make(chan os.Signal, 1)
	signal.Notify(unheard, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(unheard) }) // the cases of a test run after its function has returned
}

// One request to stop, however often it arrives, finishes the wave in flight: nothing is down, the budgets are open, and
// another process can go on at once.
func TestASignalInMidWaveLeavesNothingDown(t *testing.T) {
	hearsHangups(t)
	for name, copies := range map[string][]syscall.Signal{
		"Ctrl-C, forwarded":    {syscall.SIGINT, syscall.SIGINT},
		"a process manager":    {syscall.SIGTERM, syscall.SIGHUP},
		"a terminal is closed": {syscall.SIGHUP, syscall.SIGHUP},
	} {
		t.Run(name, func(t *testing.T) {
			inBothModes(t, options{replicas: 3}, func(s *migration) {
				t := s.t
				before := s.state(s.source)
				w := s.watched()
				s.planned()
				p := start(t, s.applyArgs()...)
				p.until("web-2 Release", "delete claim data-web-2")
				for _, one := range copies {
					p.signal(one)
				}
				p.end().expect(t, interrupted, "stopping as soon as web-2 has arrived", "web-2 Grow", "available on the destination", "stopped; no ordinal is in flight", "stsmigrate resume web")
				s.shows(done, "Stopped ", "unavailable=0", "stsmigrate resume web")
				run(t, s.args("wait")...).expect(t, held, "was stopped with no ordinal in flight", "stsmigrate resume web")
				run(t, s.args("resume")...).expect(t, done, "moved: 3 ordinals")
				proper(t, w, 1)
				s.arrived(before)
			})
		})
	}
}
