package slicecontroller

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// core imports only the packages of the Kubernetes API, and so not that of the kind: the names must agree.
func TestTheCoreHasTheWordsOfTheKind(t *testing.T) {
	if core.EnforcedRollingUpdate != v1alpha1.EnforcedRollingUpdate {
		t.Errorf("%s and %s", core.EnforcedRollingUpdate, v1alpha1.EnforcedRollingUpdate)
	}
}

// Processes for both kinds can run in one namespace.
func TestEitherKindElectsALeaderOfItsOwn(t *testing.T) {
	if a, b := native(core.Traits{}).lease, sliced(core.Traits{}).lease; a == b || a == "" || b == "" {
		t.Errorf("both elect with Lease %q (%q)", a, b)
	}
}
