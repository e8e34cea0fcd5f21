package writes

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

type tryingKey struct{}

// TryDelete sends the deletion of exactly the object that was seen as a dry run: admission answers, and nothing is deleted.
// The client puts that it is a dry run into the body, which some proxies drop from a DELETE. So the transport repeats it in
// the address (IsTrial), where an API server looks if there is no body.
func TryDelete(ctx context.Context, c client.Writer, seen client.Object, opts ...client.DeleteOption) error {
	return exactly(context.WithValue(ctx, tryingKey{}, true), c, seen, append(opts, client.DryRunAll)...)
}

// IsTrial reports whether a request is one of TryDelete.
func IsTrial(ctx context.Context) bool { return ctx.Value(tryingKey{}) != nil }
