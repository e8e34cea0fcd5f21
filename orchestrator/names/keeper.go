package names

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Keeper keeps the slices of one plan as the pods are. It works from watches and
// is right again after any death: what it writes is a function of the pods. Each
// write is conditional; what it loses to another process is looked at again.
type Keeper struct {
	plan    *plans.Plan
	bell    chan struct{}
	pods    map[plans.Side]cache.Store
	desks   []desk
	synced  []cache.InformerSynced
	report  func(error)
	stop    context.CancelFunc
	stopped sync.WaitGroup
}

// desk is one directory and what is known of it.
type desk struct {
	plans.Directory
	client   kubernetes.Interface
	services cache.Store
	slices   cache.Store
}

// Keep starts a Keeper, which ends with ctx or with Stop. report gets every error;
// all are tried again.
func Keep(ctx context.Context, p *plans.Plan, configs map[plans.Side]*rest.Config, report func(error)) (*Keeper, error) {
	ctx, stop := context.WithCancel(ctx)
	k := &Keeper{plan: p, bell: make(chan struct{}, 1), pods: map[plans.Side]cache.Store{}, report: report, stop: stop}
	clients := map[plans.Side]kubernetes.Interface{}
	for side, config := range configs {
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			stop()
			return nil, fmt.Errorf("names on the %s: %w", side, err)
		}
		clients[side] = c
		k.pods[side] = k.follow(ctx, c, c.CoreV1().RESTClient(), "pods", p.On(side).Namespace, &corev1.Pod{}, nil)
	}
	for _, d := range p.Directories() {
		desk := desk{Directory: d, client: clients[d.On]}
		desk.services = k.follow(ctx, desk.client, desk.client.CoreV1().RESTClient(), "services", d.Namespace, &corev1.Service{}, func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=" + p.Names.Service })
		desk.slices = k.follow(ctx, desk.client, desk.client.DiscoveryV1().RESTClient(), "endpointslices", d.Namespace, &discoveryv1.EndpointSlice{}, func(o *metav1.ListOptions) { o.LabelSelector = selector(p).String() })
		k.desks = append(k.desks, desk)
	}
	k.stopped.Go(func() { k.run(ctx) })
	return k, nil
}

// Stop ends the Keeper. It returns once the last write has been answered.
func (k *Keeper) Stop() {
	k.stop()
	k.stopped.Wait()
}

func selector(p *plans.Plan) labels.Selector {
	return labels.SelectorFromSet(labels.Set{discoveryv1.LabelManagedBy: ManagedBy, PlanLabel: p.ID})
}

// follow rings the bell with every change of a kind until ctx ends. The informer is not a shared
// one: nobody else hears of it, and an orchestrator has thousands.
func (k *Keeper) follow(ctx context.Context, by kubernetes.Interface, of cache.Getter, resource, namespace string, object runtime.Object, only func(*metav1.ListOptions)) cache.Store {
	ring := func() {
		select {
		case k.bell <- struct{}{}:
		default:
		}
	}
	if only == nil {
		only = func(*metav1.ListOptions) {}
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(cache.NewFilteredListWatchFromClient(of, resource, namespace, only), by),
		ObjectType:    object, Transform: slim,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { ring() },
			UpdateFunc: func(any, any) { ring() },
			DeleteFunc: func(any) { ring() },
		},
	})
	k.synced = append(k.synced, informer.HasSynced)
	go informer.RunWithContext(ctx)
	return store
}

// slim keeps of a pod what a slice is made from.
func slim(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		DeletionTimestamp: pod.DeletionTimestamp, OwnerReferences: pod.OwnerReferences,
	}}
	for _, c := range pod.Spec.Containers {
		out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Name: c.Name, Ports: c.Ports})
	}
	out.Status.Phase, out.Status.PodIPs, out.Status.Conditions = pod.Status.Phase, pod.Status.PodIPs, pod.Status.Conditions
	return out, nil
}

func (k *Keeper) run(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), k.synced...) {
		return
	}
	again := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: 10 * time.Second}
	retry := again
	for {
		var later <-chan time.Time
		if err := k.sync(ctx); err != nil && ctx.Err() == nil {
			k.report(fmt.Errorf("names: %w", err))
			later = time.After(retry.Step())
		} else {
			retry = again
		}
		select {
		case <-k.bell:
		case <-later:
		case <-ctx.Done():
			return
		}
	}
}

// sync brings every directory to what the pods say.
func (k *Keeper) sync(ctx context.Context) error {
	pods := map[plans.Side][]*corev1.Pod{}
	for side, store := range k.pods {
		for _, o := range store.List() {
			if pod, ok := o.(*corev1.Pod); ok && ofSet(k.plan, pod) {
				pods[side] = append(pods[side], pod)
			}
		}
	}
	for _, d := range k.desks {
		if err := d.sync(ctx, k.plan, pods, k.model()); err != nil {
			return fmt.Errorf("Service %s/%s on the %s: %w", d.Namespace, k.plan.Names.Service, d.On, err)
		}
	}
	return nil
}

func ofSet(p *plans.Plan, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Name == p.Source.Name
}

// model is the Service that others are made like.
func (k *Keeper) model() *corev1.Service {
	for _, d := range k.desks {
		if s := d.service(k.plan); s != nil && d.Lists != "" {
			return s
		}
	}
	return nil
}

func (d desk) service(p *plans.Plan) *corev1.Service {
	o, _, _ := d.services.GetByKey(d.Namespace + "/" + p.Names.Service)
	s, _ := o.(*corev1.Service)
	return s
}

func (d desk) sync(ctx context.Context, p *plans.Plan, pods map[plans.Side][]*corev1.Pod, model *corev1.Service) error {
	service := d.service(p)
	if service == nil {
		if d.Lists != "" || model == nil {
			return nil // on its way, or gone: a slice without a Service is found by nobody
		}
		_, err := d.client.CoreV1().Services(d.Namespace).Create(ctx, standIn(p, d.Directory, model), metav1.CreateOptions{})
		return answered(err)
	}
	want := Want(p, d.Directory, service, pods)
	for _, o := range d.slices.List() {
		have, ok := o.(*discoveryv1.EndpointSlice)
		if !ok {
			continue
		}
		if err := d.bring(ctx, have, want[have.Name]); err != nil {
			return err
		}
		delete(want, have.Name)
	}
	for _, s := range want {
		if _, err := d.client.DiscoveryV1().EndpointSlices(s.Namespace).Create(ctx, s, metav1.CreateOptions{}); answered(err) != nil {
			return err
		}
	}
	return nil
}

// bring changes or removes a slice that does not say what it has to. Slices are ours alone, and are written
// whole.
func (d desk) bring(ctx context.Context, have, want *discoveryv1.EndpointSlice) error {
	c := d.client.DiscoveryV1().EndpointSlices(have.Namespace)
	if want == nil {
		return answered(c.Delete(ctx, have.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion}}))
	}
	if same(have, want) {
		return nil
	}
	next := have.DeepCopy()
	next.Labels, next.Endpoints, next.Ports = want.Labels, want.Endpoints, want.Ports
	_, err := c.Update(ctx, next, metav1.UpdateOptions{})
	return answered(err)
}

// standIn is a Service for names that no Service of the cluster answers.
func standIn(p *plans.Plan, d plans.Directory, model *corev1.Service) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: p.Names.Service, Labels: map[string]string{PlanLabel: p.ID}}}
	s.Spec.ClusterIP = corev1.ClusterIPNone
	s.Spec.PublishNotReadyAddresses = model.Spec.PublishNotReadyAddresses
	for _, port := range model.Spec.Ports {
		port.NodePort = 0
		s.Spec.Ports = append(s.Spec.Ports, port)
	}
	return s
}

// answered drops the errors that say the object is not as it was last seen: the
// watch will tell, and ring.
func answered(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
