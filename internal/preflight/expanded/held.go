package expanded

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// leads matches the annotation that says who the leader is: "leader" of Patroni, and that of client-go for ConfigMaps and
// Endpoints.
var leads = regexp.MustCompile(`(^|[./-])(leader|holder)$`)

// held returns an object of the source's namespace that names one of the members as its holder or leader, or "", and the kinds
// that may not be listed.
func held(ctx context.Context, i check.Inspection, kinds []string) (lock string, unseen []string, err error) {
	lists := map[string]client.ObjectList{"leases": &coordinationv1.LeaseList{}, "endpoints": &corev1.EndpointsList{}, "configmaps": &corev1.ConfigMapList{}}
	for _, kind := range kinds {
		list := lists[kind]
		err := i.On[plans.Source].List(ctx, list, client.InNamespace(i.Plan.Source.Namespace))
		if apierrors.IsForbidden(err) {
			unseen = append(unseen, kind)
			continue
		}
		if err != nil {
			return "", nil, fmt.Errorf("listing %s of namespace %s: %w", kind, i.Plan.Source.Namespace, err)
		}
		if err := meta.EachListItem(list, func(one runtime.Object) error {
			o, _ := one.(client.Object)
			if by := holder(i, o); by != "" && lock == "" {
				lock = fmt.Sprintf("%s %s (%s)", strings.TrimSuffix(kind, "s"), o.GetName(), by)
			}
			return nil
		}); err != nil {
			return "", nil, err
		}
	}
	return lock, unseen, nil
}

// holder returns what an object says of the member that holds it, or "".
func holder(i check.Inspection, o client.Object) string {
	said := map[string]string{}
	if l, is := o.(*coordinationv1.Lease); is {
		said["spec.holderIdentity"] = ptr.Deref(l.Spec.HolderIdentity, "")
	}
	for key, value := range o.GetAnnotations() {
		if leads.MatchString(key) {
			said[key] = value
		}
	}
	member := regexp.MustCompile(`(^|[^a-z0-9.-])` + regexp.QuoteMeta(i.Plan.Source.Name) + `-\d+($|[^0-9])`)
	for _, key := range slices.Sorted(maps.Keys(said)) {
		if member.MatchString(said[key]) {
			return key + ": " + said[key]
		}
	}
	return ""
}
