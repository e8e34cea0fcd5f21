package sets

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/storage"
)

// The set may grow over a volume under the other name of its driver, and over no other disk.
func TestAnOrdinalFindsItsDiskUnderAnotherDriverName(t *testing.T) {
	const ours = "spec: {csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}}"
	for text, found := range map[string]bool{
		"spec: {csi: {driver: ebs.csi.eks.amazonaws.com, volumeHandle: vol-1}}": true,
		"spec: {csi: {driver: ebs.csi.eks.amazonaws.com, volumeHandle: vol-2}}": false,
	} {
		pv, claim := planstest.Parsed[corev1.PersistentVolume](t, ours), corev1.PersistentVolumeClaim{}
		claim.Namespace, claim.Name, claim.UID, claim.Spec.VolumeName, claim.Status.Phase = "shop", "data-web-0", "c", "pv-0", corev1.ClaimBound
		pv.Name, pv.Spec.ClaimRef = "pv-0", &corev1.ObjectReference{Namespace: "shop", Name: claim.Name, UID: claim.UID}
		other, arrived := planstest.Parsed[corev1.PersistentVolume](t, text), claim
		other.Name, other.Spec.ClaimRef, arrived.Namespace = "pv-0", &corev1.ObjectReference{Namespace: "mall", Name: claim.Name, UID: claim.UID}, "mall"
		made := func(o ...client.Object) client.Client {
			return fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(o...).Build()
		}
		w := Steps{Pair: clusters.Pair{
			Plan: &plans.Plan{
				Source: plans.Ref{Cluster: "one", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: "two", Namespace: "mall", Name: "web"},
				Count: 1, Claims: []plans.ClaimMove{{Template: "data", Mode: plans.Reimport}},
			},
			On: clusters.Clusters{plans.Source: made(&pv, &claim), plans.Destination: made(&other, &arrived)},
		}}
		vols, why, err := storage.Volumes(t.Context(), w.Plan, w.On, plans.Source, 0)
		if err != nil || why != "" {
			t.Fatal(why, err)
		}
		m := plans.StepContext{Step: plans.Step{Ordinals: plans.Slice{Replicas: 1}, From: plans.Source}, Flight: &plans.Flight{Ordinals: plans.Slice{Replicas: 1}, From: plans.Source, Volumes: vols}}
		if why, err := arrivalOf(w.Pair).empty(t.Context(), m); err != nil || (why == "") != found {
			t.Errorf("%s: %q, %v", text, why, err)
		}
	}
}
