package slicecontroller

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"
)

// StatefulSets of a Kubernetes whose fields are not all known are left to others.
func TestANewerKubernetesIsRefused(t *testing.T) {
	for _, c := range []struct{ major, minor, says string }{
		{"1", "25", ""},
		{"1", strconv.Itoa(newest), ""},
		{"1", strconv.Itoa(newest) + "+", ""},
		{"1", strconv.Itoa(newest + 1), "the API server is of Kubernetes 1.38, and this release knows the fields of pods up to 1.37"},
		{"1", strconv.Itoa(newest+1) + "+", "Kubernetes 1.38"},
		{"2", "0", "expected 1.37 or an earlier one"},
		{"1", "", "expected 1.37 or an earlier one"},
	} {
		err := fits(&version.Info{Major: c.major, Minor: c.minor})
		if (err != nil) != (c.says != "") || err != nil && (!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "--any-kubernetes")) {
			t.Errorf("%s.%s: %v, expected %q", c.major, c.minor, err, c.says)
		}
	}
}

// What is known is what the API packages have.
func TestTheNewestKubernetesIsThatOfTheAPIPackages(t *testing.T) {
	module, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`k8s\.io/api v0\.(\d+)\.`).FindSubmatch(module)
	if len(found) != 2 || string(found[1]) != strconv.Itoa(newest) {
		t.Errorf("go.mod has %q, and newest is %d", found, newest)
	}
}
