package writes

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
)

// Own are the kinds of which this program makes objects of its own, and can recreate them. A deletion that is
// conditional on such an object is enough. What is the user's has functions of its own (forgood.go).
type Own interface {
	*corev1.ConfigMap | *coordinationv1.Lease | *policyv1.PodDisruptionBudget | *batchv1.Job | *corev1.Service |
		*discoveryv1.EndpointSlice | *mcsv1alpha1.ServiceExport
	client.Object
}

// Delete deletes exactly the object that was seen (S8): neither a recreated object of the same name
// nor one that has changed since. A later stamp therefore makes a late deletion fail (S9).
func Delete[O Own](ctx context.Context, c client.Writer, seen O, opts ...client.DeleteOption) error {
	return exactly(ctx, c, seen, opts...)
}

// DeleteOwn is Delete for an object of which the kind is known when it is read: a role, a binding, or a
// StatefulSetMigration. It refuses any other kind.
func DeleteOwn(ctx context.Context, c client.Writer, seen client.Object) error {
	switch o := seen.(type) {
	case *rbacv1.Role, *rbacv1.RoleBinding, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
		return exactly(ctx, c, seen)
	case *unstructured.Unstructured:
		if o.GetKind() == "StatefulSetMigration" {
			return exactly(ctx, c, seen)
		}
	}
	return fmt.Errorf("%T %s is of no kind that this program makes for itself, and is not deleted", seen, seen.GetName())
}

func exactly(ctx context.Context, c client.Writer, seen client.Object, opts ...client.DeleteOption) error {
	uid, version := seen.GetUID(), seen.GetResourceVersion()
	return c.Delete(ctx, seen, append(opts, client.Preconditions{UID: &uid, ResourceVersion: &version})...)
}
