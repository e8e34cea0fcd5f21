package pods

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/owners"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// Needs lists what the pods of the destination need in its namespace: the objects that the patched set names,
// and the Secrets that its service account names. An object that a generator makes on the source is required
// there, not copied. Needs only reads. It leaves out objects that it may not read: the checks require these
// rights.
func Needs(ctx context.Context, on clusters.Clusters, in build.Inputs) ([]plans.Dependency, error) {
	set, err := in.DestinationSet()
	if err != nil {
		return nil, err
	}
	w := clusters.Pair{Plan: &plans.Plan{Source: in.Source, Destination: in.Destination}, On: on}
	own, need := build.Dependencies(in.Set), build.Dependencies(set)
	brought, err := brought(ctx, w, set.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	for _, d := range brought {
		if !listed(need, d) {
			need = append(need, d)
		}
	}
	for k, d := range need {
		o, err := w.Dependency(ctx, plans.Source, d)
		switch {
		case apierrors.IsForbidden(err):
		case err != nil:
			return nil, err
		case o == nil && !listed(own, d):
			need[k].Required = "named by a patch, and not there on the source"
		case o != nil && owners.GeneratedBy(o) != "":
			need[k].Required = "made by " + owners.GeneratedBy(o)
		}
	}
	return build.SortDependencies(need), nil
}

func listed(list []plans.Dependency, d plans.Dependency) bool {
	return slices.ContainsFunc(list, func(o plans.Dependency) bool { return o.Kind == d.Kind && o.Name == d.Name })
}

// brought lists the Secrets of a service account: those that its pods pull with and those that they may
// mount. It leaves out tokens and Secrets that the platform makes for each account.
func brought(ctx context.Context, w clusters.Pair, account string) (out []plans.Dependency, err error) {
	if account == "" || account == "default" {
		return nil, nil // every namespace has its own, which no copy replaces
	}
	o, err := w.Dependency(ctx, plans.Source, plans.Dependency{Kind: "ServiceAccount", Name: account})
	a, ok := o.(*corev1.ServiceAccount)
	if !ok {
		return nil, check.IgnoreForbidden(err)
	}
	var refs []string
	for _, r := range a.ImagePullSecrets {
		refs = append(refs, r.Name)
	}
	for _, r := range a.Secrets {
		refs = append(refs, r.Name)
	}
	for _, name := range refs {
		d := plans.Dependency{Kind: "Secret", Name: name}
		o, err := w.Dependency(ctx, plans.Source, d)
		if check.IgnoreForbidden(err) != nil {
			return nil, err
		}
		if err == nil && (o == nil || o.GetAnnotations()[corev1.ServiceAccountNameKey] != "") {
			continue
		}
		if !listed(out, d) {
			out = append(out, d)
		}
	}
	return out, nil
}
