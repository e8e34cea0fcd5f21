package program

import (
	"os"
	"strings"
	"testing"
)

// A program of a release names the image of its own release. No image is guessed for another one.
func TestAReleaseNamesItsOwnImage(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "ghcr.io/stsmigrate/placeholder:v1.2.3", "v1.2.3-rc.1": "ghcr.io/stsmigrate/placeholder:v1.2.3-rc.1",
		"devel": "", "": "", "v1.2.3-dirty": "", "v1.2.3-5-gabcdef0": "", "v1.2.3-rc.1-5-gabcdef0": "", "v0.0.0-20261130101010-abcdef012345": "", "v1.2.4-0.20261130101010-abcdef012345": "", "v1.2.3+dirty": "", "abcdef0": "",
	} {
		if got := PlaceholderImage(version); got != want {
			t.Errorf("%q: %q, expected %q", version, got, want)
		}
	}
	chart, err := os.ReadFile("../../../deploy/chart/values.yaml")
	if err != nil || !strings.Contains(string(chart), "\n  registry: "+strings.TrimSuffix(registry, "/")+"\n") {
		t.Errorf("the chart has another registry: %v", err)
	}
}
