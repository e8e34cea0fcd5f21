package clusters

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// maxConcurrentPages is how many pages a connection reads at the same time. Otherwise the checks of two
// hundred plans in parallel would have as many pages in memory.
const maxConcurrentPages = 4

// maxWhole is how much memory a complete list may keep, in bytes. A list of ten thousand nodes keeps some 150 MB.
const maxWhole = 192 << 20

// maxEmptyPages is how many pages in turn may have no object and promise more of them.
const maxEmptyPages = 10

// Get implements client.Reader.
func (c Connection) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	ctx, room := weight.WithRoom(ctx)
	defer room.Give()
	return c.Client.Get(ctx, key, into, opts...)
}

// List implements client.Reader. Few pages of a connection are read at once. Whole lists do not wait for that. Neither do
// requests of a wave under way: the holder of a slot may have to wait for that wave.
func (c Connection) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(opts)
	switch {
	case asked.Limit == 0:
		return c.whole(ctx, list, asked)
	case IsUrgent(ctx):
		return c.page(ctx, list, asked)
	}
	select {
	case c.taken <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.taken }()
	return c.page(ctx, list, asked)
}

// page reads one page. Of objects so large that a page of them is refused it reads fewer at once: where a list continues
// does not depend on how many were asked for.
func (c Connection) page(ctx context.Context, list client.ObjectList, asked *client.ListOptions) error {
	for fewer := *asked; ; fewer.Limit /= 10 {
		err := c.read(ctx, list, &fewer)
		if fewer.Limit < 10 || !errors.As(err, new(ErrTooLong)) {
			return err
		}
	}
}

// read reads one answer, and gives the room for it back when it is decoded.
func (c Connection) read(ctx context.Context, list client.ObjectList, asked *client.ListOptions) error {
	ctx, room := weight.WithRoom(ctx)
	defer room.Give()
	return c.Client.List(ctx, list, asked)
}

// whole reads a complete list page by page, so that no response is longer than necessary. A list from
// the API server's cache comes in one response, whatever the limit. If that is too long, the list is
// read live.
func (c Connection) whole(ctx context.Context, list client.ObjectList, asked *client.ListOptions) error {
	if asked.Raw != nil && asked.Raw.ResourceVersion == "0" {
		err := c.read(ctx, list, asked)
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
	if err := c.page(ctx, list, &page); err != nil || list.GetContinue() == "" {
		return err
	}
	all, err := meta.ExtractList(list)
	kept, empty := weight.Of(list), 0
	for next := list.GetContinue(); err == nil && next != ""; {
		page.Continue = next
		more := likewise(list) // decoding into a list that has items may overwrite them
		if err = c.page(ctx, more, &page); err != nil {
			return err
		}
		var items []runtime.Object
		items, err = meta.ExtractList(more)
		all, next = append(all, items...), more.GetContinue()
		if empty++; len(items) > 0 {
			empty = 0
		}
		if kept += weight.Of(more); kept > maxWhole || empty > maxEmptyPages {
			return ErrEndless{Objects: len(all)}
		}
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

// ErrTooLong reports that a response exceeded a limit: that for any response, or that for what it would be in memory.
type ErrTooLong struct {
	Host string
	Most int64 // bytes; 0 if it was not too long
	Why  error // why it is not decoded, or nil
}

// Error implements error.
func (e ErrTooLong) Error() string {
	if e.Why != nil {
		return fmt.Sprintf("the answer of %s is not read: %v", e.Host, e.Why)
	}
	return fmt.Sprintf("%s answers with more than %d MiB, and the rest is not read", e.Host, e.Most>>20)
}

// Unwrap returns why the response is not decoded.
func (e ErrTooLong) Unwrap() error { return e.Why }

// ErrEndless reports that a list was given up: it has more than any cluster has, or promises more without end.
type ErrEndless struct {
	Objects int // that were read
}

// Error implements error.
func (e ErrEndless) Error() string {
	return fmt.Sprintf("the list has no end within reason: it was given up after %d objects", e.Objects)
}
