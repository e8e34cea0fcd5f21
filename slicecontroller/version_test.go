package slicecontroller

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/version"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// The controller refuses StatefulSets of a Kubernetes that has fields unknown to this release.
func TestANewerKubernetesIsRefused(t *testing.T) {
	for _, c := range []struct{ major, minor, says string }{
		{"1", "25", ""},
		{"1", strconv.Itoa(maxMinor), ""},
		{"1", strconv.Itoa(maxMinor) + "+", ""},
		{"1", strconv.Itoa(maxMinor + 1), "the API server is of Kubernetes 1.38, and this release knows the fields of pods up to 1.37"},
		{"1", strconv.Itoa(maxMinor+1) + "+", "Kubernetes 1.38"},
		{"2", "0", "expected 1.37 or earlier; --emulated-version=1.37"},
		{"1", "", "expected 1.37 or earlier; --emulated-version=1.37"},
	} {
		_, err := known(&version.Info{Major: c.major, Minor: c.minor})
		if (err != nil) != (c.says != "") || err != nil && (!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "--emulated-version=1.37")) {
			t.Errorf("%s.%s: %v, expected %q", c.major, c.minor, err, c.says)
		}
	}
}

// The newest known version is that of the API packages.
func TestTheNewestKubernetesIsThatOfTheAPIPackages(t *testing.T) {
	module, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`k8s\.io/api v0\.(\d+)\.`).FindSubmatch(module)
	if len(found) != 2 || string(found[1]) != strconv.Itoa(maxMinor) {
		t.Errorf("go.mod has %q, and newest is %d", found, maxMinor)
	}
}

// A cluster keeps the rules of its Kubernetes when this controller replaces the built-in
// one, unless the user sets others.
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
		got, err := parsed(version)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%s: %d, %v", version, got, err)
		}
	}
}
