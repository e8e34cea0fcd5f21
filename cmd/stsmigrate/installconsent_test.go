package main

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
)

// The policy of an older release is replaced only when the cluster agrees anew to all that it agrees to by it.
func TestThePoliciesAreNotReplacedUnderAPlan(t *testing.T) {
	policy := func(kind string) client.Object {
		return &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: access.NewVolumesPolicy}, Spec: admissionv1.ValidatingAdmissionPolicySpec{ParamKind: &admissionv1.ParamKind{Kind: kind}}}
	}
	old := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: access.OldVolumesMap}, Data: map[string]string{"pv-0": "plan web-1\nclaim a/b\n", "pv-1": "plan web-1\n", "pv-9": "plan db-1\n"}}
	agreed := func(volumes ...string) client.Object {
		o := access.VolumeConsent()
		var all []any
		for _, v := range volumes {
			name, plan, _ := strings.Cut(v, "=")
			all = append(all, map[string]any{"name": name, "plan": plan, "spec": map[string]any{}})
		}
		o.Object["spec"] = map[string]any{"volumes": all}
		return o
	}
	for name, c := range map[string]struct {
		there   []client.Object
		refused string // "" is installed
	}{
		"the first time":                  {nil, ""},
		"over this release":               {[]client.Object{policy("VolumeConsent"), old}, ""},
		"nothing was agreed to":           {[]client.Object{policy("ConfigMap")}, ""},
		"nothing is agreed to anew":       {[]client.Object{policy("ConfigMap"), old}, "plans db-1, web-1 could not create"},
		"one plan is not":                 {[]client.Object{policy("ConfigMap"), old, agreed("pv-0=web-1", "pv-1=web-1")}, "plans db-1 could not create"},
		"one volume is not":               {[]client.Object{policy("ConfigMap"), old, agreed("pv-0=web-1", "pv-9=db-1")}, "plans web-1 could not create"},
		"one volume is for another plan":  {[]client.Object{policy("ConfigMap"), old, agreed("pv-0=web-1", "pv-1=web-2", "pv-9=db-1")}, "plans web-1 could not create"},
		"all is, and another one besides": {[]client.Object{policy("ConfigMap"), old, agreed("pv-0=web-1", "pv-1=web-1", "pv-9=db-1", "pv-5=c")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := clusters.Scheme()
			on := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.there...).Build()
			kind := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "volumeconsents.stsmigrate.dev"}}}
			err := agreedBefore(t.Context(), on, kind)
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("%v, expected %q", err, c.refused)
			}
			applied := on.Get(t.Context(), client.ObjectKeyFromObject(kind), kind) == nil
			if applied != (c.refused != "") {
				t.Errorf("the kind was applied: %t", applied)
			}
		})
	}
}
