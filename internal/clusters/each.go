package clusters

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PageSize is how many objects are read at once, the same as kubectl's.
const PageSize = 500

// maxEach is how many objects of a kind a cluster has at most.
const maxEach = 2_000_000

// Each visits every object of a kind in a whole cluster, page by page: however many there are, only one
// page is in memory. visit must copy what it keeps, since a reference to a part keeps the whole page.
// Each returns the error of a failed request, which includes pages that have expired meanwhile, and ErrEndless for a list
// of more than maxEach objects.
func Each[O client.Object](ctx context.Context, on client.Client, list func() client.ObjectList, visit func(O), opts ...client.ListOption) error {
	seen, empty := 0, 0
	for next := ""; ; {
		page := list()
		if err := on.List(ctx, page, append([]client.ListOption{client.Limit(PageSize), client.Continue(next)}, opts...)...); err != nil {
			return err
		}
		empty++
		err := meta.EachListItem(page, func(o runtime.Object) error {
			seen, empty = seen+1, 0
			visit(o.(O)) //nolint:forcetypeassert // the list is of such objects
			return nil
		})
		if err != nil {
			return err
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
		if seen > maxEach || empty > maxEmptyPages {
			return ErrEndless{Objects: seen}
		}
	}
}
