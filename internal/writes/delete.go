package writes

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Delete deletes exactly the object that was seen (S8): neither a recreated object of the same name
// nor one that has changed since. A later stamp therefore makes a late deletion fail (S9).
func Delete(ctx context.Context, c client.Writer, seen client.Object, opts ...client.DeleteOption) error {
	uid, version := seen.GetUID(), seen.GetResourceVersion()
	return c.Delete(ctx, seen, append(opts, client.Preconditions{UID: &uid, ResourceVersion: &version})...)
}
