package scheduling_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling"
	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling/schedulingtest"
)

// The search leaves out choices that are like others. The same comes out when each node is tried for each pod.
func TestTheSearchTriesWhatMatters(t *testing.T) {
	outcomes, rules := map[scheduling.Outcome]int{}, map[string]int{
		"with taint": 0, "node affinity": 0, "volume cannot be reached": 0, "too little cpu": 0, "too little pods": 0, "too little example.com/gpu": 0, "host port": 0,
		"attach no more": 0, "without the pods": 0, "keeps away from": 0, "keeps it away": 0, "without label": 0, "lets no more in": 0,
	}
	for seed := range uint64(3000) {
		w, q, err := schedulingtest.Random("w", seed).Asked()
		if err != nil {
			t.Fatal(err)
		}
		got := scheduling.Ask(w, q)
		b := brute{w: w, q: q, host: "w.example.com/host", left: 3000}
		can, cannot := b.explore(nil)
		if b.left < 0 {
			continue
		}
		want := map[[2]bool]scheduling.Outcome{{true, false}: scheduling.Fits, {false, true}: scheduling.Stuck, {true, true}: scheduling.Depends}[[2]bool{can, cannot}]
		if got.Outcome != want {
			t.Errorf("seed %d: %+v, expected %d", seed, got, want)
		}
		outcomes[want]++
		for rule := range rules {
			if strings.Contains(got.Why, rule) {
				rules[rule]++
			}
		}
	}
	for rule, times := range rules {
		if times < 10 {
			t.Errorf("%d worlds in which a node is %q", times, rule)
		}
	}
	for _, o := range []scheduling.Outcome{scheduling.Fits, scheduling.Stuck, scheduling.Depends} {
		if outcomes[o] < 50 {
			t.Errorf("only %d worlds of outcome %d: %v", outcomes[o], o, outcomes)
		}
	}
}

// brute tries every node for every pod, each with a question of its own.
type brute struct {
	w    *scheduling.World
	q    scheduling.Question
	host string
	left int
}

// at is where a pod has been put: its wave, its place there, its node.
type at struct{ wave, pod, node int }

func (b *brute) explore(put []at) (can, cannot bool) {
	has := func(wave, pod int) bool {
		return slices.ContainsFunc(put, func(p at) bool { return p.wave == wave && p.pod == pod })
	}
	for n, wave := range b.q.Waves {
		moved, waits := false, false
		for k := range wave.Arrives {
			if has(n, k) || waits && !b.q.Together {
				continue
			}
			waits = true
			for node := range b.w.Nodes {
				if b.left--; b.left < 0 {
					return can, cannot
				}
				if b.takes(put, n, k, node) {
					moved = true
					a, c := b.explore(append(slices.Clone(put), at{n, k, node}))
					can, cannot = can || a, cannot || c
				}
			}
		}
		if waits {
			return can, cannot || !moved
		}
	}
	return true, false
}

// takes asks for one pod on one node.
func (b *brute) takes(put []at, n, k, node int) bool {
	w := *b.w
	w.Pods = slices.Clone(w.Pods)
	for _, p := range put {
		pod := b.q.Waves[p.wave].Arrives[p.pod].Pod
		pod.Node = w.Nodes[p.node].Name
		w.Pods = append(w.Pods, pod)
	}
	w.Attached = map[string]map[scheduling.Disk]bool{}
	for _, later := range b.q.Waves[n+1:] {
		w.Pods = append(w.Pods, later.Leaves...)
	}
	for _, p := range w.Pods {
		for _, d := range p.Disks {
			if w.Attached[p.Node] == nil {
				w.Attached[p.Node] = map[scheduling.Disk]bool{}
			}
			w.Attached[p.Node][d] = true
		}
	}
	a := b.q.Waves[n].Arrives[k]
	a.Reach = append(slices.Clone(a.Reach), &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
		Key: b.host, Operator: corev1.NodeSelectorOpIn, Values: []string{fmt.Sprint("host-", node)},
	}}}}})
	return scheduling.Ask(&w, scheduling.Question{Waves: []scheduling.Wave{{Arrives: []scheduling.Arrival{a}}}}).Outcome == scheduling.Fits
}
