package slicecontroller

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// newest is the minor version of the last Kubernetes whose fields this release knows: that of its API packages.
const newest = 37

// known refuses to take care of the StatefulSets of an API server that is newer than this release. Pods would be made without
// the fields that it does not know, and nothing would say so: one of them may be what keeps a pod safe.
func known(config *rest.Config, anyKubernetes bool) error {
	if anyKubernetes {
		return nil
	}
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	v, err := c.ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	return fits(v)
}

func fits(v *version.Info) error {
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+")) // as some providers write it
	switch {
	case err != nil || v.Major != "1":
		return fmt.Errorf("the API server is of version %q (major %q, minor %q): expected 1.%d or an earlier one; --any-kubernetes goes on all the same", v.GitVersion, v.Major, v.Minor, newest)
	case minor > newest:
		return fmt.Errorf("the API server is of Kubernetes 1.%d, and this release knows the fields of pods up to 1.%d: it would make pods without those that are newer. "+
			"Run a later release, or leave StatefulSets to the built-in controller; --any-kubernetes goes on all the same", minor, newest)
	}
	return nil
}
