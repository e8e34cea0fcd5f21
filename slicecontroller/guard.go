package slicecontroller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// canaryLabel marks StatefulSets that no controller should reconcile.
const canaryLabel = "apps.stsmigrate.dev/canary"

// canaryTimeout is how long the guard waits for another controller to write to its canary. An idle
// controller needs some milliseconds.
const canaryTimeout = time.Second

// ErrAnother means that another controller reconciles StatefulSets in this cluster.
var ErrAnother = errors.New("another controller reconciles StatefulSets in this cluster")

// canary is a StatefulSet without replicas that no controller should reconcile (AM-6). A controller that
// writes its status reconciles the other StatefulSets too, and two controllers at once would disagree. The
// canary is kept as long as the process leads, since another controller may start at any time: for example,
// a kube-controller-manager whose original flags an upgrade restored.
type canary struct {
	client    client.WithWatch
	namespace string
	// found receives the error that names the other controller.
	found chan error

	lock sync.Mutex
	name string
}

func newGuard(c client.WithWatch, namespace string) *canary {
	return &canary{client: c, namespace: namespace, found: make(chan error, 1)}
}

// is reports whether a set is the canary. There may be no canary.
func (c *canary) is(key types.NamespacedName) bool {
	if c == nil {
		return false
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	return key.Name == c.name && key.Namespace == c.namespace
}

// rename gives the canary another name, and returns its former one.
func (c *canary) rename(to string) (was string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	was, c.name = c.name, to
	return was
}

// release creates the canary, and deletes those of processes that died.
func (c *canary) release(ctx context.Context) (*appsv1.StatefulSet, error) {
	if err := sweep(ctx, c.client, c.namespace); err != nil {
		return nil, err
	}
	set := newCanary(c.namespace)
	was := c.rename(set.Name) // BEFORE an event about it can arrive
	if err := c.client.Create(ctx, set); err != nil {
		if was != "" {
			c.rename(was) // the retry has the name of the deleted canary
		}
		return nil, fmt.Errorf("creating a StatefulSet without replicas in namespace %s, to detect another controller (--guard=false skips this check): %w", c.namespace, err)
	}
	return set, nil
}

// first checks, BEFORE anything is done, whether another controller writes to the canary.
func (c *canary) first(ctx context.Context) error {
	set, err := c.release(ctx)
	if err != nil {
		return err
	}
	seen, err := c.client.Watch(ctx, &appsv1.StatefulSetList{}, client.InNamespace(c.namespace), client.MatchingFields{"metadata.name": set.Name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: set.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("watching StatefulSet %s/%s: %w", c.namespace, set.Name, err)
	}
	defer seen.Stop()
	enough := time.NewTimer(canaryTimeout)
	defer enough.Stop()
	for {
		select {
		case <-enough.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-seen.ResultChan():
			if !open || e.Type == watch.Error {
				return fmt.Errorf("watching StatefulSet %s/%s: the watch ended (%v)", c.namespace, set.Name, e.Object)
			}
			if s, ok := e.Object.(*appsv1.StatefulSet); ok && s.Status.ObservedGeneration > 0 {
				return touched(s)
			}
		}
	}
}

// look is the pass over the canary. A deleted canary is recreated.
func (c *canary) look(ctx context.Context, o client.Object, gone bool) error {
	if gone {
		_, err := c.release(ctx)
		return err
	}
	if s, ok := o.(*appsv1.StatefulSet); ok && s.Status.ObservedGeneration > 0 {
		select {
		case c.found <- touched(s):
		default: // another controller was found already
		}
	}
	return nil
}

// end deletes the canary. If that fails, the next sweep deletes it.
func (c *canary) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), canaryTimeout)
	defer cancel()
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.name != "" {
		_ = c.client.Delete(ctx, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: c.name}})
	}
}

// keep runs do for as long as no other controller is found.
func (c *canary) keep(ctx context.Context, do func(context.Context) error) error {
	defer c.end(ctx)
	if err := c.first(ctx); err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(inner) }()
	select {
	case err := <-done:
		return err
	case err := <-c.found:
		cancel()
		return errors.Join(err, <-done) // no pass is running any more
	}
}

func touched(s *appsv1.StatefulSet) error {
	return fmt.Errorf("%w: %s has written the status of StatefulSet %s/%s, which the guard created to detect other controllers. "+
		"Switch that controller off (kube-controller-manager --controllers=*,-statefulset-controller), or stop the other process; --guard=false skips this check",
		ErrAnother, writer(s), s.Namespace, s.Name)
}

func newCanary(namespace string) *appsv1.StatefulSet {
	labels := map[string]string{canaryLabel: "guard"}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "slicecontroller-canary-" + rand.String(8), Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       harmless(),
			},
		},
	}
}

// harmless returns a pod spec that every namespace admits without a warning.
func harmless() corev1.PodSpec {
	yes, no := true, false
	return corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "never", Image: "never", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}}},
	}
}

// sweep deletes canaries that no process watches any more: those older than a minute.
func sweep(ctx context.Context, c client.Client, namespace string) error {
	var list appsv1.StatefulSetList
	if err := c.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{canaryLabel}); err != nil {
		return err
	}
	for k := range list.Items {
		s := &list.Items[k]
		if time.Since(s.CreationTimestamp.Time) < time.Minute {
			continue
		}
		if err := c.Delete(ctx, s, client.Preconditions{UID: &s.UID}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// writer returns the field manager of the status.
func writer(s *appsv1.StatefulSet) string {
	for _, m := range s.ManagedFields {
		if m.Subresource == "status" {
			return m.Manager
		}
	}
	return "an unknown client"
}
