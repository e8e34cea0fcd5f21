package slicecontroller

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// core imports only the packages of the Kubernetes API, and so not that of the kind: the names must agree.
func TestTheCoreHasTheWordsOfTheKind(t *testing.T) {
	if core.EnforcedRollingUpdate != v1alpha1.EnforcedRollingUpdate {
		t.Errorf("%s and %s", core.EnforcedRollingUpdate, v1alpha1.EnforcedRollingUpdate)
	}
	if core.Protection != v1alpha1.ProtectionFinalizer {
		t.Errorf("%s and %s", core.Protection, v1alpha1.ProtectionFinalizer)
	}
}

// Processes for both kinds can run in one namespace.
func TestEitherKindElectsALeaderOfItsOwn(t *testing.T) {
	if a, b := native(core.Traits{}).lease, sliced(core.Traits{}).lease; a == b || a == "" || b == "" {
		t.Errorf("both elect with Lease %q (%q)", a, b)
	}
}

// Everything that a slice asks for reaches the core, and what the core stores is read again.
func TestTheCoreIsToldWhatASliceAsksFor(t *testing.T) {
	kind := sliced(core.Traits{})
	read := func(change func(*v1alpha1.StatefulSetSlice)) core.Traits {
		s := &v1alpha1.StatefulSetSlice{}
		change(s)
		return kind.read(s).Traits
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.StatefulSetSlice)
		has    func(core.Traits) bool
	}{
		"its claims are kept": {func(s *v1alpha1.StatefulSetSlice) { s.Annotations = map[string]string{RetainClaims: "true"} }, func(t core.Traits) bool { return t.RetainClaims }},
		"it is protected":     {func(s *v1alpha1.StatefulSetSlice) { s.Spec.DeletionProtection = true }, func(t core.Traits) bool { return t.Protected }},
		"its claims grow":     {func(s *v1alpha1.StatefulSetSlice) { s.Spec.VolumeClaimUpdatePolicy = v1alpha1.InPlace }, func(t core.Traits) bool { return t.ClaimsGrow }},
		"it evicts":           {func(s *v1alpha1.StatefulSetSlice) { s.Spec.UpdateStrategy.Evict = true }, func(t core.Traits) bool { return t.Evicts }},
		"it is paused":        {func(s *v1alpha1.StatefulSetSlice) { s.Spec.Paused = true }, func(t core.Traits) bool { return t.Paused }},
		"it rolls back": {func(s *v1alpha1.StatefulSetSlice) {
			s.Spec.UpdateStrategy.RollingUpdate = &v1alpha1.Rollout{OnFailure: v1alpha1.Rollback}
		}, func(t core.Traits) bool { return t.RollsBack }},
		"it leaves out ordinals": {func(s *v1alpha1.StatefulSetSlice) { s.Spec.ReserveOrdinals = []int32{3, 1, 3} }, func(t core.Traits) bool { return fmt.Sprint(t.Reserved) == "[1 3]" }},
		"it has a deadline":      {func(s *v1alpha1.StatefulSetSlice) { s.Spec.ProgressDeadlineSeconds = new(int32(30)) }, func(t core.Traits) bool { return t.Deadline == 30*time.Second }},
	} {
		if c.has(read(func(*v1alpha1.StatefulSetSlice) {})) || !c.has(read(c.change)) {
			t.Errorf("%s: without it %+v, with it %+v", name, read(func(*v1alpha1.StatefulSetSlice) {}), read(c.change))
		}
	}
	now := metav1.NewTime(time.Unix(1, 0))
	want := core.Status{
		Told: []metav1.Condition{{Type: core.RolledBack}}, Ordinals: &core.Range{Start: 2, End: 5}, Progressed: &now, Failed: "web-b",
	}
	want.CurrentRevision, want.UpdateRevision = "web-a", "web-b"
	s := &v1alpha1.StatefulSetSlice{}
	kind.tell(s, want)
	if diff := cmp.Diff(want, kind.read(s).Status); diff != "" {
		t.Error(diff)
	}
}
