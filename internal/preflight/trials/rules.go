package trials

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// What does not exist yet cannot be changed or deleted, not even as a dry run. Of that the rules are read: the policies of a
// cluster, and which webhooks it asks. A policy that denies whatever it matches is a refusal. Of any other rule it is said that
// it will be asked, once the object exists and before its ordinal leaves.

// rules are those of one cluster.
type rules struct {
	policies map[string]admissionv1.ValidatingAdmissionPolicy
	bindings []admissionv1.ValidatingAdmissionPolicyBinding
	hooks    []admissionv1.ValidatingWebhookConfiguration
}

// rulesOf is the key of check.Once for the rules of a side's cluster.
type rulesOf plans.Side

// foretold returns what the rules say of the writes to objects that do not exist yet.
func (t trier) foretold(ctx context.Context) (out []check.Finding, err error) {
	for _, side := range plans.Sides() {
		asked := slices.DeleteFunc(slices.Clone(t.seen.unmade), func(a ask) bool {
			return a.Side != side || a.OfClaim && !slices.ContainsFunc(t.Plan.Moved(), func(c plans.ClaimMove) bool { return !c.Mode.OneObject() }) // one object, which was tried
		})
		if len(asked) == 0 {
			continue
		}
		have, err := check.Once(t.Inspection, rulesOf(side), func() (rules, error) { return read(ctx, t.On[side]) })
		if apierrors.IsForbidden(err) {
			out = append(out, check.Finding{
				Level: check.Warn, Object: list(asked), Saw: "none exists yet, so that it could not be tried, and you may not list the admission policies of the cluster", Want: "to know that it will be let through",
				Remedy: "ask for the right (`stsmigrate rbac` prints it), or ask the cluster's administrator for rules about these kinds",
			})
			continue
		}
		if err != nil {
			return nil, err
		}
		found, err := t.of(ctx, side, have, asked)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func read(ctx context.Context, on client.Client) (rules, error) {
	var policies admissionv1.ValidatingAdmissionPolicyList
	var bindings admissionv1.ValidatingAdmissionPolicyBindingList
	var hooks admissionv1.ValidatingWebhookConfigurationList
	for _, into := range []client.ObjectList{&policies, &bindings, &hooks} {
		if err := on.List(ctx, into); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return rules{}, fmt.Errorf("listing the rules of admission: %w", err)
		}
	}
	out := rules{policies: map[string]admissionv1.ValidatingAdmissionPolicy{}, bindings: bindings.Items, hooks: hooks.Items}
	for _, p := range policies.Items {
		out.policies[p.Name] = p
	}
	return out, nil
}

// of returns what the rules of a cluster say of writes.
func (t trier) of(ctx context.Context, side plans.Side, have rules, asked []ask) (out []check.Finding, err error) {
	var open []ask
	var by []string
	for _, a := range asked {
		w, err := t.subject(ctx, a)
		if err != nil {
			return nil, err
		}
		sure, maybe := have.about(w)
		if sure != "" {
			out = append(out, check.Finding{
				Object: t.object(a), Saw: fmt.Sprintf("%s denies every %s of such an object", sure, a.operation()), Want: "it to be let through: " + a.What,
				Remedy: "let the owner of that rule make an exception for the time of the move",
			})
		}
		for _, name := range maybe {
			if open = append(open, a); !slices.Contains(by, name) {
				by = append(by, name)
			}
		}
	}
	if len(open) > 0 {
		out = append(out, check.Finding{
			Level: check.Warn, Object: list(open), Saw: fmt.Sprintf("none exists yet, so that it could not be tried, and %s will be asked on the %s (%s)", check.Few(by), side, t.Plan.On(side).Context), Want: "to know that it will be let through",
			Remedy: "read that rule; it is asked again when the object is there, before its ordinal leaves",
		})
	}
	return out, nil
}

// subject is a write as a rule sees it.
type subject struct {
	// name is "" where it is not known.
	group, resource, operation, name string
	namespace                        *corev1.Namespace // nil for an object without one
}

func (t trier) subject(ctx context.Context, a ask) (subject, error) {
	on := t.On[a.Side]
	gvk, err := apiutil.GVKForObject(kinds()[native(t.Plan, a)].empty(), clusters.Scheme())
	if err != nil {
		return subject{}, err
	}
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	if native(t.Plan, a) == plans.NativeKind {
		resource = clusters.ResourceOf(t.Plan.On(a.Side))
	}
	w := subject{group: resource.Group, resource: resource.Resource, operation: a.operation(), name: a.Name}
	if a.OfClaim || a.Kind == "ControllerRevision" {
		w.name = ""
	}
	if a.Namespace == "" || a.OfClaim {
		return w, nil
	}
	w.namespace = &corev1.Namespace{}
	err = on.Get(ctx, client.ObjectKey{Name: a.Namespace}, w.namespace)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		w.namespace.Name = a.Namespace
		w.namespace.Labels = map[string]string{corev1.LabelMetadataName: a.Namespace}
		err = nil
	}
	return w, err
}

// about returns the rule that denies a write for certain, or "", and those that may deny it.
func (r rules) about(w subject) (sure string, maybe []string) {
	for _, b := range r.bindings {
		p, there := r.policies[b.Spec.PolicyName]
		if !there || strings.HasPrefix(p.Name, "stsmigrate-") || !slices.Contains(b.Spec.ValidationActions, admissionv1.Deny) {
			continue
		}
		matches, always := w.policed(p.Spec, b.Spec)
		switch name := "ValidatingAdmissionPolicy " + p.Name; {
		case always:
			return name, nil
		case matches:
			maybe = append(maybe, name)
		}
	}
	for _, c := range r.hooks {
		for _, h := range c.Webhooks {
			by := &admissionv1.MatchResources{NamespaceSelector: h.NamespaceSelector, ObjectSelector: h.ObjectSelector}
			for _, rule := range h.Rules {
				by.ResourceRules = append(by.ResourceRules, admissionv1.NamedRuleWithOperations{RuleWithOperations: rule})
			}
			if matches, _ := w.matched(by); matches && !strings.Contains(h.Name, "stsmigrate") {
				maybe = append(maybe, "webhook "+h.Name)
			}
		}
	}
	return "", maybe
}

// policed reports whether a policy is about a write, and whether it denies whatever it is about.
func (w subject) policed(p admissionv1.ValidatingAdmissionPolicySpec, b admissionv1.ValidatingAdmissionPolicyBindingSpec) (matches, always bool) {
	matches, always = w.matched(p.MatchConstraints)
	if b.MatchResources != nil {
		narrowed, too := w.matched(b.MatchResources)
		matches, always = matches && narrowed, always && too
	}
	never := slices.ContainsFunc(p.Validations, func(v admissionv1.Validation) bool { return strings.TrimSpace(v.Expression) == "false" })
	return matches, matches && always && never && len(p.MatchConditions) == 0 && p.ParamKind == nil
}

// matched reports whether a rule is about a write, and whether that is certain: the labels of an object that does not exist
// are not known.
func (w subject) matched(by *admissionv1.MatchResources) (matches, exactly bool) {
	if by == nil {
		return false, true
	}
	in := func(rules []admissionv1.NamedRuleWithOperations) bool { return slices.ContainsFunc(rules, w.ruled) }
	if len(by.ResourceRules) > 0 && !in(by.ResourceRules) || in(by.ExcludeResourceRules) {
		return false, true
	}
	if w.namespace != nil && !selected(by.NamespaceSelector, w.namespace.Labels) {
		return false, true
	}
	o := by.ObjectSelector
	unknown := w.name == "" && slices.ContainsFunc(by.ResourceRules, func(r admissionv1.NamedRuleWithOperations) bool { return len(r.ResourceNames) > 0 })
	return true, !unknown && (o == nil || len(o.MatchLabels)+len(o.MatchExpressions) == 0)
}

func (w subject) ruled(r admissionv1.NamedRuleWithOperations) bool {
	has := func(list []string, one string) bool { return slices.Contains(list, "*") || slices.Contains(list, one) }
	operation := slices.Contains(r.Operations, admissionv1.OperationAll) || slices.Contains(r.Operations, admissionv1.OperationType(w.operation))
	named := len(r.ResourceNames) == 0 || w.name == "" || slices.Contains(r.ResourceNames, w.name)
	scoped := r.Scope == nil || *r.Scope == admissionv1.AllScopes || (*r.Scope == admissionv1.NamespacedScope) == (w.namespace != nil)
	// A rule for another version of the kind is asked too: the API server converts the object.
	return operation && named && scoped && has(r.APIGroups, w.group) && (has(r.Resources, w.resource) || has(r.Resources, "*/*"))
}

func selected(by *metav1.LabelSelector, has map[string]string) bool {
	if by == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(by)
	return err == nil && s.Matches(labels.Set(has))
}
