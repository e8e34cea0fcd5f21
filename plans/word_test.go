package plans

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

func TestAWordIsKeptWithWhatItWasSaidOf(t *testing.T) {
	p := three()
	j := NewJournal(p)
	for seq := 1; ; seq++ { // up to the Vacate of the first wave
		s, more := p.Step(j.Leg, seq)
		if !more {
			t.Fatal("there is no Vacate")
		}
		j.Begun, j.Done = seq, seq-1
		if s.Op == Vacate {
			j.Flight = &Flight{Ordinals: s.Ordinals, From: s.From, Pods: []Pod{{Ordinal: s.Ordinals.Start, Node: "n1"}}}
			break
		}
	}
	for range 2 {
		if err := j.Vouch(p, Word{NodeGone: "n1"}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(j.Flight.NodesGone, []string{"n1"}) || !strings.Contains(strings.Join(j.Words(), ""), "node n1 is gone for good") {
		t.Errorf("%+v, %q", j.Flight, j.Words())
	}
	j.Depart(p, Return)
	if err := j.Vouch(p, Word{NodeGone: "n2", MaxUnavailable: 3, Readopt: true}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(j.Flight.NodesGone, []string{"n1", "n2"}) || j.allows(p) != 3 {
		t.Errorf("%+v, %d", j.Flight, j.allows(p))
	}
	if err := j.Vouch(p, Word{}); err != nil || j.Vouched.Readopt || j.allows(p) != 3 {
		t.Errorf("%v: %+v", err, j.Vouched)
	}
	for _, w := range []Word{{MaxUnavailable: 6}, {MaxUnavailable: -1}, {SourceGone: true}} {
		if err := j.Vouch(p, w); err == nil {
			t.Errorf("%+v was accepted", w)
		}
	}
	j.Flight = nil
	if err := j.Vouch(p, Word{NodeGone: "n1"}); err == nil {
		t.Error("nothing is in flight, and a node is vouched for")
	}
}

func TestASetThatWasMadeAgainIsComparedWithTheOneOfThePlan(t *testing.T) {
	p := three()
	three := int32(3)
	was := appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &three, ServiceName: "web"}}
	seen, err := Fingerprints(&was, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Start, p.Count, p.Seen = 0, 3, seen
	keep := appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType}
	one := int32(1)
	for name, c := range map[string]struct {
		edit func(*appsv1.StatefulSetSpec)
		same bool
	}{
		"with fewer ordinals": {func(s *appsv1.StatefulSetSpec) { s.Replicas = &one }, true},
		"with a start":        {func(s *appsv1.StatefulSetSpec) { s.Ordinals = &appsv1.StatefulSetOrdinals{} }, true},
		"keeping its claims":  {func(s *appsv1.StatefulSetSpec) { s.PersistentVolumeClaimRetentionPolicy = &keep }, true},
		"of another Service":  {func(s *appsv1.StatefulSetSpec) { s.ServiceName = "other" }, false},
		"of another template": {func(s *appsv1.StatefulSetSpec) { s.Template.Labels = map[string]string{"a": "b"} }, false},
	} {
		now := was.DeepCopy()
		c.edit(&now.Spec)
		if same, err := p.Seen.SameSource(now, p, Saved{}); err != nil || same != c.same {
			t.Errorf("%s: %t (%v)", name, same, err)
		}
	}
}
