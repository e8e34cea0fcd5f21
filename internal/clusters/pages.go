package clusters

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxConcurrentPages is how many pages a connection reads at the same time. Otherwise the checks of two
// hundred plans in parallel would have as many pages in memory.
const maxConcurrentPages = 4

// List implements client.Reader. Few pages of a connection are read at once. Whole lists do not wait for that. Neither do
// requests of a wave under way: the holder of a slot may have to wait for that wave.
func (c Connection) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(opts)
	switch {
	case asked.Limit == 0:
		return c.whole(ctx, list, asked)
	case IsUrgent(ctx):
		return c.Client.List(ctx, list, opts...)
	}
	select {
	case c.taken <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.taken }()
	return c.Client.List(ctx, list, opts...)
}

// whole reads a complete list page by page, so that no response is longer than necessary. A list from
// the API server's cache comes in one response, whatever the limit. If that is too long, the list is
// read live.
func (c Connection) whole(ctx context.Context, list client.ObjectList, asked *client.ListOptions) error {
	if asked.Raw != nil && asked.Raw.ResourceVersion == "0" {
		err := c.Client.List(ctx, list, asked)
		if !errors.As(err, new(ErrTooLong)) {
			return err
		}
		live := *asked
		live.Raw = asked.Raw.DeepCopy()
		live.Raw.ResourceVersion = ""
		asked = &live
	}
	page := *asked
	page.Limit = PageSize
	if err := c.Client.List(ctx, list, &page); err != nil || list.GetContinue() == "" {
		return err
	}
	all, err := meta.ExtractList(list)
	for next := list.GetContinue(); err == nil && next != ""; {
		page.Continue = next
		more := likewise(list) // decoding into a list that has items may overwrite them
		if err = c.Client.List(ctx, more, &page); err != nil {
			return err
		}
		var items []runtime.Object
		items, err = meta.ExtractList(more)
		all, next = append(all, items...), more.GetContinue()
	}
	if err != nil {
		return err
	}
	list.SetContinue("")
	list.SetRemainingItemCount(nil)
	return meta.SetList(list, all)
}

// likewise returns an empty list of the same kind.
func likewise(list client.ObjectList) client.ObjectList {
	other := reflect.New(reflect.TypeOf(list).Elem()).Interface().(client.ObjectList) //nolint:forcetypeassert // as list is
	other.GetObjectKind().SetGroupVersionKind(list.GetObjectKind().GroupVersionKind())
	return other
}

// ErrTooLong reports that a response exceeded the limit for any response.
type ErrTooLong struct {
	Host string
	Most int64 // bytes
}

// Error implements error.
func (e ErrTooLong) Error() string {
	return fmt.Sprintf("%s answers with more than %d MiB, and the rest is not read", e.Host, e.Most>>20)
}
