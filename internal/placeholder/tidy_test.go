package placeholder

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// leftovers are placeholders web-1-place in mall, while a wave of web-1 moves. The set of mall has the UID u.
func leftovers() map[string]leftover {
	mine, over := plans.Stamp{Plan: "2", Epoch: 4}, plans.Stamp{Plan: "1", Epoch: 9}
	return map[string]leftover{
		"of a plan that is over":                       {stamp: over, from: plans.Source, set: mine, owner: "u", goes: "of plan web, which is over"},
		"of a plan that is over, on the side left":     {stamp: over, from: plans.Destination, set: mine, owner: "u", goes: "of plan web, which is over"},
		"of a plan that has the set":                   {stamp: over, from: plans.Source, set: over, owner: "u"},
		"of a plan of another set":                     {stamp: over, from: plans.Source, set: mine, owner: "other"},
		"of a plan that is over, adopted":              {stamp: over, from: plans.Source, set: mine, owner: "u", adopted: true},
		"of this plan, for a wave to come":             {stamp: plans.Stamp{Plan: "2", Epoch: 3}, from: plans.Source, set: mine, owner: "u"},
		"of this plan, on the side that is left":       {stamp: plans.Stamp{Plan: "2", Epoch: 3}, from: plans.Destination, set: mine, owner: "u", goes: "of no use on the side that is left"},
		"of a later process, on the side that is left": {stamp: plans.Stamp{Plan: "2", Epoch: 5}, from: plans.Destination, set: mine, owner: "u"},
		"of nobody": {from: plans.Destination, set: mine, owner: "u"},
	}
}

type leftover struct {
	stamp, set plans.Stamp // of the placeholder, and of the set
	from       plans.Side
	owner      types.UID
	adopted    bool
	goes       string // why, or "" if it stays
}

// A placeholder that is of no use goes, and one of a plan that is over goes with the next plan of its set.
func TestAPlaceholderGoesWhenItIsOfNoUse(t *testing.T) {
	for name, c := range leftovers() {
		p := &plans.Plan{
			Name: "web", ID: "2", Count: 3, Source: plans.Ref{Namespace: "shop", Name: "web"}, Destination: plans.Ref{Namespace: "mall", Name: "web"},
			Placeholder: plans.Placeholder{Proof: plans.Warm},
		}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web", UID: "u"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32)}}
		c.set.Put(set)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "mall", Name: "web-1-place", Labels: map[string]string{Label: "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: c.owner, Controller: &c.adopted}},
		}}
		if c.stamp.Plan != "" {
			c.stamp.Put(pod)
		}
		there, none := fake.NewClientBuilder().WithObjects(set, pod).Build(), fake.NewClientBuilder().Build()
		on := clusters.Clusters{plans.Source: none, plans.Destination: there}
		m := plans.StepContext{Step: plans.Step{Op: plans.Shrink, From: c.from, Ordinals: plans.Slice{Start: 1, Replicas: 1}}, Stamp: plans.Stamp{Plan: "2", Epoch: 4}}
		got, err := Steps{Pair: clusters.Pair{Plan: p, On: on}}.Tidy(t.Context(), m)
		if err != nil || (got.Standing == plans.Before) != (c.goes != "") || !strings.Contains(got.Reason, c.goes) {
			t.Errorf("%s: %v (%s), %v; expected that it goes: %q", name, got.Standing, got.Reason, err, c.goes)
		}
	}
}
