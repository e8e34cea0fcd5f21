package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// paged answers lists with pages of three out of as many volumes as it is.
type paged struct {
	client.Client
	volumes, asked int
}

func (p *paged) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	from := 0
	if o.Continue != "" {
		if _, err := fmt.Sscan(o.Continue, &from); err != nil {
			return err
		}
	}
	if o.Limit == 0 {
		return errors.New("everything was asked for at once")
	}
	p.asked++
	out := list.(*corev1.PersistentVolumeList)
	for k := from; k < min(from+3, p.volumes); k++ {
		out.Items = append(out.Items, corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pv-", k)}})
	}
	if from+3 < p.volumes {
		out.Continue = fmt.Sprint(from + 3)
	}
	return nil
}

func TestEachGoesThroughAllPages(t *testing.T) {
	for volumes, pages := range map[int]int{0: 1, 2: 1, 3: 1, 4: 2, 10: 4} {
		on := &paged{volumes: volumes}
		seen := 0
		err := each(t.Context(), on, func() client.ObjectList { return &corev1.PersistentVolumeList{} }, func(pv *corev1.PersistentVolume) {
			if want := fmt.Sprint("pv-", seen); pv.Name != want {
				t.Errorf("%s, expected %s", pv.Name, want)
			}
			seen++
		})
		if err != nil || seen != volumes || on.asked != pages {
			t.Errorf("%d of %d volumes seen in %d pages, expected %d pages: %v", seen, volumes, on.asked, pages, err)
		}
	}
}

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
	free := &paged{}
	if err := (turns{free, on.(turns).taken}).List(t.Context(), &corev1.PersistentVolumeList{}); err == nil || free.asked > 0 { // which it refuses, being asked at once
		t.Errorf("a list that is no page has waited, or got %v", err)
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
