package planstest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// Set returns a set named web with these ordinals.
func Set(start, replicas int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set-uid"},
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, Ordinals: &appsv1.StatefulSetOrdinals{Start: start}},
	}
}

// Templates returns a set with these claim templates.
func Templates(names ...string) *appsv1.StatefulSet {
	s := Set(2, 3)
	for _, n := range names {
		s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: n}})
	}
	return s
}

// Inputs returns the inputs of a plan over the ordinals 2, 3 and 4, between two clusters.
func Inputs() build.Inputs {
	return build.Inputs{
		Name: "web", ID: "abc", MaxUnavailable: 1, Set: Set(2, 3),
		Source:      plans.Ref{Cluster: "one", Context: "east", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "two", Context: "west", Namespace: "shop", Name: "web"},
	}
}

// Three returns a plan over the ordinals 2, 3 and 4, within one cluster. It has no hash.
func Three() *plans.Plan {
	return &plans.Plan{
		Name: "web", ID: "web-abc", Start: 2, Count: 3, MaxUnavailable: 1, Window: 1,
		Source:      plans.Ref{Cluster: "one", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "one", Namespace: "mall", Name: "web"},
		Claims:      []plans.ClaimMove{{Template: "data", Mode: plans.Rebind}},
	}
}

// Asked returns a gate with the defaults that build.Plan sets.
func Asked(change func(*plans.Gate)) []plans.Gate {
	g := plans.Gate{Name: "g", When: plans.AfterGrow, Exec: &plans.Exec{Command: []string{"x"}}, Timeout: metav1.Duration{Duration: time.Minute}, Interval: metav1.Duration{Duration: time.Second}}
	change(&g)
	return []plans.Gate{g}
}

// Gated returns a plan with a gate of each kind.
func Gated(tb testing.TB) *plans.Plan {
	tb.Helper()
	in := Inputs()
	job := batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "j", Image: "j"}}}}}
	in.Gates = []plans.Gate{
		{Name: "drain", When: plans.BeforeShrink, Exec: &plans.Exec{Command: []string{"drain"}}},
		{Name: "vars", When: plans.AfterGrow, HTTPGet: &corev1.HTTPGetAction{Path: "/vars", Port: intstr.FromInt32(80)}},
		{Name: "rejoin", When: plans.AfterGrow, Job: &job},
	}
	p, err := build.Plan(in)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// Newer returns a JSON document as the next release might write it, with fields that this release does not
// know, at every depth.
func Newer(tb testing.TB, v any) []byte {
	tb.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	out := strings.Replace(string(raw), "{", `{"mood":{"is":["good"]},`, 1)
	out = strings.Replace(out, `"lowest":`, `"slope":7,"lowest":`, 1)
	return []byte(strings.Replace(out, `"ordinal":4,`, `"ordinal":4,"zone":"a",`, 1))
}

// Sealed returns a plan as an attacker would write it, with a valid hash.
func Sealed(tb testing.TB, p *plans.Plan) []byte {
	tb.Helper()
	if err := p.Seal(); err != nil {
		tb.Fatal(err)
	}
	raw, err := plans.Encode(p)
	if err != nil { // not every JSON value has a YAML form
		raw, err = json.Marshal(p)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}
