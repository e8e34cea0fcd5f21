package move_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// refusal is a command that must fail before it writes anything.
type refusal struct {
	name string
	// prepare creates the problem and returns a function that removes it.
	prepare func(*migration) (mend func())
	// command returns the arguments to run; nil means the usual plan.
	command command
	code    int
	// says lists the words that the one message must contain.
	says []string
}

// 3335-15, 3335-16
func TestRefusesWhatCannotWork(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		for _, c := range slices.Concat(badInput(), badPlans(), obstacles()) {
			t.Run(c.name, func(t *testing.T) {
				s.t = t
				s.refuses(c)
			})
		}
		s.t = t
	})
}

func (s *migration) refuses(c refusal) {
	s.t.Helper()
	mend := func() {}
	if c.prepare != nil {
		mend = c.prepare(s)
	}
	defer mend()
	args := s.planArgs()
	if c.command != nil {
		args = c.command(s)
	}
	before := s.versions()
	r := run(s.t, args...)
	same(s.t, "objects", before, s.versions())
	r.expect(s.t, c.code, c.says...)
	lines := slices.DeleteFunc(r.complaints(), func(line string) bool { return strings.HasPrefix(line, "To read more: ") })
	switch {
	case c.code == failed && (len(lines) != 1 || !strings.HasPrefix(lines[0], "error: ")):
		s.t.Errorf("the error is not one line:\n%s", r.stderr)
	case c.code == blocked && (len(lines) < 2 || !strings.HasPrefix(lines[0], "blocked by") || !strings.HasPrefix(lines[1], "  FAIL ")):
		s.t.Errorf("the findings are not a line each:\n%s", r.stderr)
	}
	s.t.Log(r.stderr)
}

// complaints returns the lines of stderr without the warnings of the checks, their headings and their explanations.
func (r result) complaints() []string {
	return slices.DeleteFunc(strings.Split(strings.TrimRight(r.stderr, "\n"), "\n"), func(line string) bool {
		return line == "" || strings.HasPrefix(line, "  WARN ") || strings.HasPrefix(line, "Worth knowing") || strings.HasPrefix(line, "Reading both sides") ||
			strings.HasPrefix(line, "       to read more: ") || strings.HasPrefix(line, "       https://") || regexp.MustCompile(`^[A-Z][a-z]+:$`).MatchString(line)
	})
}

// with returns the arguments with one flag set to another value.
func with(args []string, flag, value string) []string {
	out := append([]string{}, args...)
	for i := range out {
		if out[i] == flag {
			out[i+1] = value
			return out
		}
	}
	return append(out, flag, value)
}

// command returns the arguments of a command.
type command = func(*migration) []string

func badInput() []refusal {
	plan := func(flag, value string) command {
		return func(s *migration) []string { return with(s.planArgs(), flag, value) }
	}
	return []refusal{
		{name: "a kubeconfig that does not exist", command: plan("--kubeconfig", "/nowhere/config"), code: failed, says: []string{"/nowhere/config"}},
		{name: "a kubeconfig of the destination that does not exist", command: plan("--to-kubeconfig", "/nowhere/config"), code: failed, says: []string{"destination", "/nowhere/config"}},
		{name: "an unknown context", command: plan("--context", "north"), code: failed, says: []string{`no context "north"`, "it has: east"}},
		{name: "a negative budget", command: plan("--max-unavailable", "-1"), code: failed, says: []string{"--max-unavailable -1"}},
		{name: "more than the budget allows", command: plan("--max-unavailable", "2"), code: failed, says: []string{"--max-unavailable 2", "30%", "PodDisruptionBudget web"}},
		{name: "a namespace that does not exist", command: plan("--to-namespace", "nowhere"), code: blocked, says: []string{"namespace nowhere", "does not exist on the destination"}},
		{name: "a set that does not exist", command: func(s *migration) []string {
			args := s.planArgs()
			args[1] = "wob"
			return args
		}, code: failed, says: []string{"StatefulSet", "/wob in east does not exist"}},
		{name: "source and destination are the same", command: func(s *migration) []string {
			return []string{"plan", "web", "--kubeconfig", bed.East.Kubeconfig, "-n", s.source.namespace}
		}, code: failed, says: []string{"source and destination are both", "give --to-namespace or --to-context"}},
		{name: "a name that no plan has", command: func(s *migration) []string { return s.args("abort") }, code: failed, says: []string{"there is no plan web in namespace"}},
		{name: "no terminal and no --yes", command: func(s *migration) []string {
			s.planned()
			return without(s.applyArgs(), "--yes")
		}, code: failed, says: []string{"not a terminal", "--yes"}},
	}
}

func badPlans() []refusal {
	return []refusal{
		{name: "a plan file that is not there", command: func(s *migration) []string { return s.applyArgsOf("/nowhere/plan.yaml") }, code: failed, says: []string{"/nowhere/plan.yaml", "no such file"}},
		{name: "malformed YAML", command: func(s *migration) []string { return s.applyArgsOf(s.file("{ kind: [")) }, code: failed, says: []string{"malformed YAML"}},
		{name: "a file of another kind", command: func(s *migration) []string { return s.applyArgsOf(s.file("kind: Pod\n")) }, code: failed, says: []string{`kind is "Pod"`}},
		{name: "a plan that was edited", command: func(s *migration) []string {
			return s.applyArgsOf(s.edited("count: 2", "count: 1"))
		}, code: failed, says: []string{"edited after it was made", "make a new one"}},
		{name: "a plan of another version", command: func(s *migration) []string {
			return s.applyArgsOf(s.edited("apiVersion: stsmigrate.dev/", "apiVersion: stsmigrate.dev/v0"))
		}, code: failed, says: []string{"is of version", "stsmigrate that made it"}},
		{name: "a plan whose source has changed since", prepare: func(s *migration) func() {
			s.planned()
			return s.edit(s.source, &appsv1.StatefulSet{}, `{"spec":{"revisionHistoryLimit":7}}`, `{"spec":{"revisionHistoryLimit":10}}`)
		}, command: func(s *migration) []string { return s.applyArgs() }, code: blocked, says: []string{"plan-current", "the spec of the source set"}},
		{name: "a plan that was made before its source was made again", prepare: func(s *migration) func() {
			s.planned()
			return s.replaced()
		}, command: func(s *migration) []string { return s.applyArgs() }, code: blocked, says: []string{"plan-current", "deleted and recreated"}},
	}
}

func obstacles() []refusal {
	return []refusal{
		{name: "two budgets", prepare: func(s *migration) func() {
			return s.put(s.source, newBudget(s.source.namespace, "web-too", nil))
		}, code: failed, says: []string{"PodDisruptionBudgets", "web-too", "delete one of them"}},
		{name: "another ConfigMap on the destination", prepare: func(s *migration) func() {
			return s.put(s.destination, &corev1.ConfigMap{ObjectMeta: s.destination.named("web"), Data: map[string]string{"mode": "slow"}})
		}, code: blocked, says: []string{"dependencies", "ConfigMap/web", "differs"}},
		{name: "an autoscaler on the source", prepare: func(s *migration) func() {
			return s.put(s.source, autoscaler(s.source))
		}, code: blocked, says: []string{"autoscaler", "HorizontalPodAutoscaler web scales it"}},
		{name: "an autoscaler on the destination", prepare: func(s *migration) func() {
			return s.put(s.destination, autoscaler(s.destination))
		}, code: blocked, says: []string{"autoscaler", "HorizontalPodAutoscaler web scales it"}},
		{name: "a set that an operator owns", prepare: (*migration).owned, code: blocked, says: []string{"owner", "controlled by ConfigMap web"}},
		{name: "a partition", prepare: func(s *migration) func() {
			return s.edit(s.source, &appsv1.StatefulSet{}, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}}}}`, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
		}, code: blocked, says: []string{"source-settled", "partition 1"}},
		{name: "a pod that is not ready", prepare: func(s *migration) func() {
			return s.unready("web-1")
		}, code: blocked, says: []string{"source-settled", "pod web-1", "not Ready"}},
		{name: "a set on the destination that has pods", prepare: (*migration).occupied, code: blocked, says: []string{"destination-free", "it has the ordinals [0..1]"}},
		{name: "a claim that is in the way", prepare: func(s *migration) func() {
			c := newClaim("data-web-1", cluster.WaitClass)
			c.Namespace = s.destination.namespace
			return s.put(s.destination, &c)
		}, code: blocked, says: []string{"destination-free", "data-web-1", "exists on the destination"}},
		{name: "a claim that a stray pod mounts", prepare: func(s *migration) func() {
			return s.put(s.source, strayPod(s.source, "data-web-0"))
		}, code: blocked, says: []string{"claims-unshared", "pod stray mounts it too"}},
		{name: "no permissions at all", command: func(s *migration) []string {
			return with(s.planArgs(), "--kubeconfig", s.stranger())
		}, code: failed, says: []string{"you may read neither namespace kube-system nor namespace", "`stsmigrate rbac web --user NAME`"}},
		{name: "few permissions", prepare: func(s *migration) (mend func()) {
			s.kubeconfig, mend = s.reader()
			return mend
		}, command: func(s *migration) []string {
			return with(s.planArgs(), "--kubeconfig", s.kubeconfig)
		}, code: blocked, says: []string{"permissions", "you may not"}},
	}
}
