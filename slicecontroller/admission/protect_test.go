package admission

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// A protected slice can be deleted only without its pods, or if it has none, or with its namespace.
func TestAProtectedSliceIsNotDeletedWithItsPods(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec, options string
		pods          int32
		refused       string
	}{
		"as kubectl does":                {"{deletionProtection: true}", `{"propagationPolicy":"Background"}`, 3, "spec.deletionProtection is true, and the slice has 3 pods"},
		"without options":                {"{deletionProtection: true}", ``, 3, "spec.deletionProtection is true"},
		"in the foreground":              {"{deletionProtection: true}", `{"propagationPolicy":"Foreground"}`, 3, "spec.deletionProtection is true"},
		"scaled to nothing, pods left":   {"{deletionProtection: true, replicas: 0}", `{}`, 1, "the slice has 1 pods"},
		"scaled to nothing":              {"{deletionProtection: true, replicas: 0}", `{}`, 0, ""},
		"before it has a status":         {"{deletionProtection: true}", `{}`, 0, "spec.deletionProtection is true"},
		"without its pods":               {"{deletionProtection: true}", `{"propagationPolicy":"Orphan"}`, 3, ""},
		"without them, as it used to be": {"{deletionProtection: true}", `{"orphanDependents":true}`, 3, ""},
		"not protected":                  {"{}", `{}`, 3, ""},
	} {
		s := slice(t, c.spec)
		s.Status.Replicas = c.pods
		ctx := admission.NewContextWithRequest(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Options: runtime.RawExtension{Raw: []byte(c.options)},
		}})
		_, err := validator(nil, namespace(false)).ValidateDelete(ctx, s)
		if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := validator(nil, namespace(true)).ValidateDelete(ctx, s); err != nil {
			t.Errorf("%s, with its namespace: %v", name, err)
		}
		if _, err := validator(nil).ValidateDelete(ctx, s); (err != nil) != (c.refused != "") {
			t.Errorf("%s, in a namespace that cannot be read: %v", name, err)
		}
	}
}

func namespace(ends bool) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if ends {
		n.DeletionTimestamp, n.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"kubernetes"}
	}
	return n
}
