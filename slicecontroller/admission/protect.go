package admission

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// protected returns why a slice must not be deleted, or "". A slice in a namespace that is being deleted is
// not protected: its pods are deleted anyway, and the namespace would wait forever.
func (v Validator) protected(ctx context.Context, s *v1alpha1.StatefulSetSlice, options []byte) string {
	wanted := int32(1)
	if s.Spec.Replicas != nil {
		wanted = *s.Spec.Replicas
	}
	switch pods := max(wanted, s.Status.Replicas); {
	case !s.Spec.DeletionProtection, pods == 0, orphans(options), v.ends(ctx, s.Namespace):
		return ""
	default:
		return fmt.Sprintf("spec.deletionProtection is true, and the slice has %d pods, which would be deleted, too: set it to false first, or keep the pods with --cascade=orphan", pods)
	}
}

// orphans reports whether the options of a deletion keep the dependents of the object.
func orphans(raw []byte) bool {
	var options metav1.DeleteOptions
	if json.Unmarshal(raw, &options) != nil {
		return false
	}
	if p := options.PropagationPolicy; p != nil {
		return *p == metav1.DeletePropagationOrphan
	}
	return options.OrphanDependents != nil && *options.OrphanDependents //nolint:staticcheck // some clients still say it so
}

// ends reports whether a namespace is being deleted. It is false if the namespace cannot be read.
func (v Validator) ends(ctx context.Context, namespace string) bool {
	var n corev1.Namespace
	return v.Live.Get(ctx, client.ObjectKey{Name: namespace}, &n) == nil && n.DeletionTimestamp != nil
}
