package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// loop calls sync for the keys of changed objects, one key at a time. If sync fails, loop calls it
// again after a delay.
type loop struct {
	queue workqueue.TypedRateLimitingInterface[string]
	sync  func(ctx context.Context, key string, l *loop) error
}

func newLoop(sync func(context.Context, string, *loop) error) *loop {
	limit := workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, 2*time.Second)
	return &loop{queue: workqueue.NewTypedRateLimitingQueue(limit), sync: sync}
}

func (l *loop) watch(informer cache.SharedIndexInformer, key cache.KeyFunc) error {
	add := func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if k, err := key(obj); err == nil && k != "" {
			l.queue.Add(k)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, DeleteFunc: add, UpdateFunc: func(_, obj any) { add(obj) },
	})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	return nil
}

func (l *loop) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, l.queue.ShutDown)
	defer stop()
	for {
		key, shutdown := l.queue.Get()
		if shutdown {
			return
		}
		if err := l.sync(ctx, key, l); err != nil {
			l.queue.AddRateLimited(key)
		} else {
			l.queue.Forget(key)
		}
		l.queue.Done(key)
	}
}
