package dns

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
)

// Cluster is one cluster as Syncers see it. All Syncers that follow the same kind in the same namespace share
// one watch and its cache, which end with the last of them. So many plans cost no more than the namespaces
// that they use.
type Cluster struct {
	client kubernetes.Interface
	lock   sync.Mutex
	open   map[place]*objectCache
}

// place is the kind and namespace of one watch.
type place struct{ kind, namespace string }

// The watched kinds.
const (
	ofPods     = "pods"
	ofServices = "services"
	ofSlices   = "endpointslices"
)

// NewCluster returns a Cluster for Syncers to share. It opens no watch yet.
func NewCluster(config *rest.Config) (*Cluster, error) {
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("names: %w", err)
	}
	return clusterOf(c), nil
}

func clusterOf(c kubernetes.Interface) *Cluster {
	return &Cluster{client: c, open: map[place]*objectCache{}}
}

// follow returns the objects of a place that belong to who (see whose). It rings with every change of them
// until ctx ends. ring must not block.
func (c *Cluster) follow(ctx context.Context, at place, who string, ring func()) view {
	c.lock.Lock()
	defer c.lock.Unlock()
	s, open := c.open[at]
	if !open {
		s = newShelf()
		c.open[at] = s
		watching, stop := context.WithCancel(context.WithoutCancel(ctx)) // the watch outlives its first reader
		s.stop = stop
		from, example := c.reads(at)
		all := cache.ToListWatcherWithWatchListSemantics(s.noticing(from), c.client)
		go cache.NewReflectorWithOptions(all, example, s, cache.ReflectorOptions{Name: "names", Backoff: clusters.WatchBackoff()}).RunWithContext(watching)
	}
	v, me := s.join(who, ring)
	context.AfterFunc(ctx, func() { c.leave(at, s, me) })
	return v
}

func (c *Cluster) leave(at place, s *objectCache, me *reader) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if s.leave(me) {
		delete(c.open, at)
		s.stop()
	}
}

// reads returns how a place is listed and watched, and an object of its kind.
func (c *Cluster) reads(at place) (*cache.ListWatch, runtime.Object) {
	switch at.kind {
	case ofPods:
		api := c.client.CoreV1().Pods(at.namespace)
		return reading(api.List, api.Watch), &corev1.Pod{}
	case ofServices:
		api := c.client.CoreV1().Services(at.namespace)
		return reading(api.List, api.Watch), &corev1.Service{}
	default:
		api := c.client.DiscoveryV1().EndpointSlices(at.namespace)
		return reading(api.List, api.Watch), &discoveryv1.EndpointSlice{}
	}
}

func reading[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error), open func(context.Context, metav1.ListOptions) (watch.Interface, error)) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if o.ResourceVersion == "0" { // it would come in one response, however long
				o.ResourceVersion, o.ResourceVersionMatch = "", ""
			}
			return list(ctx, o)
		},
		WatchFuncWithContext: open,
	}
}
