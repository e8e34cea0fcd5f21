package orchestrator

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// crowd counts how many are in it at once.
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
	if n == pagesAtOnce {
		c.once.Do(func() { close(c.full) })
	}
	<-c.leave
	c.in.Add(-1)
	return nil
}

func TestPagesTakeTurns(t *testing.T) {
	inside := &crowd{full: make(chan struct{}), leave: make(chan struct{})}
	on := pagesInTurn(inside)
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
	free := turns{count, on.(turns).taken}
	if err := errors.Join(free.List(t.Context(), &corev1.PodList{}), free.List(Urgent(t.Context()), &corev1.PodList{}, client.Limit(500))); err != nil || count.n != 2 {
		t.Errorf("what does not wait was sent %d times, expected twice: %v", count.n, err)
	}
	close(inside.leave)
	for range 20 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if most := inside.most.Load(); most != pagesAtOnce {
		t.Errorf("%d lists at once, expected %d", most, pagesAtOnce)
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
