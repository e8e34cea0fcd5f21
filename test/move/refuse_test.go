package move_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/test/cluster"
)

// refusal is a command that must fail before it writes anything.
type refusal struct {
	name string
	// prepare makes what is wrong and gives back how to mend it.
	prepare func(*scene) (mend func())
	// command is what is run; nil means the usual plan.
	command func(*scene) []string
	code    int
	// says are words of the one message.
	says []string
}

func TestRefusesWhatCannotWorkAndWritesNothing(t *testing.T) {
	inBothModes(t, cast{replicas: 2}, func(s *scene) {
		t := s.t
		for _, c := range append(badInput(), blockedChecks()...) {
			t.Run(c.name, func(t *testing.T) {
				s.t = t
				s.refuses(c)
			})
		}
		s.t = t
	})
}

func (s *scene) refuses(c refusal) {
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
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
	switch {
	case c.code == failed && (len(lines) != 1 || !strings.HasPrefix(lines[0], "error: ")):
		s.t.Errorf("the error is not one line:\n%s", r.stderr)
	case c.code == blocked && (len(lines) < 2 || !strings.HasPrefix(lines[0], "blocked by") || !strings.HasPrefix(lines[1], "  FAIL ")):
		s.t.Errorf("the findings are not a line each:\n%s", r.stderr)
	}
	s.t.Log(r.stderr)
}

// with gives the arguments with one flag set to another value.
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

func badInput() []refusal {
	return []refusal{
		{
			"a kubeconfig that does not exist", nil,
			func(s *scene) []string { return with(s.planArgs(), "--kubeconfig", "/nowhere/config") }, failed,
			[]string{"/nowhere/config"},
		},
		{
			"a kubeconfig of the destination that does not exist", nil,
			func(s *scene) []string { return with(s.planArgs(), "--to-kubeconfig", "/nowhere/config") }, failed,
			[]string{"destination", "/nowhere/config"},
		},
		{
			"an unknown context", nil,
			func(s *scene) []string { return with(s.planArgs(), "--context", "north") }, failed,
			[]string{`no context "north"`, "it has: east"},
		},
		{
			"a set that does not exist", nil,
			func(s *scene) []string { a := s.planArgs(); a[1] = "wob"; return a }, failed,
			[]string{"StatefulSet", "/wob in east does not exist"},
		},
		{"source and destination are the same", nil, func(s *scene) []string {
			return []string{"plan", "web", "--kubeconfig", bed.East.Kubeconfig, "-n", s.source.namespace}
		}, failed, []string{"source and destination are both", "give --to-namespace or --to-context"}},
		{
			"a negative budget", nil,
			func(s *scene) []string { return s.planArgs("--max-unavailable", "-1") }, failed,
			[]string{"--max-unavailable -1"},
		},
		{
			"more than the budget allows", nil,
			func(s *scene) []string { return s.planArgs("--max-unavailable", "2") }, failed,
			[]string{"--max-unavailable 2", "30%", "PodDisruptionBudget web"},
		},
		{"two budgets", func(s *scene) func() {
			return s.put(s.source, newBudget(s.source.namespace, "web-too", nil))
		}, nil, failed, []string{"PodDisruptionBudgets", "web-too", "delete one of them"}},
		{
			"a plan file that is not there", nil,
			func(s *scene) []string { return s.applyArgsOf("/nowhere/plan.yaml") }, failed,
			[]string{"/nowhere/plan.yaml", "no such file"},
		},
		{"malformed YAML", nil, func(s *scene) []string { return s.applyArgsOf(s.file("{ kind: [")) }, failed, []string{"malformed YAML"}},
		{"a file of another kind", nil, func(s *scene) []string { return s.applyArgsOf(s.file("kind: Pod\n")) }, failed, []string{`kind is "Pod"`}},
		{"a plan that was edited", nil, func(s *scene) []string {
			return s.applyArgsOf(s.edited("count: 2", "count: 1"))
		}, failed, []string{"edited after it was made", "make a new one"}},
		{"a plan of another version", nil, func(s *scene) []string {
			return s.applyArgsOf(s.edited("apiVersion: stsmigrate.dev/", "apiVersion: stsmigrate.dev/v0"))
		}, failed, []string{"is of version", "stsmigrate that made it"}},
		{"no terminal and no --yes", nil, func(s *scene) []string {
			s.planned()
			return without(s.applyArgs(), "--yes")
		}, failed, []string{"not a terminal", "--yes"}},
		{"a name that no plan has", nil, func(s *scene) []string { return s.args("abort") }, failed, []string{"there is no plan web in namespace"}},
		{
			"no permissions at all", nil,
			func(s *scene) []string { return with(s.planArgs(), "--kubeconfig", s.stranger()) }, failed,
			[]string{"forbidden"},
		},
	}
}

func blockedChecks() []refusal {
	return []refusal{
		{
			"a namespace that does not exist", nil,
			func(s *scene) []string { return with(s.planArgs(), "--to-namespace", "nowhere") }, blocked,
			[]string{"namespace nowhere", "does not exist on the destination"},
		},
		{"a plan whose source has changed since", func(s *scene) func() {
			s.planned()
			return s.edit(s.source, &appsv1.StatefulSet{}, `{"spec":{"revisionHistoryLimit":7}}`, `{"spec":{"revisionHistoryLimit":10}}`)
		}, func(s *scene) []string { return s.applyArgs() }, blocked, []string{"plan-current", "the spec of the source set"}},
		{"another ConfigMap on the destination", func(s *scene) func() {
			return s.put(s.destination, &corev1.ConfigMap{ObjectMeta: s.destination.named("web"), Data: map[string]string{"mode": "slow"}})
		}, nil, blocked, []string{"dependencies", "ConfigMap/web", "differs"}},
		{
			"an autoscaler on the source", func(s *scene) func() { return s.put(s.source, autoscaler(s.source)) },
			nil, blocked,
			[]string{"autoscaler", "HorizontalPodAutoscaler web scales it"},
		},
		{
			"an autoscaler on the destination", func(s *scene) func() { return s.put(s.destination, autoscaler(s.destination)) },
			nil, blocked,
			[]string{"autoscaler", "HorizontalPodAutoscaler web scales it"},
		},
		{"a set that an operator owns", (*scene).owned, nil, blocked, []string{"owner", "controlled by ConfigMap web"}},
		{"a partition", func(s *scene) func() {
			return s.edit(s.source, &appsv1.StatefulSet{}, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}}}}`, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
		}, nil, blocked, []string{"source-settled", "partition 1"}},
		{
			"a pod that is not ready", func(s *scene) func() { return s.unready("web-1") },
			nil, blocked,
			[]string{"source-settled", "pod web-1", "not Ready"},
		},
		{"a claim that is in the way", func(s *scene) func() {
			c := newClaim("data-web-1", cluster.WaitClass)
			c.Namespace = s.destination.namespace
			return s.put(s.destination, &c)
		}, nil, blocked, []string{"destination-free", "data-web-1", "exists on the destination"}},
		{
			"a claim that a stray pod mounts", func(s *scene) func() { return s.put(s.source, strayPod(s.source, "data-web-0")) },
			nil, blocked,
			[]string{"claims-unshared", "pod stray mounts it too"},
		},
		{
			"few permissions", func(s *scene) (mend func()) {
				s.kubeconfig, mend = s.reader()
				return mend
			}, func(s *scene) []string { return with(s.planArgs(), "--kubeconfig", s.kubeconfig) },
			blocked,
			[]string{"permissions", "you may not"},
		},
	}
}
