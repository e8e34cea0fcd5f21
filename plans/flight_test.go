package plans

import (
	"slices"
	"testing"
)

// What is known of one ordinal of a wave is not taken for what is known of another.
func TestAFlightKeepsItsOrdinalsApart(t *testing.T) {
	f := &Flight{Ordinals: Slice{Start: 3, Replicas: 2}, Pods: []Pod{{Ordinal: 3, UID: "three", Proof: "gone"}}, Volumes: []Volume{
		{Ordinal: 3, Template: "data", Name: "pv-3"}, {Ordinal: 4, Template: "data", Name: "pv-4"}, {Ordinal: 3, Template: "logs", Name: "pv-3-logs"},
	}}
	if got := f.Pod(4); got != (Pod{Ordinal: 4}) {
		t.Errorf("an ordinal without a pod has %+v", got)
	}
	f.Put(Pod{Ordinal: 4, UID: "four"})
	f.Put(Pod{Ordinal: 4, UID: "four again"})
	if want := []Pod{{Ordinal: 3, UID: "three", Proof: "gone"}, {Ordinal: 4, UID: "four again"}}; !slices.Equal(f.Pods, want) {
		t.Errorf("%+v, expected %+v", f.Pods, want)
	}
	if three, four := f.Pod(3), f.Pod(4); three.UID != "three" || four.UID != "four again" {
		t.Errorf("ordinal 3 has %+v, ordinal 4 has %+v", three, four)
	}
	if got := f.Of(3); len(got) != 2 || got[0].Name != "pv-3" || got[1].Name != "pv-3-logs" {
		t.Errorf("ordinal 3 has the volumes %+v", got)
	}
}

// A flight that cannot be one of its plan is refused when it is read.
func TestAFlightIsOneOfItsPlan(t *testing.T) {
	p := &Plan{Claims: []ClaimMove{{Template: "data"}}}
	good := func() Flight {
		return Flight{Ordinals: Slice{Start: 3, Replicas: 2}, Pods: []Pod{{Ordinal: 4, Node: "a.example"}, {Ordinal: 3}}, Volumes: []Volume{{Ordinal: 4, Template: "data", Name: "pv-4", Handle: "disk-4"}}}
	}
	for what, spoil := range map[string]func(*Flight){
		"":                                      func(*Flight) {},
		"a pod of another ordinal":              func(f *Flight) { f.Pods[1].Ordinal = 5 },
		"a node that cannot be one":             func(f *Flight) { f.Pods[0].Node = "A node" },
		"a volume of another ordinal":           func(f *Flight) { f.Volumes[0].Ordinal = 2 },
		"a volume of another template":          func(f *Flight) { f.Volumes[0].Template = "logs" },
		"a volume whose name cannot be one":     func(f *Flight) { f.Volumes[0].Name = "../pv" },
		"a volume of which no disk is recorded": func(f *Flight) { f.Volumes[0].Handle = "" },
	} {
		f := good()
		spoil(&f)
		if err := f.Validate(p); (err != nil) != (what != "") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAFlightLeavesByItsOwnStep(t *testing.T) {
	s := Step{Ordinals: Slice{Start: 3, Replicas: 2}, From: Source}
	for what, f := range map[string]*Flight{
		"none": nil, "other ordinals": {Ordinals: Slice{Start: 4, Replicas: 1}, From: Source}, "the other way": {Ordinals: s.Ordinals, From: Destination},
	} {
		if f.LeavesBy(s) {
			t.Errorf("%s: it leaves by the step", what)
		}
	}
	if f := (&Flight{Ordinals: s.Ordinals, From: Source}); !f.LeavesBy(s) {
		t.Error("a wave does not leave by its own step")
	}
}
