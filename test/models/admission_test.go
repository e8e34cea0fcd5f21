package models_test

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Policies are asked before the quota, a dry run is asked the same questions, and leaves no trace: neither an object nor
// a claim that the quota counts. The simulation's API server answers in this order (store.Create, store.trial).
func TestAdmission(t *testing.T) {
	t.Parallel()
	ctx, name := t.Context(), "testadmission"
	add := func(o client.Object) {
		t.Helper()
		if err := here.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	add(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "one"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"persistentvolumeclaims": resource.MustParse("1")}}})
	add(&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"persistentvolumeclaims"}},
		}}}},
		MatchConditions: []admissionv1.MatchCondition{{Name: "here", Expression: "object.metadata.namespace == '" + name + "'"}},
		Validations:     []admissionv1.Validation{{Expression: "!object.metadata.name.startsWith('barred')", Message: "the policy refuses it"}},
	}})
	add(&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}})
	// answer is what the API server says to a claim: "granted", or who refuses it.
	answer := func(claim string, opts ...client.CreateOption) string {
		err := here.Create(context.WithoutCancel(ctx), claimFor(name, claim, "none"), opts...)
		switch {
		case err == nil:
			return "granted"
		case apierrors.IsInvalid(err) && strings.Contains(err.Error(), "the policy refuses it"): // no 403
			return "policy"
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
			return "quota"
		}
		return err.Error()
	}
	// Policy and quota are in force once a claim meets the one, and the other has a status.
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for got := ""; got != "policy"; got = answer("barred", client.DryRunAll) {
		if soon.Err() != nil {
			t.Fatalf("the policy is not in force within %s: %s", patience, got)
		}
	}
	var quota corev1.ResourceQuota
	for quota.Status.Hard.Name("persistentvolumeclaims", resource.DecimalSI).IsZero() {
		if err := here.Get(soon, client.ObjectKey{Namespace: name, Name: "one"}, &quota); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		claim, want string
		dry         bool
	}{
		{"a", "granted", true},
		{"a", "granted", true}, // it left nothing, neither there nor in the quota
		{"barred", "policy", false},
		{"a", "granted", false},
		{"b", "quota", false},
		{"b", "quota", true},
		{"barred", "policy", false}, // and not the quota, which is full
		{"barred", "policy", true},
	} {
		var opts []client.CreateOption
		if c.dry {
			opts = append(opts, client.DryRunAll)
		}
		if got := answer(c.claim, opts...); got != c.want {
			t.Errorf("claim %s, dry run %t: %s, expected %s", c.claim, c.dry, got, c.want)
		}
	}
}
