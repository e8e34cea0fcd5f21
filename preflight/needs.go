package preflight

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

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/sets"
)

// Needs lists what the pods of the destination need of its namespace: what the patched
// set names, and the Secrets that its service account brings along. What something on
// the source makes is required there, not copied. It reads, and leaves out what it may
// not read: the checks ask for these rights.
func Needs(ctx context.Context, on clusters.Clusters, in plans.Inputs) ([]plans.Dependency, error) {
	set, err := in.Destined()
	if err != nil {
		return nil, err
	}
	w := survey{clusters.Pair{Plan: &plans.Plan{Source: in.Source, Destination: in.Destination}, On: on}}
	own, need := plans.Dependencies(in.Set), plans.Dependencies(set)
	brought, err := w.brought(ctx, set.Spec.Template.Spec.ServiceAccountName)
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
		case o != nil && maker(o) != "":
			need[k].Required = "made by " + maker(o)
		}
	}
	return plans.SortDependencies(need), nil
}

func listed(list []plans.Dependency, d plans.Dependency) bool {
	return slices.ContainsFunc(list, func(o plans.Dependency) bool { return o.Kind == d.Kind && o.Name == d.Name })
}

// brought lists the Secrets of a service account: those its pods pull with and those
// they may mount. Tokens and what the platform makes for each account are not among them.
func (w survey) brought(ctx context.Context, account string) (out []plans.Dependency, err error) {
	if account == "" || account == "default" {
		return nil, nil // every namespace has its own, which no copy replaces
	}
	o, err := w.Dependency(ctx, plans.Source, plans.Dependency{Kind: "ServiceAccount", Name: account})
	a, ok := o.(*corev1.ServiceAccount)
	if !ok {
		return nil, ignoreForbidden(err)
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
		if ignoreForbidden(err) != nil {
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

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// dependenciesThere wants each object that the pods name on the destination, as it is on
// the source, or absent so that it can be copied, or made there by what makes it here.
func dependenciesThere(ctx context.Context, i inspection) ([]Finding, error) {
	var out []Finding
	for _, d := range i.Plan.Dependencies {
		from, err := i.Dependency(ctx, plans.Source, d)
		if err != nil {
			return nil, err
		}
		to, err := i.Dependency(ctx, plans.Destination, d)
		if err != nil {
			return nil, err
		}
		if f, bad := i.judged(d, from, to); bad {
			out = append(out, f)
		}
	}
	for _, more := range []func(context.Context) ([]Finding, error){i.found, i.defaultAccount} {
		found, err := more(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// judged looks at a dependency on both sides; nil is one that is absent.
func (i inspection) judged(d plans.Dependency, from, to client.Object) (f Finding, bad bool) {
	f = Finding{Object: fmt.Sprintf("%s in namespace %s", d, i.Plan.Destination.Namespace)}
	switch s, _ := from.(*corev1.Secret); {
	case d.Required != "":
		return requiredThere(d, f, from, to)
	case s != nil && s.Type == corev1.SecretTypeServiceAccountToken:
		f.Object, f.Saw, f.Want = d.String(), "it is a service account token of the source cluster", "a Secret that means something elsewhere"
		f.Remedy = "use a projected token in the pod template"
	case from != nil && maker(from) != "":
		f.Object, f.Saw, f.Want = d.String(), "it is made by "+maker(from)+" now, and the plan would copy it", "it as it was when the plan was made"
		f.Remedy = "make a new plan with `stsmigrate plan`"
	case from != nil && to != nil && !sets.Same(from, to):
		f.Saw, f.Want = "its content differs from the source's", "equal, or absent"
		f.Remedy = "make them equal, or delete that of the destination and let it be copied"
	case from == nil && to == nil && !d.Optional:
		f.Level, f.Object = Warn, d.String()
		f.Saw, f.Want = "the pod template names it, and it is on neither side", "it on the source, or no such name"
		f.Remedy = "make it, mark the reference optional, or take it out of the template: pods that start anew may wait for it"
	default:
		return f, false
	}
	return f, true
}

// requiredThere looks at an object that is not copied. Its content may well differ; the
// names of its parts are what pods go by.
func requiredThere(d plans.Dependency, f Finding, from, to client.Object) (Finding, bool) {
	if to == nil {
		f.Saw, f.Want = fmt.Sprintf("it does not exist, and is not copied (%s)", d.Required), "it to be there before the move"
		f.Remedy = "make it there"
		if by, ok := strings.CutPrefix(d.Required, "made by "); ok {
			f.Remedy = fmt.Sprintf("have it made there as here, by %s, and wait until it exists", by)
		}
		return f, true
	}
	if missing := lacking(keysOf(from), keysOf(to)); len(missing) > 0 {
		f.Level = Warn
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

// keysOf gives the names under which an object holds something, never what it holds.
func keysOf(o client.Object) []string {
	switch o := o.(type) {
	case *corev1.Secret:
		return slices.Sorted(maps.Keys(o.Data))
	case *corev1.ConfigMap:
		return slices.Concat(slices.Sorted(maps.Keys(o.Data)), slices.Sorted(maps.Keys(o.BinaryData)))
	}
	return nil
}

// found wants the governing Service to find the pods as they will be: a patch may have
// changed their labels.
func (i inspection) found(ctx context.Context) ([]Finding, error) {
	after, err := plans.Destined(i.now.Set, i.Plan)
	if err != nil || after.Spec.ServiceName == "" {
		return nil, err
	}
	o, err := i.Dependency(ctx, plans.Source, plans.Dependency{Kind: "Service", Name: after.Spec.ServiceName})
	s, ok := o.(*corev1.Service)
	if !ok || len(s.Spec.Selector) == 0 {
		return nil, err
	}
	finds := labels.SelectorFromSet(s.Spec.Selector)
	if finds.Matches(labels.Set(i.now.Set.Spec.Template.Labels)) && !finds.Matches(labels.Set(after.Spec.Template.Labels)) {
		return []Finding{{
			Object: "Service " + s.Name, Saw: fmt.Sprintf("with the patches its selector (%s) no longer finds the pods", finds), Want: "it to find them",
			Remedy: "leave these labels of the pod template as they are",
		}}, nil
	}
	return nil, nil
}

// defaultAccount reports pull secrets that pods get here from the account default, which no
// copy replaces.
func (i inspection) defaultAccount(ctx context.Context) ([]Finding, error) {
	template, err := i.arriving()
	if err != nil {
		return nil, err
	}
	spec := template.Spec
	if cmp.Or(spec.ServiceAccountName, "default") != "default" || len(spec.ImagePullSecrets) > 0 {
		return nil, nil
	}
	account := plans.Dependency{Kind: "ServiceAccount", Name: "default"}
	from, err := i.Dependency(ctx, plans.Source, account)
	if err != nil {
		return nil, ignoreForbidden(err) // a report, which the move does not need
	}
	to, err := i.Dependency(ctx, plans.Destination, account)
	if err != nil {
		return nil, ignoreForbidden(err)
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
	return []Finding{{
		Level: Warn, Object: "ServiceAccount default in namespace " + i.Plan.Destination.Namespace, Saw: "it lacks the pull secrets " + strings.Join(missing, ", ") + " that the pods have here",
		Want: "the pods to be able to pull", Remedy: "name them in spec.template.spec.imagePullSecrets with --patch, then they are copied",
	}}, nil
}

// bindingsThere reports the rights of the pods that do not come along. Nobody may hand
// out rights by moving a set, so bindings are never copied.
func bindingsThere(ctx context.Context, i inspection) ([]Finding, error) {
	template, err := i.arriving()
	if err != nil {
		return nil, err
	}
	account := cmp.Or(template.Spec.ServiceAccountName, "default")
	here, err := i.bindings(ctx, plans.Source, account)
	if err != nil {
		return unseen(err, "the roles of the pods on the source", "rolebindings and clusterrolebindings")
	}
	there, err := i.bindings(ctx, plans.Destination, account)
	if err != nil {
		return unseen(err, "the roles of the pods on the destination", "rolebindings and clusterrolebindings")
	}
	var out []Finding
	to := i.Plan.Destination
	for _, b := range here {
		if slices.ContainsFunc(there, func(o binding) bool { return o.kind == b.kind && o.role == b.role }) {
			continue
		}
		verb, scope := "rolebinding", "-n "+to.Namespace+" "
		if b.kind == "ClusterRoleBinding" {
			verb, scope = "clusterrolebinding", ""
		}
		out = append(out, Finding{
			Level: Warn, Object: b.kind + " " + b.name + " on the source", Saw: fmt.Sprintf("it gives the pods %s %s, and none on the destination does", b.role.Kind, b.role.Name),
			Want: fmt.Sprintf("ServiceAccount %s/%s to have what the pods ask the API for", to.Namespace, account),
			Remedy: fmt.Sprintf("rights are not copied; if the pods need these, make the role there and: kubectl %screate %s %s --%s=%s --serviceaccount=%s:%s",
				scope, verb, b.name, strings.ToLower(b.role.Kind), b.role.Name, to.Namespace, account),
		})
	}
	return out, nil
}

// binding is one RoleBinding or ClusterRoleBinding of the pods' account.
type binding struct {
	kind, name string
	role       rbacv1.RoleRef
}

func (i inspection) bindings(ctx context.Context, side plans.Side, account string) ([]binding, error) {
	namespace := i.Plan.On(side).Namespace
	var local rbacv1.RoleBindingList
	var wide rbacv1.ClusterRoleBindingList
	if err := i.On[side].List(ctx, &local, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	if err := i.On[side].List(ctx, &wide); err != nil {
		return nil, err
	}
	var out []binding
	for _, b := range local.Items {
		if about(b.Subjects, namespace, namespace, account) {
			out = append(out, binding{"RoleBinding", b.Name, b.RoleRef})
		}
	}
	for _, b := range wide.Items {
		if about(b.Subjects, "", namespace, account) {
			out = append(out, binding{"ClusterRoleBinding", b.Name, b.RoleRef})
		}
	}
	return out, nil
}

// about says whether subjects name the account, itself or with its namespace. home is where an account
// without a namespace is looked for.
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

// unseen turns a missing right that the move itself does not need into a warning. Other
// errors stay errors.
func unseen(err error, object, resource string) ([]Finding, error) {
	if !apierrors.IsForbidden(err) {
		return nil, err
	}
	return []Finding{{
		Level: Warn, Object: object, Saw: "you may not look at " + resource, Want: "to be allowed get and list",
		Remedy: "ask for the right, or look yourself; the move goes on without it",
	}}, nil
}
