package planstest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Unread lets each read of a look fail in turn. The look must return the error, and conclude nothing from what it has not
// read.
func Unread(t *testing.T, on map[plans.Side]client.Client, look func(map[plans.Side]client.Client) (plans.Observation, error)) {
	t.Helper()
	for n := 1; ; n++ {
		reads, what, away := 0, "", apierrors.NewServiceUnavailable("away")
		fails := func(read string) error {
			if reads++; reads == n {
				what = read
				return away
			}
			return nil
		}
		failing := map[plans.Side]client.Client{}
		for side, c := range on {
			failing[side] = interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // a client of the test
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if err := fails(fmt.Sprintf("%T %s", o, key)); err != nil {
						return err
					}
					return c.Get(ctx, key, o, opts...)
				},
				List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
					if err := fails(fmt.Sprintf("%T", l)); err != nil {
						return err
					}
					return c.List(ctx, l, opts...)
				},
			})
		}
		s, err := look(failing)
		if what == "" {
			return // each of its reads has failed once
		}
		if !errors.Is(err, away) {
			t.Errorf("%s cannot be read: got %s (%s), %v", what, s.Standing, s.Reason, err)
		}
	}
}
