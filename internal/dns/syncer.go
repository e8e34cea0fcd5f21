package dns

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Syncer keeps the slices of one plan in line with its pods. It works from watches that it shares with other
// Syncers (Cluster). It is correct again after any restart, because its writes are a function of the pods.
// Each write is conditional; after a conflict with another process it looks again. It writes only with
// permission (MayWrite): the objects it creates carry no epoch, so nothing rejects a Syncer that has been
// replaced.
type Syncer struct {
	plan    *plans.Plan
	pods    map[plans.Side]view
	desks   []pendingWrites
	report  func(error)
	stop    context.CancelFunc
	stopped sync.WaitGroup
}

// MayWrite returns nil if a Syncer may write now, ErrOver if it must not write any more, and any other error
// if neither can be determined. anew is true BEFORE and after a creation; then the authoritative objects are
// read live. A change is conditional on the existing object, but a creation is conditional on nothing.
type MayWrite func(ctx context.Context, anew bool) error

// ErrOver reports that another process keeps the names of a plan, or that they are no longer kept.
var ErrOver = errors.New("the names are kept by another process, or are no longer kept")

// pendingWrites is one directory, of the governing Service or of one of the clients, and the views that its writes are based on. Each directory has a loop of its own: a
// cluster that does not answer, or refuses writes, must not delay the names in another one.
type pendingWrites struct {
	plans.Directory
	bell     chan struct{} // has a value when one of the views has changed
	leave    MayWrite
	client   kubernetes.Interface
	services view
	slices   view
	others   view // the slices that others write for the Service
}

// Start starts a Syncer, which ends with ctx or with Stop. report receives every error, possibly several at once; all
// failed writes are retried. A side without a cluster is gone, and has neither pods nor directories.
func Start(ctx context.Context, p *plans.Plan, on map[plans.Side]*Cluster, leave MayWrite, report func(error)) *Syncer {
	ctx, stop := context.WithCancel(ctx)
	k := &Syncer{plan: p, pods: map[plans.Side]view{}, report: report, stop: stop}
	for _, d := range p.Directories() {
		if on[d.On] != nil {
			k.desks = append(k.desks, pendingWrites{Directory: d, leave: leave, client: on[d.On].client, bell: make(chan struct{}, 1)})
		}
	}
	for side, c := range on { // from here on the bells ring
		k.pods[side] = c.follow(ctx, place{ofPods, p.On(side).Namespace}, p.On(side).Name, k.ring)
	}
	for n := range k.desks {
		d := &k.desks[n]
		c := on[d.On]
		d.services = c.follow(ctx, place{ofServices, d.Namespace}, p.Names.ServiceOf(d.Directory), k.ring)
		d.slices = c.follow(ctx, place{ofSlices, d.Namespace}, p.ID, k.ring)
		d.others = c.follow(ctx, place{ofSlices, d.Namespace}, ofService(p.Names.ServiceOf(d.Directory)), k.ring)
	}
	k.stopped.Go(func() { k.run(ctx) })
	return k
}

func (k *Syncer) ring() {
	for n := range k.desks {
		select {
		case k.desks[n].bell <- struct{}{}:
		default:
		}
	}
}

// Stop ends the Syncer. It returns once the last request has completed.
func (k *Syncer) Stop() {
	k.stop()
	k.stopped.Wait()
}

func selector(p *plans.Plan) labels.Selector {
	return labels.SelectorFromSet(labels.Set{PlanLabel: p.ID})
}

// run keeps every directory, once all views are there.
func (k *Syncer) run(ctx context.Context) {
	for _, v := range k.views() {
		select {
		case <-v.synced:
		case <-ctx.Done():
			return
		}
	}
	for _, d := range k.desks {
		k.stopped.Go(func() { k.keep(ctx, d) })
	}
}

// keep keeps one directory. A write that failed is retried with growing pauses. An outage is reported once: with the
// reports of other directories in between, the receiver cannot tell that it is the same.
func (k *Syncer) keep(ctx context.Context, d pendingWrites) {
	again := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: 10 * time.Second}
	retry, told := again, ""
	for {
		var later <-chan time.Time
		if err := k.sync(ctx, d); err != nil && ctx.Err() == nil {
			if text := err.Error(); text != told {
				told = text
				k.report(fmt.Errorf("names: Service %s/%s on the %s: %w", d.Namespace, k.plan.Names.ServiceOf(d.Directory), d.On, err))
			}
			later = time.After(retry.Step())
		} else {
			retry, told = again, ""
		}
		select {
		case <-d.bell:
		case <-later:
		case <-ctx.Done():
			return
		}
	}
}

func (k *Syncer) views() []view {
	out := slices.Collect(maps.Values(k.pods))
	for _, d := range k.desks {
		out = append(out, d.services, d.slices, d.others)
	}
	return out
}

// sync brings a directory in line with the pods.
func (k *Syncer) sync(ctx context.Context, d pendingWrites) (err error) {
	defer plans.RecoverPanic(&err)
	pods := map[plans.Side][]*corev1.Pod{}
	for side, v := range k.pods {
		for _, o := range v.list() {
			if pod, ok := o.(*corev1.Pod); ok {
				pods[side] = append(pods[side], pod)
			}
		}
	}
	return d.sync(ctx, k.plan, pods, k.model())
}

// model returns the Service that stand-in Services are copied from.
func (k *Syncer) model() *corev1.Service {
	for _, d := range k.desks {
		if s := d.service(); s != nil && d.Lists != "" && d.Client == "" {
			return s
		}
	}
	return nil
}

func (d pendingWrites) service() *corev1.Service {
	for _, o := range d.services.list() {
		if s, ok := o.(*corev1.Service); ok {
			return s
		}
	}
	return nil
}

func (d pendingWrites) sync(ctx context.Context, p *plans.Plan, pods map[plans.Side][]*corev1.Pod, model *corev1.Service) error {
	service := d.service()
	if service == nil && d.Client != "" { // it lists nothing, until it is there again
		service = &corev1.Service{}
	}
	if service == nil {
		if d.Lists != "" || model == nil { // a slice without a Service is never resolved
			return d.orphaned()
		}
		services := d.client.CoreV1().Services(d.Namespace)
		return d.make(ctx, func() (metav1.Object, error) {
			return services.Create(ctx, standIn(p, d.Directory, model), metav1.CreateOptions{})
		}, services.Delete)
	}
	want := Want(p, d.Directory, service, pods, endpointSlices(d.others))
	var errs []error // a slice that is refused stops no other one
	written := slices.DeleteFunc(endpointSlices(d.slices), func(s *discoveryv1.EndpointSlice) bool { return !isOf(p, d.Directory, s.Name) })
	slices.SortFunc(written, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) }) // the same errors have the same text
	for _, have := range written {
		errs = append(errs, d.bring(ctx, have, want[have.Name]))
		delete(want, have.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		api := d.client.DiscoveryV1().EndpointSlices(d.Namespace)
		errs = append(errs, d.make(ctx, func() (metav1.Object, error) { return api.Create(ctx, want[name], metav1.CreateOptions{}) }, api.Delete))
	}
	return errors.Join(errs...)
}

// orphaned returns an error if the plan has slices of a Service that is gone: no name is answered any more. Without any,
// the Service may not be created yet.
func (d pendingWrites) orphaned() error {
	if len(endpointSlices(d.slices)) == 0 {
		return nil
	}
	return errors.New("it does not exist any more, so that the names of the pods are not answered there: recreate it")
}

func endpointSlices(v view) (out []*discoveryv1.EndpointSlice) {
	for _, o := range v.list() {
		if s, ok := o.(*discoveryv1.EndpointSlice); ok {
			out = append(out, s)
		}
	}
	return out
}

// make creates a missing object. Another process may have deleted the object for good, and this one may have
// slept between its look and its write. So it checks its permission again AFTER the write, and deletes an
// object that it created too late.
func (d pendingWrites) make(ctx context.Context, create func() (metav1.Object, error), remove func(context.Context, string, metav1.DeleteOptions) error) error {
	if err := d.leave(ctx, true); err != nil {
		return err
	}
	made, err := create()
	if err != nil {
		return answered(err)
	}
	if err = d.leave(ctx, true); !errors.Is(err, ErrOver) {
		return nil
	}
	uid := made.GetUID()
	return errors.Join(err, answered(remove(ctx, made.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})))
}

// bring updates or deletes a slice that differs from the wanted one. The slices belong to this package alone,
// and are written whole.
func (d pendingWrites) bring(ctx context.Context, have, want *discoveryv1.EndpointSlice) error {
	c := d.client.DiscoveryV1().EndpointSlices(have.Namespace)
	if want != nil && same(have, want) {
		return nil
	}
	if err := d.leave(ctx, false); err != nil {
		return err
	}
	if want == nil {
		return answered(c.Delete(ctx, have.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion}}))
	}
	next := have.DeepCopy()
	next.Labels, next.Endpoints, next.Ports = want.Labels, want.Endpoints, want.Ports
	_, err := c.Update(ctx, next, metav1.UpdateOptions{})
	return answered(err)
}

// standIn returns a Service for names that no Service of the cluster resolves.
func standIn(p *plans.Plan, d plans.Directory, model *corev1.Service) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: p.Names.Service, Labels: map[string]string{PlanLabel: p.ID}}}
	s.Spec.ClusterIP = corev1.ClusterIPNone
	s.Spec.PublishNotReadyAddresses, s.Spec.IPFamilies = model.Spec.PublishNotReadyAddresses, model.Spec.IPFamilies
	if len(s.Spec.IPFamilies) == 1 { // else the API server adds the other one
		single := corev1.IPFamilyPolicySingleStack
		s.Spec.IPFamilyPolicy = &single
	}
	for _, port := range model.Spec.Ports {
		port.NodePort = 0
		s.Spec.Ports = append(s.Spec.Ports, port)
	}
	return s
}

// answered drops the errors that report an object in another state than last seen: the watch will deliver the
// change, and ring.
func answered(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
