package clusters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/reads"
	"github.com/stsmigrate/stsmigrate/plans"
)

// asking is a way to read an object.
type asking func(ctx context.Context, on client.Client, key client.ObjectKey, o client.Object) error

// plain asks as a look does.
func plain(ctx context.Context, on client.Client, key client.ObjectKey, o client.Object) error {
	return on.Get(ctx, key, o)
}

// by asks with a client of other terms.
func by(which func(Clusters) Clusters) asking {
	return func(ctx context.Context, on client.Client, key client.ObjectKey, o client.Object) error {
		return which(Clusters{plans.Source: on})[plans.Source].Get(ctx, key, o)
	}
}

// live asks with the live reader of a client of any terms.
func live(which func(Clusters) Clusters) asking {
	return func(ctx context.Context, on client.Client, key client.ObjectKey, o client.Object) error {
		_, err := reads.Get(ctx, which(Clusters{plans.Source: on}).Live(plans.Source), key, o)
		return err
	}
}

func same(on Clusters) Clusters { return on }
