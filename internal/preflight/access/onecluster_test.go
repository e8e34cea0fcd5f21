package access

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

// revisions is a store that counts its revisions, as etcd does. It grows by grows with every read.
type revisions struct{ at, grows int }

// behind returns a client of an API server in front of the store.
func (r *revisions) behind(c client.WithWatch, err error) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		if err != nil {
			return err
		}
		r.at += r.grows
		if err := c.List(ctx, l, opts...); err != nil {
			return err
		}
		if l.SetResourceVersion(strconv.Itoa(r.at)); r.at == 0 {
			l.SetResourceVersion("")
		}
		return nil
	}})
}

// Two connections to one store, through whatever API servers, are one cluster. Two stores are two clusters, although their
// objects have the same UIDs: whichever of them is ahead, however busy they are, and from the moment in which they part.
func TestTwoClustersOfOneUIDAreNotOne(t *testing.T) {
	no := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no right"))
	for name, c := range map[string]struct {
		here, there *revisions // nil there: the same store
		two         bool       // clusters, by their UIDs
		err         error
		saw         string
		level       check.Level
		fails       bool
	}{
		"one store, idle":              {here: &revisions{1000, 0}},
		"one store, busy":              {here: &revisions{1000, 7}},
		"a copy that is behind":        {here: &revisions{1000, 0}, there: &revisions{900, 0}, saw: "they are two clusters"},
		"a copy that is ahead":         {here: &revisions{1000, 3}, there: &revisions{1000000000, 1}, saw: "they are two clusters"},
		"a copy that has just parted":  {here: &revisions{1000, 0}, there: &revisions{1000, 1}, saw: "they are two clusters"},
		"a copy that lags a little":    {here: &revisions{1000, 1}, there: &revisions{998, 1}, saw: "they are two clusters"},
		"clusters of two UIDs":         {here: &revisions{1000, 0}, there: &revisions{900, 0}, two: true},
		"versions of which none is":    {here: &revisions{0, 0}, saw: "cannot be compared", level: check.Warn},
		"the user may not list there":  {here: &revisions{1000, 0}, err: no, saw: "you may not look at the pods", level: check.Warn},
		"an API server is not reached": {here: &revisions{1000, 0}, err: errors.New("connection refused"), fails: true},
	} {
		i := checktest.Estate{One: !c.two}.Inspected(t)
		if c.there == nil {
			c.there = c.here
		}
		plain, ok := i.On[plans.Destination].(client.WithWatch)
		if !ok {
			t.Fatal("the client of the test cannot watch")
		}
		i.On = clusters.Clusters{plans.Source: c.here.behind(plain, nil), plans.Destination: c.there.behind(plain, c.err)}
		i.On = i.On.Listed(i.Plan) // as before the start, which must not answer for the other side
		found, err := OneCluster(t.Context(), i)
		switch {
		case (err != nil) != c.fails:
			t.Errorf("%s: %v", name, err)
		case (len(found) > 0) != (c.saw != ""):
			t.Errorf("%s: %+v", name, found)
		case len(found) > 0 && (!strings.Contains(found[0].Saw, c.saw) || found[0].Level != c.level):
			t.Errorf("%s: %+v", name, found)
		}
	}
}
