package orchestrator

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pagesAtOnce is how many pages a connection reads at the same time: the checks of two hundred
// plans, side by side, would otherwise have as many in memory.
const pagesAtOnce = 4

// turns lets the pages of one connection wait for one another. Lists of a namespace do not wait,
// nor does what a wave under way needs: who has a turn may have to wait for the wave.
type turns struct {
	client.Client
	taken chan struct{}
}

func pagesInTurn(c client.Client) client.Client { return turns{c, make(chan struct{}, pagesAtOnce)} }

// List implements client.Reader.
func (t turns) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if (&client.ListOptions{}).ApplyOptions(opts).Limit == 0 || IsUrgent(ctx) {
		return t.Client.List(ctx, list, opts...)
	}
	select {
	case t.taken <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-t.taken }()
	return t.Client.List(ctx, list, opts...)
}
