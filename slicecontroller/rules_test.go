package slicecontroller

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// A cluster keeps the rules of its Kubernetes when this controller takes over, unless somebody asks for others.
func TestStatefulSetsFollowTheRulesOfTheirKubernetes(t *testing.T) {
	always := core.Traits{OffsetPartition: true, AdoptOutside: true, CompleteEmpty: true}
	before := always
	before.OneAtATime, before.CurrentStays = true, true
	gated, ungated := before, always
	gated.OneAtATime, ungated.OneAtATime = false, true
	yes, no := true, false
	for name, c := range map[string]struct {
		minor int
		asked *bool
		want  core.Traits
	}{
		"MU-1 RV-9 1.34":      {34, nil, before},
		"MU-1 RV-9 1.36":      {36, nil, before},
		"MU-1 1.36, its gate": {36, &yes, gated},
		"MU-1 RV-9 1.37":      {37, nil, always},
		"MU-1 1.37, its gate": {37, &no, ungated},
	} {
		if diff := cmp.Diff(c.want, followed(c.minor, Options{MaxUnavailable: c.asked})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestEmulatedVersions(t *testing.T) {
	for version, want := range map[string]int{"1.34": 34, "1.37": 37, "1.33": 0, "1.38": 0, "37": 0, "2.36": 0, "1.36.3": 0, "1.": 0} {
		got, err := minorOf(version)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%s: %d, %v", version, got, err)
		}
	}
}
