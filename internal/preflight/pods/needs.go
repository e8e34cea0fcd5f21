package pods

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/owners"
	"github.com/stsmigrate/stsmigrate/internal/sets/copies"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// Dependencies requires that each object that the pods name is equal on both sides, or absent on the
// destination so that it can be copied, or made there by the generator that makes it on the source.
func Dependencies(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if i.Midway {
		return stillThere(ctx, i)
	}
	var out []check.Finding
	for _, d := range i.Plan.Dependencies {
		if d.Twin != nil {
			continue // no pod needs it: the check clients looks at it
		}
		from, to, err := i.OnBoth(ctx, d)
		if err != nil {
			return nil, err
		}
		if f, bad := judged(i, d, from, to); bad {
			out = append(out, f)
		}
	}
	for _, more := range []func(context.Context, check.Inspection) ([]check.Finding, error){found, defaultAccount} {
		found, err := more(ctx, i)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// stillThere requires each object that the pods name on the side where the ordinals arrive, if the other side has it: a
// pod would wait for it, with its ordinal down (S17). Its content is the user's to change meanwhile. The source needs
// nothing that only the patches of the destination name.
func stillThere(ctx context.Context, i check.Inspection) (out []check.Finding, err error) {
	need, to := i.Plan.Dependencies, i.From.Other()
	if to == plans.Source {
		need = build.Dependencies(i.Now.Set)
	}
	for _, d := range need {
		there, err := i.Dependency(ctx, to, d)
		if err != nil {
			return nil, err
		}
		if there != nil || d.Optional || d.Twin != nil {
			continue
		}
		here, err := i.Dependency(ctx, i.From, d)
		if err != nil {
			return nil, err
		}
		if here == nil && d.Required == "" {
			continue // the pods run without it
		}
		out = append(out, check.Finding{
			Object: fmt.Sprintf("%s in namespace %s on the %s", d, i.Plan.On(to).Namespace, to), Saw: "it does not exist any more",
			Want: "what the pods that arrive there need to start", Remedy: fmt.Sprintf("recreate it there, as it is on the %s", i.From),
		})
	}
	return out, nil
}

// judged checks a dependency on both sides; nil is an absent object.
func judged(i check.Inspection, d plans.Dependency, from, to client.Object) (f check.Finding, bad bool) {
	f = check.Finding{Object: fmt.Sprintf("%s in namespace %s", d, i.Plan.Destination.Namespace)}
	switch s, _ := from.(*corev1.Secret); {
	case d.Required != "":
		return requiredThere(d, f, from, to)
	case s != nil && s.Type == corev1.SecretTypeServiceAccountToken:
		f.Object, f.Saw, f.Want = d.String(), "it is a service account token of the source cluster", "a Secret that means something elsewhere"
		f.Remedy = "use a projected token in the pod template"
	case from != nil && owners.GeneratedBy(from) != "":
		f.Object, f.Saw, f.Want = d.String(), "it is made by "+owners.GeneratedBy(from)+" now, and the plan would copy it", "it as it was when the plan was made"
		f.Remedy = "make a new plan with `stsmigrate plan`"
	case from != nil && to != nil && !copies.Same(i.Plan, from, to):
		f.Saw, f.Want = "its content differs from the source's", "equal, or absent"
		f.Remedy = "make them equal, or name another one with --patch. Only if no pod there uses it, delete that of the destination, and it is copied"
	case from == nil && to == nil && !d.Optional:
		f.Level, f.Object = check.Warn, d.String()
		f.Saw, f.Want = "the pod template names it, and it is on neither side", "it on the source, or no such name"
		f.Remedy = "make it, mark the reference optional, or take it out of the template: pods that start anew may wait for it"
	default:
		return f, false
	}
	return f, true
}

// requiredThere checks an object that is not copied. Its content may differ, but the pods depend on the names
// of its keys.
func requiredThere(d plans.Dependency, f check.Finding, from, to client.Object) (check.Finding, bool) {
	if to == nil {
		f.Saw, f.Want = fmt.Sprintf("it does not exist, and is not copied (%s)", d.Required), "it to be there before the move"
		f.Remedy = "make it there"
		if by, ok := strings.CutPrefix(d.Required, "made by "); ok {
			f.Remedy = fmt.Sprintf("have it made there as here, by %s, and wait until it exists", by)
		}
		return f, true
	}
	if missing := lacking(keysOf(from), keysOf(to)); len(missing) > 0 {
		f.Level = check.Warn
		f.Saw, f.Want = "it lacks the keys "+strings.Join(missing, ", "), "those that the source's has (its content may differ: "+d.Required+")"
		f.Remedy = "see that it has the keys that the pods name"
		return f, true
	}
	return f, false
}

func lacking(want, have []string) (out []string) {
	for _, k := range want {
		if !slices.Contains(have, k) {
			out = append(out, k)
		}
	}
	return out
}

// keysOf returns the keys of an object, never their values.
func keysOf(o client.Object) []string {
	switch o := o.(type) {
	case *corev1.Secret:
		return slices.Sorted(maps.Keys(o.Data))
	case *corev1.ConfigMap:
		return slices.Concat(slices.Sorted(maps.Keys(o.Data)), slices.Sorted(maps.Keys(o.BinaryData)))
	}
	return nil
}

// found requires that the governing Service still selects the pods: a patch may have changed their labels.
func found(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	after, err := build.DestinationSet(i.Now.Set, i.Plan)
	if err != nil || after.Spec.ServiceName == "" {
		return nil, err
	}
	o, err := i.Dependency(ctx, plans.Source, plans.Dependency{Kind: "Service", Name: after.Spec.ServiceName})
	s, ok := o.(*corev1.Service)
	if !ok || len(s.Spec.Selector) == 0 {
		return nil, err
	}
	finds := labels.SelectorFromSet(s.Spec.Selector)
	if finds.Matches(labels.Set(i.Now.Set.Spec.Template.Labels)) && !finds.Matches(labels.Set(after.Spec.Template.Labels)) {
		return []check.Finding{{
			Object: "Service " + s.Name, Saw: fmt.Sprintf("with the patches its selector (%s) no longer finds the pods", finds), Want: "it to find them",
			Remedy: "leave these labels of the pod template as they are",
		}}, nil
	}
	return nil, nil
}

// defaultAccount reports pull secrets that pods get on the source from the account default, which no copy
// replaces.
func defaultAccount(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	template, err := i.Arriving()
	if err != nil {
		return nil, err
	}
	spec := template.Spec
	if cmp.Or(spec.ServiceAccountName, "default") != "default" || len(spec.ImagePullSecrets) > 0 {
		return nil, nil
	}
	account := plans.Dependency{Kind: "ServiceAccount", Name: "default"}
	from, to, err := i.OnBoth(ctx, account)
	if err != nil {
		return nil, check.IgnoreForbidden(err) // only a report, which the move does not need
	}
	here, _ := from.(*corev1.ServiceAccount)
	there, _ := to.(*corev1.ServiceAccount)
	if here == nil || there == nil {
		return nil, nil
	}
	var missing []string
	for _, s := range here.ImagePullSecrets {
		if !slices.Contains(there.ImagePullSecrets, s) {
			missing = append(missing, s.Name)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	return []check.Finding{{
		Level: check.Warn, Object: "ServiceAccount default in namespace " + i.Plan.Destination.Namespace, Saw: "it lacks the pull secrets " + strings.Join(missing, ", ") + " that the pods have here",
		Want: "the pods to be able to pull", Remedy: "name them in spec.template.spec.imagePullSecrets with --patch, then they are copied",
	}}, nil
}

// Rbac reports the rights of the pods that are not copied. A move must not grant rights, so bindings are
// never copied.
func Rbac(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	template, err := i.Arriving()
	if err != nil {
		return nil, err
	}
	account := cmp.Or(template.Spec.ServiceAccountName, "default")
	here, err := bindingsOn(ctx, i, plans.Source, account)
	if err != nil {
		return check.Unseen(err, "the roles of the pods on the source", "rolebindings and clusterrolebindings")
	}
	there, err := bindingsOn(ctx, i, plans.Destination, account)
	if err != nil {
		return check.Unseen(err, "the roles of the pods on the destination", "rolebindings and clusterrolebindings")
	}
	var out []check.Finding
	to := i.Plan.Destination
	for _, b := range here {
		if slices.ContainsFunc(there, func(o binding) bool { return o.kind == b.kind && o.in == b.in && o.role == b.role }) {
			continue
		}
		verb, scope, name := "rolebinding", " -n "+to.Namespace, b.name
		switch {
		case b.kind == "ClusterRoleBinding":
			verb, scope = "clusterrolebinding", ""
		case b.in != "":
			scope, name = " -n "+b.in, b.in+"/"+b.name
		}
		out = append(out, check.Finding{
			Level: check.Warn, Object: b.kind + " " + name + " on the source", Saw: fmt.Sprintf("it gives the pods %s %s, and none on the destination does", b.role.Kind, b.role.Name),
			Want: fmt.Sprintf("ServiceAccount %s/%s to have what the pods ask the API for", to.Namespace, account),
			Remedy: fmt.Sprintf("rights are not copied; if the pods need these, make the role there and: %s%s create %s %s --%s=%s --serviceaccount=%s:%s",
				i.Kubectl(plans.Destination), scope, verb, b.called(i), strings.ToLower(b.role.Kind), b.role.Name, to.Namespace, account),
		})
	}
	return out, nil
}

// binding is one RoleBinding or ClusterRoleBinding of the pods' account. in is its namespace, where that is not the pods'.
type binding struct {
	kind, in, name string
	role           rbacv1.RoleRef
}

// called is the name of the new binding: beside the old one, where that may be, it needs another.
func (b binding) called(i check.Inspection) string {
	if b.in == "" && b.kind == "RoleBinding" {
		return b.name
	}
	return b.name + "-" + i.Plan.Destination.Namespace
}

func bindingsOn(ctx context.Context, i check.Inspection, side plans.Side, account string) ([]binding, error) {
	namespace := i.Plan.On(side).Namespace
	var local rbacv1.RoleBindingList
	var wide rbacv1.ClusterRoleBindingList
	err := i.On[side].List(ctx, &local) // other namespaces may know the account too
	if apierrors.IsForbidden(err) {
		err = i.On[side].List(ctx, &local, client.InNamespace(namespace))
	}
	if err != nil {
		return nil, err
	}
	if err := i.On[side].List(ctx, &wide); err != nil {
		return nil, err
	}
	var out []binding
	for _, b := range local.Items {
		in := b.Namespace
		if in == namespace {
			in = ""
		}
		if about(b.Subjects, b.Namespace, namespace, account) {
			out = append(out, binding{"RoleBinding", in, b.Name, b.RoleRef})
		}
	}
	for _, b := range wide.Items {
		if about(b.Subjects, "", namespace, account) {
			out = append(out, binding{"ClusterRoleBinding", "", b.Name, b.RoleRef})
		}
	}
	return out, nil
}

// about reports whether subjects name the account, itself or with its namespace. home is the namespace of an
// account that is named without one.
func about(subjects []rbacv1.Subject, home, namespace, account string) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			return s.Name == account && cmp.Or(s.Namespace, home) == namespace
		case rbacv1.GroupKind:
			return s.Name == "system:serviceaccounts:"+namespace
		case rbacv1.UserKind:
			return s.Name == "system:serviceaccount:"+namespace+":"+account
		}
		return false
	})
}

// Namespace checks that the namespace of the destination exists and is not being deleted.
func Namespace(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	var ns corev1.Namespace
	name := i.Plan.Destination.Namespace
	err := i.On[plans.Destination].Get(ctx, client.ObjectKey{Name: name}, &ns)
	if apierrors.IsNotFound(err) {
		return []check.Finding{{
			Object: "namespace " + name, Saw: "it does not exist on the destination", Want: "it to exist",
			Remedy: "create it, with the labels and quotas it shall have",
		}}, nil
	}
	if err == nil && ns.DeletionTimestamp != nil {
		return []check.Finding{{Object: "namespace " + name, Saw: "it is being deleted", Want: "it to stay", Remedy: "choose another --to-namespace"}}, nil
	}
	return nil, err
}
