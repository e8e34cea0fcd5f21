package storage

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// The deletion of a leftover volume object is not conditional on the object that stays. So that one is read live: a kept
// answer may be of a moment ago, and the leftover would be the last object for the disk.
func TestTheObjectThatStaysIsReadLive(t *testing.T) {
	here := fake.NewClientBuilder().WithObjects(volume("shop", "old")).Build()
	there := fake.NewClientBuilder().WithObjects(claimIn("mall", "new"), volume("mall", "new")).Build()
	p, kept := apart(), &clusters.ReadCache{}
	kept.Clear()
	on := kept.Clients(p, clusters.Clusters{plans.Source: here, plans.Destination: there})
	for _, side := range []plans.Side{plans.Source, plans.Destination} {
		if err := on[side].Get(t.Context(), client.ObjectKey{Name: "pv-1"}, &corev1.PersistentVolume{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := there.Delete(t.Context(), volume("mall", "new")); err != nil {
		t.Fatal(err)
	}
	m := at(plans.Settle)
	if s, err := Looks(p, on, nil)[m.Op](t.Context(), m); err != nil || s.Standing != plans.Conflict {
		t.Errorf("%s (%s), %v, expected %s", s.Standing, s.Reason, err, plans.Conflict)
	}
}
