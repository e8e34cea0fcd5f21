package slicecontroller

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

const (
	// minMinor is the minor version of the oldest Kubernetes whose rules are known. maxMinor is that of the
	// newest one: the version of the API packages, and so of the known fields.
	minMinor, maxMinor = 34, 37
	// maxUnavailableMinor is the minor version of the first Kubernetes with maxUnavailable by default, with
	// Parallel updates that do not wait for broken pods (MU-1, MU-8), and with an end of updates under
	// OnDelete (RV-9). Between 1.34 and 1.36 no rule changed.
	maxUnavailableMinor = 37
)

// ruled returns the minor version of the Kubernetes whose rules apply to StatefulSets: emulated, such as
// 1.36, or the version of the API server. A server older than all known versions has the rules of the
// oldest one. A server newer than this release is refused: pods would silently lack the fields that this
// release does not know, and one of those may keep a pod safe.
func ruled(config *rest.Config, emulated string) (int, error) {
	if emulated != "" {
		return parsed(emulated)
	}
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return 0, err
	}
	v, err := c.ServerVersion()
	if err != nil {
		return 0, fmt.Errorf("asking the API server for its version: %w", err)
	}
	return known(v)
}

// parsed returns the minor version of a version such as 1.36, or an error if the version is not known.
func parsed(emulated string) (int, error) {
	m := regexp.MustCompile(`^1\.(\d{1,4})$`).FindStringSubmatch(emulated)
	if m != nil {
		if minor, err := strconv.Atoi(m[1]); err == nil && minor >= minMinor && minor <= maxMinor {
			return minor, nil
		}
	}
	return 0, fmt.Errorf("--emulated-version is %q: expected 1.%d to 1.%d", emulated, minMinor, maxMinor)
}

func known(v *version.Info) (int, error) {
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+")) // some providers write 34+
	anyway := fmt.Sprintf("--emulated-version=1.%d starts the controller anyway, with the rules of that version", maxMinor)
	switch {
	case err != nil || v.Major != "1":
		return 0, fmt.Errorf("the API server is of version %q (major %q, minor %q): expected 1.%d or earlier; %s", v.GitVersion, v.Major, v.Minor, maxMinor, anyway)
	case minor > maxMinor:
		return 0, fmt.Errorf("the API server is of Kubernetes 1.%d, and this release knows the fields of pods up to 1.%d: it would create pods without the newer fields. "+
			"Run a later release, or leave StatefulSets to the built-in controller; %s", minor, maxMinor, anyway)
	}
	return max(minor, minMinor), nil
}

// followed returns the traits of the built-in controller of a minor version, so that a cluster keeps
// its rules when this controller replaces the built-in one. With MaxUnavailable set explicitly, sets
// get the rules that came with it.
func followed(minor int, o Options) core.Traits {
	t := o.Gates
	t.OffsetPartition, t.AdoptOutside, t.CompleteEmpty = true, true, true
	t.CurrentStays = minor < maxUnavailableMinor
	t.OneAtATime = minor < maxUnavailableMinor
	if o.MaxUnavailable != nil {
		t.OneAtATime = !*o.MaxUnavailable
	}
	return t
}
