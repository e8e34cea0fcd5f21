package clusters

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// crowd counts concurrent lists.
type crowd struct {
	client.Client
	in, most atomic.Int32
	once     sync.Once
	full     chan struct{}
	leave    chan struct{}
}

func (c *crowd) List(context.Context, client.ObjectList, ...client.ListOption) error {
	n := c.in.Add(1)
	c.most.Store(max(c.most.Load(), n))
	if n == maxConcurrentPages {
		c.once.Do(func() { close(c.full) })
	}
	<-c.leave
	c.in.Add(-1)
	return nil
}

func TestPagesTakeTurns(t *testing.T) {
	inside := &crowd{full: make(chan struct{}), leave: make(chan struct{})}
	on := Connection{Client: inside, taken: make(chan struct{}, maxConcurrentPages)}
	done := make(chan error)
	for range 20 {
		go func() { done <- on.List(t.Context(), &corev1.PodList{}, client.Limit(500)) }()
	}
	<-inside.full
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if err := on.List(impatient, &corev1.PodList{}, client.Limit(500)); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait any longer gets %v", err)
	}
	count := &counted{}
	free := Connection{Client: count, taken: on.taken}
	if err := errors.Join(free.List(t.Context(), &corev1.PodList{}), free.List(Urgent(t.Context()), &corev1.PodList{}, client.Limit(500))); err != nil || count.n != 2 {
		t.Errorf("what does not wait was sent %d times, expected twice: %v", count.n, err)
	}
	close(inside.leave)
	for range 20 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if most := inside.most.Load(); most != maxConcurrentPages {
		t.Errorf("%d lists at once, expected %d", most, maxConcurrentPages)
	}
}

// counted counts lists.
type counted struct {
	client.Client
	n int
}

func (c *counted) List(context.Context, client.ObjectList, ...client.ListOption) error {
	c.n++
	return nil
}

// larder has objects, and returns as many per response as requested. A list from its cache returns them
// all.
type larder struct {
	client.Client
	have, most int
	asked      []client.ListOptions
}

func (s *larder) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	s.asked = append(s.asked, o)
	from, to := 0, s.have
	if o.Continue != "" {
		from, _ = strconv.Atoi(o.Continue)
	}
	if cached := o.Raw != nil && o.Raw.ResourceVersion == "0"; o.Limit > 0 && !cached {
		to = min(s.have, from+int(o.Limit))
	}
	if to-from > s.most {
		return fmt.Errorf("reading: %w", ErrTooLong{Host: "east", Most: 32 << 20})
	}
	pods := list.(*corev1.PodList)
	pods.Items = pods.Items[:0] // as decoders do
	for k := from; k < to; k++ {
		pods.Items = append(pods.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(k)}})
	}
	pods.ResourceVersion, pods.Continue = "7", ""
	if to < s.have {
		pods.Continue = strconv.Itoa(to)
	}
	return nil
}

func TestAWholeListIsReadInPages(t *testing.T) {
	cached := &client.ListOptions{Namespace: "shop", Raw: &metav1.ListOptions{ResourceVersion: "0"}}
	for name, c := range map[string]struct {
		larder
		opts     client.ListOption
		requests int
	}{
		"few":                        {larder{have: 3, most: 500}, client.InNamespace("shop"), 1},
		"many":                       {larder{have: 1203, most: 500}, client.InNamespace("shop"), 3},
		"few from the cache":         {larder{have: 3, most: 500}, cached, 1},
		"too many out of the cache":  {larder{have: 1203, most: 1000}, cached, 4},
		"many that come as they are": {larder{have: 900, most: 1000}, cached, 1},
	} {
		var pods corev1.PodList
		if err := (Connection{Client: &c.larder}).List(t.Context(), &pods, c.opts); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for k, pod := range pods.Items {
			if pod.Name != strconv.Itoa(k) {
				t.Fatalf("%s: pod %d is %s", name, k, pod.Name)
			}
		}
		if len(pods.Items) != c.have || len(c.asked) != c.requests || pods.Continue != "" || pods.ResourceVersion != "7" {
			t.Errorf("%s: %d of %d in %d requests, continue %q, version %q", name, len(pods.Items), c.have, len(c.asked), pods.Continue, pods.ResourceVersion)
		}
		for _, o := range c.asked {
			if o.Namespace != "shop" {
				t.Errorf("%s: it asked for namespace %q", name, o.Namespace)
			}
		}
	}
	if cached.Raw.ResourceVersion != "0" {
		t.Error("what was asked for is changed for the next time")
	}
}
