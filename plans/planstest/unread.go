package planstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/plans"
)

var (
	errAway     = apierrors.NewServiceUnavailable("away")
	errUnwanted = errors.New("nothing is written here")
)

// Unread lets each read of a look fail in turn, and then each read of its write. Look and write must return the error, and
// conclude nothing from what they have not read. Nothing is written.
func Unread(t *testing.T, on map[plans.Side]client.Client, look func(map[plans.Side]client.Client) (plans.Observation, error)) {
	t.Helper()
	for n := 1; ; n++ {
		f := &unreadable{fails: n}
		s, err := look(f.clients(on))
		if f.what == "" {
			break // each of its reads has failed once
		}
		if !errors.Is(err, errAway) {
			t.Errorf("%s cannot be read: got %s (%s), %v", f.what, s.Standing, s.Reason, err)
		}
	}
	for n := 1; ; n++ {
		f := &unreadable{}
		s, err := look(f.clients(on))
		if err != nil || s.Write == nil {
			return
		}
		f.reads, f.fails = 0, n
		err = s.Write(t.Context())
		if f.what == "" {
			return
		}
		if !errors.Is(err, errAway) {
			t.Errorf("%s cannot be read before it is written (%s): %v", f.what, s.Reason, err)
		}
	}
}

// unreadable makes clients of which one read fails, and every write but dry runs.
type unreadable struct {
	// fails is the number of the read that fails; 0 for none.
	fails, reads int
	lock         sync.Mutex // checks read concurrently
	// what names the read that has failed.
	what string
}

func (f *unreadable) read(what string) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.reads++; f.reads != f.fails {
		return nil
	}
	f.what = what
	return errAway
}

func (f *unreadable) clients(on map[plans.Side]client.Client) map[plans.Side]client.Client {
	out := map[plans.Side]client.Client{}
	for side, c := range on {
		out[side] = interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // a client of the test
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if err := f.read(fmt.Sprintf("%T %s", o, key)); err != nil {
					return err
				}
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
				if _, words := l.(*corev1.EventList); words {
					return c.List(ctx, l, opts...) // nothing is concluded from Events
				}
				if err := f.read(fmt.Sprintf("%T", l)); err != nil {
					return err
				}
				return c.List(ctx, l, opts...)
			},
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if asked := (&client.CreateOptions{}).ApplyOptions(opts); len(asked.DryRun) > 0 {
					return c.Create(ctx, o, opts...)
				}
				if !strings.HasSuffix(fmt.Sprintf("%T", o), "Review") { // a review asks, and nothing of it is stored
					return errUnwanted
				}
				if err := f.read(fmt.Sprintf("%T", o)); err != nil {
					return err
				}
				return c.Create(ctx, o, opts...)
			},
			Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
				if asked := (&client.DeleteOptions{}).ApplyOptions(opts); len(asked.DryRun) > 0 {
					return nil
				}
				return errUnwanted
			},
			Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
				return errUnwanted
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if asked := (&client.PatchOptions{}).ApplyOptions(opts); len(asked.DryRun) > 0 {
					return c.Patch(ctx, o, patch, opts...)
				}
				return errUnwanted
			},
			Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
				return errUnwanted
			},
		})
	}
	return out
}
