//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/performance/bench/traffic"
)

// moment is something that happens to an ordinal, in the order in which it happens.
type moment int

const (
	deleting moment = iota // on the source
	gone
	created // on the destination
	scheduled
	mounted
	pulled
	running
	ready
	moments
)

// spans are what lies between them.
func spans() []string {
	return []string{"terminate", "detach, hand over", "schedule", "mount", "image", "start", "ready"}
}

// stretch is when things happened to one ordinal, as they were first seen, and where.
type stretch struct {
	at    [moments]time.Time
	place string // the node of its placeholder, when that was deleted
	node  string // its own
}

// span returns how long a span took.
func (s *stretch) span(k int) time.Duration { return s.at[k+1].Sub(s.at[k]) }

// away is from when it was told to end until it is Ready.
func (s *stretch) away() time.Duration { return s.at[ready].Sub(s.at[deleting]) }

// journey is a move as it is seen from outside.
type journey struct {
	scene
	proof    plans.Proof
	members  []string
	requests requestsOf

	mu       sync.Mutex
	ordinals map[string]*stretch
}

// watch watches the pods of one side, and what is told of them.
func (j *journey) watch(t *testing.T, side int, p place) {
	t.Helper()
	pods, err := p.Set.CoreV1().Pods(p.namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := []watch.Interface{pods}
	if side == 1 {
		events, err := p.Set.CoreV1().Events(p.namespace).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, events)
	}
	for _, w := range all {
		t.Cleanup(w.Stop)
		go func() {
			for e := range w.ResultChan() {
				j.see(side, e, time.Now())
			}
		}()
	}
}

// see takes notice of one change.
func (j *journey) see(side int, e watch.Event, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch o := e.Object.(type) {
	case *corev1.Event:
		if slices.Contains(j.members, o.InvolvedObject.Name) && (o.Reason == "Pulling" || o.Reason == "Pulled") {
			s := j.of(o.InvolvedObject.Name)
			s.first(mounted, at)
			if o.Reason == "Pulled" {
				s.first(pulled, at)
			}
		}
	case *corev1.Pod:
		if of, is := strings.CutSuffix(o.Name, "-place"); is {
			if e.Type == watch.Deleted {
				j.of(of).place = o.Spec.NodeName
			}
			return
		}
		if !slices.Contains(j.members, o.Name) {
			return // an anchor
		}
		if side == 0 {
			j.leaves(o, e.Type == watch.Deleted, at)
		} else {
			j.arrives(o, at)
		}
	}
}

func (j *journey) leaves(pod *corev1.Pod, is bool, at time.Time) {
	if pod.DeletionTimestamp != nil {
		j.of(pod.Name).first(deleting, at)
	}
	if is {
		j.of(pod.Name).first(gone, at)
	}
}

func (j *journey) arrives(pod *corev1.Pod, at time.Time) {
	s := j.of(pod.Name)
	s.first(created, at)
	if pod.Spec.NodeName != "" {
		s.first(scheduled, at)
		s.node = pod.Spec.NodeName
	}
	if met(pod, corev1.PodReadyToStartContainers) == corev1.ConditionTrue {
		s.first(mounted, at)
	}
	if len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil {
		s.first(mounted, at)
		s.first(pulled, at)
		s.first(running, at)
	}
	if met(pod, corev1.PodReady) == corev1.ConditionTrue {
		s.first(ready, at)
	}
}

// first notes when something was first seen.
func (s *stretch) first(m moment, at time.Time) {
	if s.at[m].IsZero() {
		s.at[m] = at
	}
}

func (j *journey) of(pod string) *stretch {
	if j.ordinals[pod] == nil {
		j.ordinals[pod] = &stretch{}
	}
	return j.ordinals[pod]
}

// complete reports what has not been seen yet.
func (j *journey) complete(replicas int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.ordinals) != replicas {
		return fmt.Errorf("%d ordinals were seen", len(j.ordinals))
	}
	for name, s := range j.ordinals {
		for m, at := range s.at {
			if at.IsZero() {
				return fmt.Errorf("moment %d of %s was not seen", m, name)
			}
		}
	}
	return nil
}

// elsewhere returns how many ordinals are on another node than their placeholder was.
func (j *journey) elsewhere() (n int) {
	for _, s := range j.ordinals {
		if s.place != "" && s.place != s.node {
			n++
		}
	}
	return n
}

// table returns a line for each ordinal, in the order in which they moved.
func (j *journey) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s, %s\tAWAY\t%s\tPLACE\tNODE\n", j.name, j.proof, strings.ToUpper(strings.Join(spans(), "\t")))
	for _, name := range j.order() {
		s := j.ordinals[name]
		fmt.Fprintf(w, "%s\t%s", name, seconds(s.away()))
		for k := range spans() {
			fmt.Fprintf(w, "\t%s", seconds(s.span(k)))
		}
		fmt.Fprintf(w, "\t%s\t%s\n", cmp.Or(s.place, "-"), s.node)
	}
	fmt.Fprintf(w, "elsewhere: %d\n", j.elsewhere())
	_ = w.Flush() // into memory
	return b.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }

// requestsOf counts requests by what they are about. Those for Leases keep a process alive, and grow with the time alone.
type requestsOf map[traffic.Kind]map[string]int

func (a requestsOf) take(calls []traffic.Call) {
	for _, c := range calls {
		if c.Resource == "leases" {
			continue
		}
		if a[c.Kind] == nil {
			a[c.Kind] = map[string]int{}
		}
		a[c.Kind][c.Resource]++
	}
}

// number returns how many of a kind there are.
func (a requestsOf) number(kind traffic.Kind) (n int) {
	for _, k := range a[kind] {
		n += k
	}
	return n
}
