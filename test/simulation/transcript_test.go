package simulation

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// Each block of a transcript is a command line, "----", and the result. An ordinal has the same number on
// both sides (3335-27): it leaves the top of the source (3335-19), the budgets are split (3335-21), and the
// destination grows down to it (3335-23).
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			s := &stage{t: t}
			for block := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n\n") {
				command, _, _ := strings.Cut(block, "\n")
				out = append(out, command+"\n----\n"+strings.Join(s.do(command), "\n"))
			}
			got := strings.Join(out, "\n\n") + "\n"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(raw), got); diff != "" && !*update {
				t.Errorf("run with -update if this is meant (-want +got):\n%s", diff)
			}
			unbroken(t, s.w)
		})
	}
}

// stage runs the commands of a transcript.
type stage struct {
	t *testing.T
	w *world
}

func (s *stage) do(command string) []string {
	words := strings.Fields(command)
	args := map[string]string{}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		args[k] = v
	}
	switch words[0] {
	case "world":
		return s.build(args)
	case "apply":
		return s.run(plans.Move, args)
	case "abort":
		return s.run(plans.Abort, args)
	case "finalize":
		return s.run(plans.Finalize, args)
	case "scale":
		n, err := strconv.ParseInt(args["replicas"], 10, 32)
		must(err)
		s.w.foreign = args["back"] == ""
		scale(plans.Side(args["side"]), int32(n))(s.w)
		s.w.rest()
		return s.show()
	case "show":
		s.w.rest()
		return s.show()
	}
	s.t.Fatalf("unknown command %q", command)
	return nil
}

func (s *stage) build(args map[string]string) []string {
	sc := threeOrdinals(plans.Mode(args["mode"]))
	sc.Dependents = false
	if t := args["templates"]; t != "" {
		sc.Templates = strings.Split(t, ",")
	}
	_, sc.Existing = args["existing"]
	s.w = newWorld(sc)
	return s.show()
}

// run runs a direction until its end, the given step, or a crash in that step.
func (s *stage) run(direction plans.Direction, args map[string]string) []string {
	lines, r := &script{}, s.w.process()
	r.at = func(int) fault {
		step, _ := s.w.plan.Step(s.w.journal.Leg, s.w.journal.Done+1)
		if r.now.kind == kindOf(&corev1.ConfigMap{}) || r.takingOver || step.ID() != args["until"] {
			return ""
		}
		return map[string]fault{"before-write": crashBefore, "after-write": crashAfter}[args["crash"]]
	}
	got, err := r.run(s.t.Context(), direction, func(p engine.Progress) bool {
		switch p.Kind {
		case engine.Wrote:
			lines.say(p.Step, p.Reason)
		case engine.Waiting:
			lines.say(p.Step, "waiting: "+p.Reason)
		case engine.Blocked:
			lines.say(p.Step, "BLOCKED: "+p.Reason)
		case engine.Advanced:
			lines.say(p.Step, "done")
		case engine.Paused, engine.Stopped, engine.Finished, engine.Continued:
		}
		if r.dead {
			lines.say(p.Step, "CRASH")
		}
		return args["crash"] == "" && p.Kind == engine.Advanced && p.Step.ID() == args["until"]
	})
	if err == nil && got.kind == engine.Finished {
		lines.lines = append(lines.lines, string(got.outcome))
	}
	return lines.lines
}

// script has one line for each step.
type script struct {
	step  string
	last  string
	lines []string
}

func (l *script) say(step plans.Step, what string) {
	if l.step != step.ID() {
		l.step, l.last = step.ID(), ""
		l.lines = append(l.lines, fmt.Sprintf("%-9s", l.step))
	}
	if l.last == what {
		return
	}
	end := &l.lines[len(l.lines)-1]
	if l.last != "" {
		*end += ";"
	}
	*end += " " + what
	l.last = what
}

func (s *stage) show() []string {
	var out []string
	for _, side := range plans.Sides() {
		var pods, claims []string
		on, namespace := s.w.on[side], s.w.namespace(side)
		for _, p := range all[*corev1.Pod](on) {
			if p.Namespace == namespace {
				pods = append(pods, p.Name)
			}
		}
		for _, c := range all[*corev1.PersistentVolumeClaim](on) {
			if c.Namespace == namespace {
				claims = append(claims, fmt.Sprintf("%s->%s", c.Name, c.Spec.VolumeName))
			}
		}
		out = append(out, fmt.Sprintf("%-11s %s pods %s claims %s", side, s.w.slice(side), orNone(pods), orNone(claims)))
	}
	for _, st := range s.w.stores {
		var volumes []string
		for _, pv := range all[*corev1.PersistentVolume](st) {
			volumes = append(volumes, fmt.Sprintf("%s(%s, %s)", pv.Name, pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy))
		}
		out = append(out, fmt.Sprintf("cluster %-3s volumes %s", st.name, orNone(volumes)))
	}
	if marks := s.w.marked(); len(marks) > 0 {
		out = append(out, fmt.Sprintf("marked      %d objects", len(marks)))
	}
	return slices.Clip(out)
}

func orNone(items []string) string {
	if len(items) == 0 {
		return "none"
	}
	return strings.Join(items, " ")
}
