package storage

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// The claim of the source is saved on several volumes: on ours, on one of another plan, and on one from another
// namespace, whose claim has the same name.
func TestAVolumeIsFoundByTheClaimThatThePlanSavedOnIt(t *testing.T) {
	elsewhere, err := Manifest(claimIn("other", "x"))
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.Name = name }
	}
	saved := func(pv *corev1.PersistentVolume) { pv.Annotations[plans.ClaimAnnotation] = elsewhere }
	c := fake.NewClientBuilder().WithObjects(
		volume("shop", "old"), volume("shop", "x", named("pv-2"), stampedOn("other/1/2")), volume("elsewhere", "x", named("pv-3"), saved),
	).Build()
	on := map[plans.Side]client.Client{plans.Source: c, plans.Destination: c}
	all, err := Traces(t.Context(), rebind(), on, func(client.Object) {})
	planstest.Unread(t, on, func(on map[plans.Side]client.Client) (plans.Observation, error) {
		all, err := Traces(t.Context(), rebind(), on, func(client.Object) {})
		return plans.Observation{Reason: fmt.Sprintf("%d traces", len(all))}, err
	})
	if err != nil || len(all) != 5 {
		t.Fatalf("%d traces, %v", len(all), err)
	}
	trace := all[4]
	pv := trace.Volumes[plans.Source]
	if pv == nil || pv.Name != "pv-1" || !trace.Protected(rebind()) {
		t.Fatalf("volume %v, expected pv-1", pv)
	}
	if trace.Promise(rebind(), plans.Source) == nil || trace.Promise(rebind(), plans.Destination) != nil {
		t.Error("its claimRef names the claim of the source, and of the source alone")
	}
	if v, ok := trace.Volume(rebind(), plans.Destination); !ok || v.Claim != "" {
		t.Errorf("%+v, expected no UID of a claim of the destination", v)
	}
}
