package plans

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

func TestKindsOfSets(t *testing.T) {
	if kind := v1alpha1.Kind().Kind; kind != SliceKind || v1alpha1.EnforcedRollingUpdate != enforcedRollingUpdate {
		t.Errorf("the kind is %s, and %s here; its strategy %s", kind, SliceKind, v1alpha1.EnforcedRollingUpdate)
	}
	for word, want := range map[string]string{"": "", "sts": "", "StatefulSet": "", "statefulsets": "", "stss": SliceKind, "StatefulSetSlice": SliceKind, "statefulsetslices": SliceKind} {
		if got, err := KindOf(word); err != nil || got != want {
			t.Errorf("%q: %q, %v", word, got, err)
		}
	}
	if _, err := KindOf("deploy"); err == nil || !strings.Contains(err.Error(), "expected StatefulSet (sts) or StatefulSetSlice (stss)") {
		t.Errorf("%v", err)
	}
	for field, text := range map[string]string{
		"spec.source.kind": "source: {name: web, kind: Deployment}", "spec.destination.kind": "source: {name: web}\n  destination: {kind: Deployment}",
	} {
		if _, err := DecodeMigration([]byte("apiVersion: stsmigrate.dev/v1alpha1\nkind: Migration\nspec:\n  " + text + "\n")); err == nil || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// A StatefulSet has no EnforcedRollingUpdate.
func TestAStatefulSetOnTheDestinationRollsAsItCan(t *testing.T) {
	in := patchedInputs()
	in.Set.Spec.UpdateStrategy.Type = v1alpha1.EnforcedRollingUpdate
	for kind, want := range map[string]appsv1.StatefulSetUpdateStrategyType{"": appsv1.RollingUpdateStatefulSetStrategyType, SliceKind: v1alpha1.EnforcedRollingUpdate} {
		in.Destination.Kind = kind
		after, err := in.DestinationSet()
		if err != nil || after.Spec.UpdateStrategy.Type != want {
			t.Errorf("%q: %v, %v", kind, after.Spec.UpdateStrategy.Type, err)
		}
	}
}

// The names of a plan's ConfigMaps derive from its own name, so some plan names collide with other objects.
func TestNamesThatOthersNeedAreRefused(t *testing.T) {
	for name, bad := range map[string]bool{
		"db": false, "journal": false, "adopt": false, "my-consent": false,
		"db-journal": true, "consent": true, "adopt-web": true, "Web": true, "": true,
	} {
		if err := RefuseName(name); (err != nil) != bad || bad && !strings.Contains(err.Error(), "--name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
