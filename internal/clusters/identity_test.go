package clusters

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/plans"
)

// store is a cluster: its namespaces with their UIDs, the certificates that its pods trust, and the revision of its store,
// which grows by grows with every list.
type store struct {
	uids  map[string]types.UID
	ca    string
	at    int
	grows int
}

// through returns the client of a user who may read these namespaces. lags is how far the lists of a proxy on the way are
// behind.
func (s *store) through(lags int, may ...string) client.Client {
	no := func(resource, name string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, name, errors.New("no right"))
	}
	allowed := func(namespace string) bool {
		for _, m := range may {
			if m == namespace {
				return true
			}
		}
		return false
	}
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			switch o := o.(type) {
			case *corev1.Namespace:
				uid, there := s.uids[key.Name]
				switch {
				case !allowed(key.Name):
					return no("namespaces", key.Name)
				case !there:
					return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
				}
				o.UID = uid
			case *corev1.ConfigMap:
				if !allowed(key.Namespace) {
					return no("configmaps", key.Name)
				}
				o.Data = map[string]string{"ca.crt": s.ca}
			}
			return nil
		},
		List: func(_ context.Context, _ client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			of := client.ListOptions{}
			of.ApplyOptions(opts)
			if !allowed(of.Namespace) {
				return no("pods", "")
			}
			s.at += s.grows
			l.SetResourceVersion(strconv.Itoa(s.at - lags))
			return nil
		},
	})
}

// Two contexts of one cluster are never taken for two, nor two clusters for one, whatever their users may read. What cannot be
// proven is refused, with the right that would prove it.
func TestClustersAreToldApartWithTheRightsOfANamespace(t *testing.T) {
	one := func() *store {
		return &store{map[string]types.UID{"kube-system": "1", "shop": "1s", "mall": "1m"}, "ca-1", 1000, 1}
	}
	two := func() *store {
		return &store{map[string]types.UID{"kube-system": "2", "shop": "2s", "mall": "2m"}, "ca-2", 500, 0}
	}
	clone := func() *store { // from a snapshot of the first one's etcd
		return &store{map[string]types.UID{"kube-system": "1", "shop": "1s", "mall": "1m"}, "ca-2", 500, 0}
	}
	type ends struct{ s, d client.Client }
	both := func(a, b *store, s, d []string) ends { return ends{a.through(0, s...), b.through(0, d...)} }
	all := []string{"kube-system", "shop", "mall"}
	x := one()
	for name, c := range map[string]struct {
		ends
		source, destination string // the namespaces of the set, shop and mall if empty
		want                string // CLUSTER/KNOWN-BY of both sides
		refused             string
	}{
		"one cluster, by kube-system":      {ends: both(x, x, all, all), want: "1/ 1/"},
		"two clusters, by kube-system":     {ends: both(one(), two(), all, all), want: "1/ 2/"},
		"one cluster, a namespace's user":  {ends: both(x, x, []string{"shop", "mall"}, []string{"shop", "mall"}), want: "1m/mall 1m/mall"},
		"one of the users may read more":   {ends: both(x, x, all, []string{"mall"}), want: "1m/mall 1m/mall"},
		"the other one may":                {ends: both(x, x, []string{"shop"}, all), refused: "get namespace mall on the source"},
		"two users of one cluster":         {ends: both(x, x, []string{"shop"}, []string{"mall"}), refused: "get namespace mall on the source"},
		"a proxy that lags is no proof":    {ends: ends{x.through(0, "shop"), x.through(700, "mall")}, refused: "get namespace mall on the source"},
		"two clusters, a namespace's user": {ends: both(one(), two(), []string{"shop"}, []string{"mall"}), want: "1s/shop 2m/mall"},
		"the other way":                    {ends: both(two(), one(), []string{"shop"}, []string{"mall"}), want: "2s/shop 1m/mall"},
		"two clusters, one namespace":      {ends: both(one(), two(), []string{"shop"}, []string{"shop"}), destination: "shop", want: "1s/shop 2s/shop"},
		"two that seem to trust one CA":    {ends: both(one(), &store{two().uids, "ca-1", 500, 0}, []string{"shop"}, []string{"mall"}), refused: "kube-system on both sides"},
		"two whose revisions do not meet":  {ends: both(&store{one().uids, "ca-1", 1000, 0}, &store{two().uids, "ca-2", 1000, 0}, []string{"shop"}, []string{"mall"}), refused: "kube-system on both sides"},
		"no pods may be listed":            {ends: both(one(), two(), []string{"shop"}, []string{"mall"}), source: "none", refused: "neither namespace kube-system nor namespace none"},
		"a snapshot counts as one, as ever": {
			ends: both(one(), clone(), []string{"shop", "mall"}, []string{"mall"}), want: "1m/mall 1m/mall", // the check one-cluster refuses it
		},
		"a namespace that does not exist":           {ends: both(x, x, []string{"shop", "hall"}, []string{"hall"}), destination: "hall", refused: "namespace hall does not exist there: create it"},
		"a namespace that may not exist, or may":    {ends: both(x, x, []string{"shop"}, nil), destination: "hall", refused: "if hall does not exist"},
		"the destination is only on its own side":   {ends: both(&store{map[string]types.UID{"shop": "1s"}, "ca-1", 1000, 1}, two(), []string{"shop", "mall"}, []string{"mall"}), want: "1s/shop 2m/mall"},
		"a namespace that a proxy hides is no sign": {ends: both(&store{map[string]types.UID{"shop": "1s"}, "ca-1", 1000, 1}, &store{map[string]types.UID{"mall": "1m"}, "ca-1", 900, 1}, []string{"shop", "mall"}, []string{"mall"}), refused: "kube-system on both sides"},
	} {
		source, destination := "shop", "mall"
		if c.source != "" {
			source = c.source
		}
		if c.destination != "" {
			destination = c.destination
		}
		sets := map[plans.Side]plans.Ref{plans.Source: {Namespace: source}, plans.Destination: {Namespace: destination}}
		on := map[plans.Side]client.Client{plans.Source: c.s, plans.Destination: c.d}
		_, err := Identify(t.Context(), on, sets)
		got := ""
		if s, d := sets[plans.Source], sets[plans.Destination]; s.Cluster != "" || d.Cluster != "" {
			got = string(s.Cluster) + "/" + s.KnownBy + " " + string(d.Cluster) + "/" + d.KnownBy
		}
		if got != c.want || (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err != nil {
			continue
		}
		for side, set := range sets { // the plan finds its clusters again
			if uid, err := UIDOf(t.Context(), on[side], set); err != nil || uid != set.Cluster {
				t.Errorf("%s: %s is found again as %q: %v", name, side, uid, err)
			}
		}
	}
}

// A cluster without an answer is no cluster, and neither is one whose namespace has no UID.
func TestAnIdentityIsNeverEmpty(t *testing.T) {
	for name, c := range map[string]client.Client{
		"no namespace": fake.NewClientBuilder().Build(),
		"no UID":       fake.NewClientBuilder().WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}).Build(),
	} {
		sets := map[plans.Side]plans.Ref{plans.Source: {Namespace: "shop"}, plans.Destination: {Namespace: "mall"}}
		if side, err := Identify(t.Context(), map[plans.Side]client.Client{plans.Source: c, plans.Destination: c}, sets); err == nil || side != plans.Source {
			t.Errorf("%s: %v, %+v", name, err, sets)
		}
	}
}
