package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// allowed adds to a refusal what to do: nothing at all may be looked at.
func allowed(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w; without the right to look at statefulsets.apps there is nothing to see: ask for a Role with get and list of them, or name a namespace of yours with -n", err)
}

// refs returns the sets that are asked for, in the order of their names. What may not be listed is noted in d.
func (a *asked) refs(ctx context.Context, p patient, selector labels.Selector, d *Diagnosis) (out []plans.Ref, err error) {
	at := plans.Ref{Context: p.Context, Namespace: p.Namespace}
	for _, typed := range a.names {
		ref, err := named(typed, at)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	switch {
	case len(out) > 0:
		return out, nil
	case a.all:
		out, err = everywhere(ctx, p, selector, d)
	default:
		out, err = listed(ctx, p, p.Namespace, selector, d)
		if err = allowed(err); err == nil && len(out) == 0 {
			err = exists(ctx, p)
		}
	}
	slices.SortFunc(out, func(a, b plans.Ref) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return out, err
}

// exists returns an error if the namespace does not exist, as far as that may be looked at.
func exists(ctx context.Context, p patient) error {
	err := p.Client.Get(ctx, client.ObjectKey{Name: p.Namespace}, &corev1.Namespace{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("namespace %s does not exist in %s: check --namespace and --context", p.Namespace, p.Name())
	case apierrors.IsForbidden(err):
		return nil
	}
	return err
}

// everywhere lists the sets of all namespaces: with one list, or where that is refused namespace by namespace.
func everywhere(ctx context.Context, p patient, selector labels.Selector, d *Diagnosis) ([]plans.Ref, error) {
	out, err := listed(ctx, p, "", selector, d)
	if !apierrors.IsForbidden(err) {
		return out, err
	}
	var names []string
	refused := clusters.Each(ctx, p.Client, func() client.ObjectList { return partly(corev1.SchemeGroupVersion.WithKind("NamespaceList")) }, func(n client.Object) {
		names = append(names, n.GetName())
	})
	if refused != nil {
		if apierrors.IsForbidden(refused) {
			return nil, allowed(err)
		}
		return nil, fmt.Errorf("listing the namespaces: %w", refused)
	}
	seen := false
	for _, n := range names {
		more, err := listed(ctx, p, n, selector, d)
		switch {
		case apierrors.IsForbidden(err):
			d.miss(clusters.RightOf(err, n), "", plans.Ref{})
			continue
		case err != nil:
			return nil, err
		}
		seen, out = true, append(out, more...)
	}
	if !seen {
		return nil, allowed(err)
	}
	return out, nil
}

// partly returns an empty list that has only the metadata of its objects.
func partly(kind schema.GroupVersionKind) client.ObjectList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	return list
}

// listed lists the sets of a namespace, or of all, page by page and without their specs.
func listed(ctx context.Context, p patient, namespace string, selector labels.Selector, d *Diagnosis) (out []plans.Ref, err error) {
	kinds := map[string]schema.GroupVersionKind{"": appsv1.SchemeGroupVersion.WithKind("StatefulSetList"), plans.SliceKind: v1alpha1.GroupVersion().WithKind("StatefulSetSliceList")}
	for _, kind := range []string{"", plans.SliceKind} {
		err := clusters.Each(ctx, p.Client, func() client.ObjectList { return partly(kinds[kind]) }, func(o client.Object) {
			out = append(out, plans.Ref{Context: p.Context, Namespace: o.GetNamespace(), Name: o.GetName(), Kind: kind})
		}, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
		switch {
		case err == nil:
		case kind != "" && (meta.IsNoMatchError(err) || apierrors.IsNotFound(err)):
		case kind != "" && apierrors.IsForbidden(err):
			d.miss(clusters.RightOf(err, namespace), "", plans.Ref{})
		case namespace == "":
			return nil, fmt.Errorf("listing the StatefulSets of %s: %w", p.Name(), err)
		default:
			return nil, fmt.Errorf("listing the StatefulSets of namespace %s in %s: %w", namespace, p.Name(), err)
		}
	}
	return out, nil
}
