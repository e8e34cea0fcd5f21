package slicecontroller

import (
	"fmt"
	"regexp"
	"strconv"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// The minor versions of Kubernetes whose rules are known. Between 1.34 and 1.36 none of them changed.
const (
	oldestRules, newestRules = 34, 37
	// evenParallel is the first with maxUnavailable by default, with a Parallel update that does not wait for broken
	// pods (MU-1, MU-8), and with an end of updates under OnDelete (RV-9).
	evenParallel = 37
)

// followed are the traits of the built-in controller of a minor version, so that a cluster keeps the rules that it had
// when this one takes its place. Who asks for maxUnavailable by its gate gets the rules that came with it.
func followed(minor int, o Options) core.Traits {
	t := o.Gates
	t.OffsetPartition, t.AdoptOutside, t.CompleteEmpty = true, true, true
	t.CurrentStays = minor < evenParallel
	t.OneAtATime = minor < evenParallel
	if o.MaxUnavailable != nil {
		t.OneAtATime = !*o.MaxUnavailable
	}
	return t
}

// ruled returns the minor version whose rules are followed: the one that is asked for, or that of the API server. A
// server that is older or newer than all that are known has the rules of the nearest.
func ruled(config *rest.Config, emulated string) (int, error) {
	if emulated != "" {
		return minorOf(emulated)
	}
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return 0, err
	}
	v, err := c.ServerVersion()
	if err != nil {
		return 0, fmt.Errorf("asking the API server for its version: %w", err)
	}
	minor, err := strconv.Atoi(regexp.MustCompile(`^\d*`).FindString(v.Minor)) // "36+" of some providers
	if err != nil {
		return 0, fmt.Errorf("the API server is of version %q, with the minor version %q: expected a number; say whose rules are to be followed (--emulated-version)", v.GitVersion, v.Minor)
	}
	return min(max(minor, oldestRules), newestRules), nil
}

// minorOf reads 1.36.
func minorOf(version string) (int, error) {
	m := regexp.MustCompile(`^1\.(\d+)$`).FindStringSubmatch(version)
	if m != nil {
		if minor, err := strconv.Atoi(m[1]); err == nil && minor >= oldestRules && minor <= newestRules {
			return minor, nil
		}
	}
	return 0, fmt.Errorf("--emulated-version is %q: expected 1.%d to 1.%d", version, oldestRules, newestRules)
}
