package move_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/internal/view/event"
)

// A person plans and applies, and sees on the screen alone how the move goes, to its end.
func TestAPersonWatchesAMove(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		before := s.state(s.source)
		w := s.watched()
		plan := types(t, s.planArgs()...)
		plan.sees("Nothing has been written")
		plan.leaves(done)

		apply := types(t, append(without(s.applyArgs(), "--yes"), "--no-canary-pause")...)
		apply.sees("Carry this out? [yes/no]")
		apply.presses("yes\r")
		apply.sees("Moving", "0 of 3", "of 1 allowed", "ORD", "PHASE", "p pause", "e explain")
		apply.presses("e")
		apply.sees("terminate", "detach", "handOver", "attach", "until its pod is available", "back to the table")
		apply.presses("e")
		apply.sees("1 of 3", "arrived", "elapsed")
		apply.sees("moved: 3 ordinals", "Moved", "3 of 3", "`stsmigrate finalize web")
		apply.leaves(done)
		s.arrived(before)
		proper(t, w, 1)

		status := types(t, s.args("status", "-w")...)
		status.sees("Moved", "3 of 3")
		status.leaves(done)
	})
}

// A plan is blocked. The person reads why, fixes it, and goes on with the command that the screen names.
func TestAPersonFixesABlockedPlan(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		before := s.state(s.source)
		s.planned()
		apply := types(t, without(s.applyArgs(), "--yes")...)
		apply.sees("It pauses after the first ordinal", "[yes/no]")
		apply.presses("yes\r")
		apply.sees("1 of 3", "paused before web-1", "To resume: ")
		apply.leaves(done)

		s.change(s.source, &appsv1.StatefulSet{}, "web", `{"spec":{"replicas":1}}`) // another writer
		resume := types(t, apply.command("resume")...)
		resume.sees("Continue plan web", "[yes/no]")
		resume.presses("yes\r")
		resume.sees("blocked: ", "has the ordinals [0]", "expected [0..1]", "written by kubectl-edit", "When the cause is fixed: ")
		resume.leaves(held)

		status := types(t, s.args("status", "-w")...)
		status.sees("Blocked", "reason", "written by kubectl-edit")
		status.leaves(held)

		s.change(s.source, &appsv1.StatefulSet{}, "web", `{"spec":{"replicas":2}}`)
		again := types(t, append(resume.command("resume"), "--yes")...)
		again.sees("moved: 3 ordinals", "3 of 3")
		again.leaves(done)
		s.arrived(before)
	})
}

// A key pauses the plan, and another one stops the command as Ctrl-C does.
func TestAPersonPausesAndStops(t *testing.T) {
	inBothModes(t, options{replicas: 4}, func(s *migration) {
		t := s.t
		before := s.state(s.source)
		s.planned()
		apply := types(t, s.applyArgs()...)
		apply.sees("0 of 4", "p pause")
		apply.presses("p")
		apply.sees("Pause web when the ordinal under way has arrived? y/n")
		apply.presses("y")
		apply.sees("paused before ", "To resume: ")
		apply.leaves(done)
		s.shows(done, "Paused")

		resume := types(t, append(apply.command("resume"), "--yes")...)
		resume.sees("of 4", "q leave")
		resume.presses("q")
		resume.sees("Stop", "It can be continued later.", "y/n")
		resume.presses("n")
		resume.sees("p pause   e explain   q leave")
		resume.presses("\x03") // Ctrl-C
		resume.sees("stopped; no ordinal is in flight")
		resume.leaves(interrupted)
		run(t, s.applyArgs()...).expect(t, done, "moved: 4 ordinals")
		s.arrived(before)
	})
}

// However a watch ends, the terminal is as it was. A process that is killed can put nothing back: it has not hidden the
// cursor and shows no other screen.
func TestAKilledWatchLeavesTheTerminal(t *testing.T) {
	hearsHangups(t)
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		s.planned()
		p := start(t, s.applyArgs()...)
		p.until("web-1 Shrink     source")
		p.signal(syscall.SIGKILL)
		p.end().expect(t, killed)

		for _, end := range []func(*person) int{
			func(p *person) int { p.insists("q"); return done },
			func(p *person) int { p.insists("\x03"); return interrupted },
			func(p *person) int { p.signal(syscall.SIGTERM); return interrupted },
			func(p *person) int { p.signal(syscall.SIGHUP); return interrupted },
		} {
			status := types(t, s.args("status", "-w")...)
			status.sees("StoppedInFlight", "of 2", "down", "next", "q leave")
			status.leaves(end(status))
		}
		status := types(t, s.args("status", "-w")...)
		status.sees("StoppedInFlight", "q leave")
		status.signal(syscall.SIGKILL)
		<-status.ended
		status.isLegible()
		run(t, s.applyArgs()...).expect(t, done, "moved: 2 ordinals")
	})
}

// Programs read the events of a move, wait for its end, and get another exit code if it is not in time.
func TestProgramsWatchAMove(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		s.planned()
		compiler := jsonschema.NewCompiler()
		compiler.AssertFormat()
		schema, err := compiler.Compile("../../../docs/schemas/event.schema.json")
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, s.applyArgs("--events", "json")...)
		p.until(`"op":"Freeze"`)
		late := run(t, s.args("wait", "--for", "Finalized", "--timeout", "2s")...).expect(t, notInTime, "not Finalized within 2s")
		same(t, "output of a wait that was not in time", "", late.stdout)
		watch := start(t, s.args("status", "-w", "--events", "json")...)
		got := run(t, s.args("wait", "--for", "Moved,Aborted")...).expect(t, done)
		same(t, "output of a wait", "Moved\n", got.stdout)
		result, watched := p.end().expect(t, done, "moved: 2 ordinals"), watch.end().expect(t, done)
		for name, lines := range map[string]string{"apply": result.stdout, "status": watched.stdout} {
			last := event.Event{}
			for line := range strings.Lines(lines) {
				v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
				if err == nil {
					err = schema.Validate(v)
				}
				if err == nil {
					err = json.Unmarshal([]byte(line), &last)
				}
				if err != nil {
					t.Errorf("%s: %s: %v", name, line, err)
				}
			}
			if last.Type != event.Finished || last.Outcome != "Moved" || time.Since(last.Time) > time.Hour {
				t.Errorf("%s ends with %+v", name, last)
			}
		}
	})
}

func (p *person) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}
