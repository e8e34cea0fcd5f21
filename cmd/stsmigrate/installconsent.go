package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/plans"
)

// consentKind returns the kind of a cluster's consent, if it is among objects.
func consentKind(all []*unstructured.Unstructured) *unstructured.Unstructured {
	for _, o := range all {
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		if o.GetKind() == "CustomResourceDefinition" && kind == access.VolumeConsent().GetKind() {
			return o
		}
	}
	return nil
}

// agreedBefore returns an error if the policy that is in force compares volumes with a ConfigMap, as that of older releases
// does, and the ConfigMap has volumes to which the cluster does not agree by a VolumeConsent yet. A plan that is under
// way could not create them any more. The kind itself is applied: it changes nothing that is in force, and the consents
// cannot be written without it.
func agreedBefore(ctx context.Context, on client.Client, kind *unstructured.Unstructured) error {
	var policy admissionv1.ValidatingAdmissionPolicy
	switch err := on.Get(ctx, client.ObjectKey{Name: access.NewVolumesPolicy}, &policy); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	if policy.Spec.ParamKind == nil || policy.Spec.ParamKind.Kind != "ConfigMap" {
		return nil
	}
	_, old, err := access.OldVolumes(ctx, on)
	if err != nil {
		return err
	}
	have, err := access.AgreedVolumes(ctx, on, plans.Destination)
	if err != nil {
		return err
	}
	agreed := access.PlansOf(have)
	var lost []string
	for name, plan := range old {
		if agreed[name] != plan {
			lost = append(lost, plan)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	slices.Sort(lost)
	lost = slices.Compact(lost)
	if err := on.Apply(ctx, client.ApplyConfigurationFromUnstructured(kind), client.FieldOwner("stsmigrate")); err != nil {
		return fmt.Errorf("%s: %w", titled(kind), err)
	}
	return fmt.Errorf("this cluster agrees to volumes by ConfigMap kube-system/%s, which these policies do not read, and plans %s could not create theirs any more; only the kind VolumeConsent was applied, and what is in force was left alone. For each of these plans let the cluster agree anew: `stsmigrate consent --cluster --plan FILE --side destination | kubectl apply --server-side -f -` (--side source in the cluster that the set leaves). For one that has ended: `stsmigrate revoke PLAN`, or `kubectl -n kube-system edit configmap %[1]s`. Then give this command again",
		access.OldVolumesMap, strings.Join(lost, ", "))
}

// beginConsent creates what the policy of new volumes compares with, where there is none. An API server serves a new kind
// a moment after it was created.
func beginConsent(ctx context.Context, on client.Client) error {
	served := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Steps: 12}
	unserved := func(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }
	err := retry.OnError(served, unserved, func() error { return on.Create(ctx, access.VolumeConsent()) })
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%s: %w; what was printed before has been applied, and the command can be given again", titled(access.VolumeConsent()), err)
	}
	return nil
}
