package main

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
	"github.com/stsmigrate/stsmigrate/test/internal/witness"
)

func pod(name string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if change != nil {
		change(p)
	}
	return p
}

func TestViewSaysEachChangeOnce(t *testing.T) {
	var said []string
	east, west := map[int32]mark{}, map[int32]mark{}
	v := &view{
		names: []string{"east", "west"}, pods: []map[int32]mark{east, west}, count: 2, quiet: true,
		say: func(line string) { _, line, _ = strings.Cut(line, "  "); said = append(said, line) },
	}
	v.put(east, pod("web-0", nil), false)
	v.put(east, pod("web-1", nil), false)
	v.quiet = false
	stops := pod("web-1", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })
	v.put(east, stops, false)
	v.put(east, stops, false)
	v.put(east, pod("other", nil), false)
	v.put(east, stops, true)
	v.put(west, pod("web-1", func(p *corev1.Pod) { p.Status.Conditions = nil }), false)
	v.put(west, pod("web-1", nil), false)
	want := []string{
		"east [0 -]  west [. .]   unavailable 1 of d=1",
		"east [0 .]  west [. .]   unavailable 1 of d=1",
		"east [0 .]  west [. +]   unavailable 1 of d=1",
		"east [0 .]  west [. 1]   unavailable 0 of d=1",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}

func TestTerminalKeepsLinesWhole(t *testing.T) {
	var out bytes.Buffer
	screen := &terminal{out: &out}
	apply, watch := screen.as("apply"), screen.as("watch")
	for _, w := range []struct {
		who  *speaker
		text string
	}{{apply, "one\ntw"}, {watch, "three\n"}, {apply, "o\nfour"}} {
		if n, err := w.who.Write([]byte(w.text)); n != len(w.text) || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
	}
	apply.flush()
	watch.flush()
	want := "apply    | one\nwatch    | three\napply    | two\napply    | four\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("screen (-want +got):\n%s", diff)
	}
}

func TestMomentsComeFromTheSeed(t *testing.T) {
	pick := func(seed uint64) []time.Duration { return choose(rand.New(rand.NewPCG(seed, 0))) }
	if one := pick(1); len(one) != kills || !slices.Equal(one, pick(1)) || slices.Equal(one, pick(2)) {
		t.Errorf("seed 1 gives %v, then %v; seed 2 gives %v", one, pick(1), pick(2))
	}
}

// fine returns the findings of a successful move.
func fine() *findings {
	set := fixture.Set{Replicas: 2, Claims: []string{"data"}}
	handles := func() map[fixture.Disk]string {
		return map[fixture.Disk]string{{Ordinal: 0, Template: "data"}: "a", {Ordinal: 1, Template: "data"}: "b"}
	}
	return &findings{
		set: set, before: handles(), after: handles(), report: &witness.Report{MaxUnavailable: 1},
		sourceGone: true, pods: 2, killed: 10, wanted: 10,
	}
}

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*findings)
		want  string
	}{
		"fine":               {func(*findings) {}, ""},
		"another volume":     {func(f *findings) { f.after[fixture.Disk{Template: "data"}] = "c" }, "the volume of claim template data of ordinal 0 is different"},
		"no volume":          {func(f *findings) { f.after = nil; f.set.Replicas, f.pods = 1, 1 }, "the volume of claim template data of ordinal 0 is missing"},
		"two down":           {func(f *findings) { f.report.MaxUnavailable = 2 }, "2 ordinals were unavailable at once"},
		"a violation":        {func(f *findings) { f.report.Violations = []string{"S1: x"} }, "the witness saw S1: x"},
		"a destroyed volume": {func(f *findings) { f.destroyed = []string{"a"} }, "volumes were destroyed: a"},
		"a leftover":         {func(f *findings) { f.sourceGone = false }, "the source set is still there"},
		"a pod that is down": {func(f *findings) { f.pods = 1 }, "1 pods are ready in west, not 2"},
		"not killed enough":  {func(f *findings) { f.killed = 9 }, "apply finished after 9 of 10 kills; try another -seed"},
		"two things at once": {func(f *findings) { f.pods, f.sourceGone = 1, false }, "the source set is still there; 1 pods are ready in west, not 2"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fine()
			c.spoil(f)
			got := ""
			if err := f.verdict(); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTable(t *testing.T) {
	f := fine()
	f.after[fixture.Disk{Ordinal: 1, Template: "data"}] = "c"
	delete(f.before, fixture.Disk{Template: "data"})
	want := `ORDINAL  TEMPLATE  VOLUME BEFORE (east)  VOLUME AFTER (west)  RESULT
0        data                            a                    MISSING
1        data      b                     c                    DIFFERENT

times apply was killed             10
most ordinals unavailable at once  1 (d = 1)
violations the witness saw         0
volumes destroyed                  0`
	if diff := cmp.Diff(want, f.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
