package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// scenario is the list of acts of a controller in one namespace, from its start to its end.
type scenario struct {
	name string
	acts []act
	// slicesOnly is true if StatefulSets have no equivalent. The built-in controller, which does
	// not know EnforcedRollingUpdate, performs the same acts with RollingUpdate.
	slicesOnly bool
}

// act is the unit of measurement. It ends when all sets are complete.
type act struct {
	name string
	pods int32 // pods that it concerns
	sets int   // sets in the namespace
	// write makes the change that a user would make.
	write func(ctx context.Context, c sets, namespace string) error
}

// sets is a client for sets of one kind.
type sets struct {
	client.WithWatch
	slices bool
}

// as returns a set as an object of the kind.
func (s sets) as(set *appsv1.StatefulSet) client.Object {
	if !s.slices {
		if set.Spec.UpdateStrategy.Type == v1alpha1.EnforcedRollingUpdate {
			set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{}
		}
		return set
	}
	return v1alpha1.FromNative(set)
}

// list returns an empty list of the kind.
func (s sets) list() client.ObjectList {
	if s.slices {
		return &v1alpha1.StatefulSetSliceList{}
	}
	return &appsv1.StatefulSetList{}
}

func scenarios(pods int32, many int) []scenario {
	const each = 3
	const rolled = `{"spec":{"template":{"metadata":{"annotations":{"roll":"1"}}}}}`
	return []scenario{
		{"One set without order", []act{
			creation(fmt.Sprintf("create %d, Parallel", pods), pods, appsv1.ParallelPodManagement, ""),
			edit(fmt.Sprintf("scale %d to 0, Parallel", pods), pods, `{"spec":{"replicas":0}}`),
		}, false},
		{"One set in order", []act{
			creation(fmt.Sprintf("create %d, OrderedReady", pods), pods, appsv1.OrderedReadyPodManagement, ""),
			edit(fmt.Sprintf("roll %d, one at a time", pods), pods, rolled),
		}, false},
		{"One set by force", []act{
			creation(fmt.Sprintf("create %d, EnforcedRollingUpdate", pods), pods, appsv1.ParallelPodManagement, v1alpha1.EnforcedRollingUpdate),
			edit(fmt.Sprintf("roll %d, EnforcedRollingUpdate", pods), pods, rolled),
		}, true},
		{"Many sets", []act{{fmt.Sprintf("create %d sets of %d, with claims", many, each), int32(many) * each, many, func(ctx context.Context, c sets, namespace string) error {
			for k := range many {
				set := newSet(namespace, fmt.Sprintf("web-%d", k), each, appsv1.OrderedReadyPodManagement)
				set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim()}
				if err := c.Create(ctx, c.as(set)); err != nil {
					return err
				}
			}
			return nil
		}}}, false},
	}
}

func creation(name string, pods int32, policy appsv1.PodManagementPolicyType, strategy appsv1.StatefulSetUpdateStrategyType) act {
	return act{name, pods, 1, func(ctx context.Context, c sets, namespace string) error {
		set := newSet(namespace, "web", pods, policy)
		set.Spec.UpdateStrategy.Type = strategy
		return c.Create(ctx, c.as(set))
	}}
}

func edit(name string, pods int32, patch string) act {
	return act{name, pods, 1, func(ctx context.Context, c sets, namespace string) error {
		return c.Patch(ctx, c.as(newSet(namespace, "web", pods, "")), client.RawPatch("application/merge-patch+json", []byte(patch)))
	}}
}

// complete reports whether a set matches its spec and nothing is left to do.
func complete(s *appsv1.StatefulSet) bool {
	n, st := *s.Spec.Replicas, s.Status
	return st.ObservedGeneration == s.Generation && st.Replicas == n && st.AvailableReplicas == n && st.UpdatedReplicas == n && (n == 0 || st.CurrentRevision == st.UpdateRevision)
}

func claim() corev1.PersistentVolumeClaim {
	class := cluster.SharedClass
	return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class,
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}

func newSet(namespace, name string, pods int32, policy appsv1.PodManagementPolicyType) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &pods, PodManagementPolicy: policy, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}},
		},
	}
}

// aftermath is how long a controller is still measured after an act, for its late work.
const aftermath = time.Second

// patience is far longer than an act takes.
const patience = 5 * time.Minute

// play starts a controller and measures the cost of each act. BEFORE the first act it brings up a
// set in another namespace, so that the controller's one-time work is done.
func (b *bench) play(ctx context.Context, who contestant, s scenario, namespace string) ([]cost, error) {
	process, err := who.begin(namespace)
	if err != nil {
		return nil, err
	}
	defer who.end(process)
	warm := namespace + "-warm"
	for _, name := range []string{namespace, warm} {
		if err := b.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return nil, err
		}
	}
	kind := sets{b.WithWatch, who.slices}
	if _, err := b.measure(ctx, kind, process.Process.Pid, creation("warm up", 1, appsv1.OrderedReadyPodManagement, ""), warm); err != nil {
		return nil, err
	}
	var costs []cost
	for _, a := range s.acts {
		c, err := b.measure(ctx, kind, process.Process.Pid, a, namespace)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		costs = append(costs, c)
	}
	return costs, b.clear(ctx, namespace)
}

// measure performs one act and returns its cost.
func (b *bench) measure(ctx context.Context, kind sets, pid int, a act, namespace string) (cost, error) {
	b.requests.Take()
	before, err := used(pid)
	if err != nil {
		return cost{}, err
	}
	start := time.Now()
	if err := a.write(ctx, kind, namespace); err != nil {
		return cost{}, err
	}
	if err := kind.await(ctx, a, namespace); err != nil {
		return cost{}, err
	}
	took := time.Since(start)
	select {
	case <-time.After(aftermath):
	case <-ctx.Done():
	}
	after, err := used(pid)
	if err != nil {
		return cost{}, err
	}
	calls := b.requests.Take()
	if b.kinds {
		fmt.Printf("  %s: %s\n", a.name, kinds(calls))
	}
	return cost{took: took, requests: len(calls), cpu: after.cpu - before.cpu, peak: after.peak}, nil
}

// await waits until all sets of an act are complete.
func (s sets) await(ctx context.Context, a act, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w, err := s.Watch(ctx, s.list(), client.InNamespace(namespace))
	if err != nil {
		return err
	}
	defer w.Stop()
	over := map[string]bool{}
	for e := range w.ResultChan() { // the watch begins with the existing objects
		if slice, ok := e.Object.(*v1alpha1.StatefulSetSlice); ok {
			e.Object = slice.Native()
		}
		if set, ok := e.Object.(*appsv1.StatefulSet); ok {
			if over[set.Name] = complete(set); !over[set.Name] {
				delete(over, set.Name)
			}
		}
		if len(over) == a.sets {
			return nil
		}
	}
	return fmt.Errorf("%d of %d sets are complete: %w", len(over), a.sets, ctx.Err())
}

// clear deletes a namespace with everything in it, and waits until it is gone.
func (b *bench) clear(ctx context.Context, namespace string) error {
	w, err := b.Watch(ctx, &corev1.NamespaceList{}, client.MatchingFields{"metadata.name": namespace})
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := b.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	for e := range w.ResultChan() {
		if e.Type == "DELETED" {
			return nil
		}
	}
	var ns corev1.Namespace
	if err := b.Get(ctx, client.ObjectKey{Name: namespace}, &ns); !apierrors.IsNotFound(err) {
		return fmt.Errorf("namespace %s was not deleted: %w", namespace, err)
	}
	return nil
}
