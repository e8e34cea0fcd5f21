package move_test

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rule denies one kind of write, as a policy of a cluster does that its administrators have made.
type rule struct {
	there      bool // on the destination
	operation  admissionv1.OperationType
	group      string
	resource   string
	expression string // what is let through, nothing if it is ""
	check      string // which finds it
	two        bool   // only between two clusters
}

// denied makes a rule, and returns a function that takes it away.
func (s *migration) denied(r rule) func() {
	s.t.Helper()
	on := s.source
	if r.there {
		on = s.destination
	}
	name := on.namespace + "-" + r.resource
	if r.expression == "" {
		r.expression = "false"
	}
	spec := admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{r.operation}, Rule: admissionv1.Rule{APIGroups: []string{r.group}, APIVersions: []string{"*"}, Resources: []string{r.resource}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: r.expression, Message: "only on weekdays"}},
	}
	binding := admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}
	if r.resource != "persistentvolumes" {
		binding.MatchResources = &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: on.namespace}}}
	}
	all := []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: binding},
	}
	for _, o := range all {
		if err := on.Create(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
	}
	return func() {
		for _, o := range all {
			if err := on.Delete(context.WithoutCancel(s.t.Context()), o); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// One rule at a time denies one kind of write that a move, an abort or finalize sends. The checks find each, and nothing is
// written. A rule that is made in mid-move holds the plan with nothing in flight, on both ways.
func TestARuleIsFoundBeforeAnOrdinalLeaves(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		for _, r := range []rule{
			{operation: "DELETE", resource: "persistentvolumeclaims", check: "writes-accepted"},
			{operation: "UPDATE", resource: "persistentvolumeclaims", check: "ends-accepted"},
			{operation: "CREATE", resource: "persistentvolumeclaims", check: "returns-accepted"},
			{operation: "CREATE", resource: "pods", check: "returns-accepted"},
			{operation: "UPDATE", resource: "persistentvolumes", check: "writes-accepted"},
			{operation: "UPDATE", group: "policy", resource: "poddisruptionbudgets", check: "writes-accepted"},
			{operation: "UPDATE", group: "apps", resource: "statefulsets", check: "writes-accepted"},
			{operation: "UPDATE", group: "apps", resource: "statefulsets", expression: "object.spec.replicas >= 2", check: "sizes-accepted"},
			{operation: "DELETE", group: "apps", resource: "statefulsets", check: "ends-accepted"},
			{operation: "CREATE", group: "discovery.k8s.io", resource: "endpointslices", check: "writes-accepted"},
			{operation: "DELETE", group: "discovery.k8s.io", resource: "endpointslices", check: "ends-accepted"},
			{there: true, operation: "CREATE", resource: "persistentvolumeclaims", check: "claims-accepted"},
			{there: true, operation: "DELETE", resource: "persistentvolumeclaims", check: "returns-accepted"},
			{there: true, operation: "UPDATE", group: "apps", resource: "statefulsets", check: "writes-accepted"},
			{there: true, operation: "CREATE", group: "policy", resource: "poddisruptionbudgets", check: "writes-accepted"},
			{there: true, operation: "CREATE", group: "discovery.k8s.io", resource: "endpointslices", check: "writes-accepted"},
			{operation: "DELETE", resource: "persistentvolumes", check: "ends-accepted", two: true},
		} {
			if r.two && s.mode != reimport {
				continue
			}
			if r.resource == "persistentvolumes" { // the cluster has those of other tests too
				r.expression = "oldObject.spec.claimRef.namespace != '" + s.source.namespace + "'"
			}
			mend := s.denied(r)
			before := s.versions()
			s.eventually(string(r.operation)+" "+r.resource+" is found", func(context.Context) bool {
				return strings.Contains(run(t, s.checkArgs()...).stdout, "FAIL  "+r.check)
			})
			same(t, "objects", before, s.versions())
			mend()
			s.eventually(string(r.operation)+" "+r.resource+" is let through", func(context.Context) bool {
				return !strings.Contains(run(t, s.checkArgs()...).stdout, "FAIL")
			})
		}

		before, there := s.state(s.source), s.names("destination")
		claims := func(on *end, name string) func(context.Context) bool {
			return func(ctx context.Context) bool {
				var c corev1.PersistentVolumeClaim
				return on.Get(ctx, on.key(name), &c) == nil && on.Delete(ctx, &c, client.DryRunAll) != nil
			}
		}
		s.planned()
		w := s.watched()
		run(t, s.applyArgs("--pause-after", "1")...).expect(t, done, "paused before web-1 Tighten")
		mend := s.denied(rule{operation: "DELETE", resource: "persistentvolumeclaims"})
		s.eventually("the claims are kept", claims(s.source, "data-web-1"))
		run(t, s.args("resume")...).expect(t, held, "writes-accepted: PersistentVolumeClaim "+s.source.namespace+"/data-web-1", "only on weekdays")
		for _, one := range []struct {
			on  *end
			pod string
		}{{s.source, "web-0"}, {s.source, "web-1"}, {s.destination, "web-2"}} { // nothing is in flight
			var pod corev1.Pod
			if err := one.on.Get(t.Context(), one.on.key(one.pod), &pod); err != nil || pod.DeletionTimestamp != nil {
				t.Errorf("%s is not there: %v", one.pod, err)
			}
		}
		mend()
		s.eventually("they are not", func(ctx context.Context) bool { return !claims(s.source, "data-web-1")(ctx) })
		run(t, s.args("resume")...).expect(t, done, "moved: 3 ordinals")
		mend = s.denied(rule{there: true, operation: "DELETE", resource: "persistentvolumeclaims"})
		s.eventually("the claims are kept there", claims(s.destination, "data-web-0"))
		run(t, s.args("abort")...).expect(t, held, "no ordinal that serves leaves before this is fixed", "writes-accepted: PersistentVolumeClaim "+s.destination.namespace+"/data-web-0")
		s.ready(s.destination)
		mend()
		s.eventually("they are not", func(ctx context.Context) bool { return !claims(s.destination, "data-web-0")(ctx) })
		run(t, s.args("abort")...).expect(t, done, "aborted")
		proper(t, w, 1)
		s.asBefore(before, there)
	})
}
