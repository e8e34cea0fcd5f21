package expanded

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// LaterOrdinals warns of what the set on the destination names for ordinals that it makes later, and does not have there: no
// ordinal that moves needs it, and the next one would stay Pending.
func LaterOrdinals(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	set, err := i.Receives()
	if err != nil {
		return nil, err
	}
	var out []check.Finding
	for _, t := range set.Spec.VolumeClaimTemplates {
		moved := slices.ContainsFunc(i.Plan.Moved(), func(c plans.ClaimMove) bool { return c.Template == t.Name })
		for _, need := range needed(t) {
			if need.kind.Kind == "StorageClass" && !moved {
				continue // every ordinal needs it, and the check classes asks for it
			}
			f, err := need.there(ctx, i)
			if err != nil {
				return nil, err
			}
			out = append(out, f...)
		}
	}
	return out, nil
}

// need is an object that a claim of a later ordinal is made of.
type need struct {
	template, what, namespace, name string
	kind                            schema.GroupKind
}

func needed(t corev1.PersistentVolumeClaim) (out []need) {
	add := func(what string, group *string, kind, name, namespace string) {
		n := need{template: t.Name, what: what, name: name, namespace: namespace, kind: schema.GroupKind{Kind: kind}}
		if group != nil {
			n.kind.Group = *group
		}
		out = append(out, n)
	}
	switch ref, old := t.Spec.DataSourceRef, t.Spec.DataSource; {
	case ref != nil:
		namespace := ""
		if ref.Namespace != nil {
			namespace = *ref.Namespace
		}
		add("dataSourceRef", ref.APIGroup, ref.Kind, ref.Name, namespace)
	case old != nil:
		add("dataSource", old.APIGroup, old.Kind, old.Name, "")
	}
	storage := storagev1.GroupName
	if c := t.Spec.VolumeAttributesClassName; c != nil && *c != "" {
		add("volumeAttributesClassName", &storage, "VolumeAttributesClass", *c, "")
	}
	if c := t.Spec.StorageClassName; c != nil && *c != "" {
		add("storageClassName", &storage, "StorageClass", *c, "")
	}
	return out
}

// there warns where the destination does not have it.
func (n need) there(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if n.kind.Kind == "StorageClass" && joined(i) {
		return nil, nil
	}
	called := n.kind.Kind + " " + n.name
	o, where, err := n.object(i)
	if err == nil {
		err = i.On[plans.Destination].Get(ctx, client.ObjectKeyFromObject(o), o)
	}
	switch {
	case err == nil:
		return nil, nil
	case apierrors.IsForbidden(err):
		return check.Unseen(err, called+" in "+where, "it")
	case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
		return nil, fmt.Errorf("reading %s in %s: %w", called, where, err)
	}
	return []check.Finding{{
		Level: check.Warn, Object: fmt.Sprintf("%s: spec.volumeClaimTemplates[%s].spec.%s", i.Name(plans.Destination), n.template, n.what),
		Saw:  fmt.Sprintf("it names %s, which is not in %s", called, where),
		Want: "what the claims of ordinals need that are made later: those that move keep their volumes, and the next one would stay Pending",
		Remedy: "make it there before the set is scaled up, or write another one with --patch FILE where FILE has\n" +
			fmt.Sprintf("spec: {volumeClaimTemplates: [{metadata: {name: %s}, spec: {%s: null}}]}", n.template, n.what),
	}}, nil
}

// object returns an empty object of that name and kind, and where it has to be.
func (n need) object(i check.Inspection) (o client.Object, where string, err error) {
	namespaced := n.kind == schema.GroupKind{Kind: "PersistentVolumeClaim"}
	switch {
	case namespaced:
		o = &corev1.PersistentVolumeClaim{}
	case n.kind == schema.GroupKind{Group: storagev1.GroupName, Kind: "StorageClass"}:
		o = &storagev1.StorageClass{}
	default:
		mapping, err := i.On[plans.Destination].RESTMapper().RESTMapping(n.kind)
		if err != nil {
			return nil, "the destination", err
		}
		custom := &unstructured.Unstructured{}
		custom.SetGroupVersionKind(mapping.GroupVersionKind)
		o, namespaced = custom, mapping.Scope.Name() == meta.RESTScopeNameNamespace
	}
	o.SetName(n.name)
	if !namespaced {
		return o, "the destination", nil
	}
	o.SetNamespace(cmp.Or(n.namespace, i.Plan.Destination.Namespace))
	return o, "namespace " + o.GetNamespace() + " of the destination", nil
}
