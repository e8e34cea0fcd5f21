package clients

import (
	"context"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pointers are the objects of one namespace that point at Services, in words such as "Ingress web", by the name of the
// Service. What the cluster does not know, or the user may not list, is left out; Unseen has the latter.
type Pointers struct {
	At     map[string][]string
	Unseen []string
}

// Gateway and Multi are the API groups of routes and of exports.
const (
	Gateway = "gateway.networking.k8s.io"
	Multi   = "multicluster.x-k8s.io"
)

// Routes are the kinds of the Gateway API that point at Services, each with the version that is read.
func Routes() map[string]string {
	return map[string]string{"HTTPRoute": "v1", "GRPCRoute": "v1", "TLSRoute": "v1alpha2", "TCPRoute": "v1alpha2", "UDPRoute": "v1alpha2"}
}

// Point reads what points at the Services of a namespace.
func Point(ctx context.Context, c client.Client, namespace string) (Pointers, error) {
	p := Pointers{At: map[string][]string{}}
	var ingresses networkingv1.IngressList
	if err := c.List(ctx, &ingresses, client.InNamespace(namespace)); p.unread("Ingresses", err) != nil {
		return p, fmt.Errorf("listing the Ingresses of namespace %s: %w", namespace, err)
	}
	for _, o := range ingresses.Items {
		for _, b := range backends(o.Spec) {
			p.add(b, "Ingress "+o.Name)
		}
	}
	for kind, version := range Routes() {
		routes, err := p.list(ctx, c, namespace, schema.GroupVersionKind{Group: Gateway, Version: version, Kind: kind})
		if err != nil {
			return p, err
		}
		for _, o := range routes {
			for _, b := range targets(o) {
				p.add(b, kind+" "+o.GetName())
			}
		}
	}
	exports, err := p.list(ctx, c, namespace, schema.GroupVersionKind{Group: Multi, Version: "v1alpha1", Kind: "ServiceExport"})
	for _, o := range exports {
		p.add(o.GetName(), "ServiceExport "+o.GetName())
	}
	for name := range p.At {
		slices.Sort(p.At[name])
		p.At[name] = slices.Compact(p.At[name])
	}
	slices.Sort(p.Unseen)
	return p, err
}

func (p *Pointers) add(service, what string) {
	if service != "" {
		p.At[service] = append(p.At[service], what)
	}
}

// unread drops the errors that say that a kind is unknown, or may not be listed.
func (p *Pointers) unread(kinds string, err error) error {
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		p.Unseen = append(p.Unseen, kinds)
		return nil
	}
	return err
}

func (p *Pointers) list(ctx context.Context, c client.Client, namespace string, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := c.List(ctx, &list, client.InNamespace(namespace))
	if p.unread(kind.Kind+"s", err) != nil {
		return nil, fmt.Errorf("listing the %ss of namespace %s: %w", kind.Kind, namespace, err)
	}
	return list.Items, nil
}

// Of returns what points at a Service in words, or "".
func (p Pointers) Of(service string) string { return strings.Join(p.At[service], ", ") }

func backends(spec networkingv1.IngressSpec) (out []string) {
	add := func(b *networkingv1.IngressBackend) {
		if b != nil && b.Service != nil {
			out = append(out, b.Service.Name)
		}
	}
	add(spec.DefaultBackend)
	for _, r := range spec.Rules {
		if r.HTTP == nil {
			continue
		}
		for k := range r.HTTP.Paths {
			add(&r.HTTP.Paths[k].Backend)
		}
	}
	return out
}

// targets returns the Services of its own namespace that a route points at.
func targets(route unstructured.Unstructured) (out []string) {
	rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules")
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		refs, _, _ := unstructured.NestedSlice(rule, "backendRefs")
		for _, b := range refs {
			ref, _ := b.(map[string]any)
			name, _ := ref["name"].(string)
			kind, _ := ref["kind"].(string)
			namespace, _ := ref["namespace"].(string)
			if (kind == "" || kind == "Service") && (namespace == "" || namespace == route.GetNamespace()) {
				out = append(out, name)
			}
		}
	}
	return out
}
