package clusters

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PageSize is how many objects are read at once, as kubectl does.
const PageSize = 500

// Each goes through what a whole cluster has of a kind, a page at a time: however many there
// are, no more of it is in memory than one page. visit must copy what it keeps, since a part
// keeps the page. An error is that of a request; pages that have expired meanwhile are one.
func Each[O client.Object](ctx context.Context, on client.Client, list func() client.ObjectList, visit func(O), opts ...client.ListOption) error {
	for next := ""; ; {
		page := list()
		if err := on.List(ctx, page, append([]client.ListOption{client.Limit(PageSize), client.Continue(next)}, opts...)...); err != nil {
			return err
		}
		err := meta.EachListItem(page, func(o runtime.Object) error {
			visit(o.(O)) //nolint:forcetypeassert // the list is of such objects
			return nil
		})
		if err != nil {
			return err
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}
