package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// EndPods deletes terminating pods after a delay, as kubelets do: exactly that pod, by its UID.
// KWOK deletes by name, and sometimes deletes the pod's successor too. EndPods returns when ctx
// ends. The cluster must have been started with Options.StopByUID.
func EndPods(ctx context.Context, c *Cluster, delay time.Duration) error {
	pods, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(pods, 0)
	var all sync.WaitGroup
	var lock sync.Mutex
	seen := map[types.UID]bool{}
	end := func(o any) {
		p, ok := o.(*corev1.Pod)
		lock.Lock()
		defer lock.Unlock()
		if !ok || p.DeletionTimestamp == nil || seen[p.UID] {
			return
		}
		seen[p.UID] = true
		all.Go(func() {
			select {
			case <-time.After(delay):
			case <-ctx.Done():
				return
			}
			now := metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &p.UID}}
			err := pods.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, now)
			if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				fmt.Printf("pod %s/%s of %s was not deleted: %v\n", p.Namespace, p.Name, c.Name, err)
			}
		})
	}
	informer := factory.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: end, UpdateFunc: func(_, o any) { end(o) }}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	all.Wait()
	return nil
}
