package models_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// The slices that a plan writes for the pods of the other side have the endpoints that the control plane would write
// for them: the same conditions, of the pods that a DNS server returns.
func TestEndpoints(t *testing.T) {
	for _, publish := range []bool{false, true} {
		t.Run(fmt.Sprintf("publishNotReadyAddresses %t", publish), func(t *testing.T) {
			t.Parallel()
			e := endpoints{t: t, namespace: fmt.Sprintf("testendpoints-%t", publish)}
			e.add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}})
			app := map[string]string{"app": "web"}
			ports := []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}}
			e.add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "web"}, Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone, Selector: app, PublishNotReadyAddresses: publish, Ports: ports,
			}})
			e.add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "web-clients"}, Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app": "web", "role": "member"}, PublishNotReadyAddresses: publish, Ports: ports,
			}})
			for _, name := range []string{"web-0", "web-1", "web-2"} {
				pod := running(e.namespace, name)
				pod.Labels, pod.Spec.Hostname, pod.Spec.Subdomain = app, name, "web"
				e.add(pod)
			}
			e.same("three pods", 3)
			for _, name := range []string{"web-0", "web-1"} {
				e.edit(name, `{"metadata":{"labels":{"role":"member"}}}`)
			}
			e.same("two have got a role", 3)
			e.edit("web-1", `{"metadata":{"annotations":{"`+cluster.NeverReady+`":"true"}}}`)
			e.same("one is not ready", 3)
			for _, name := range []string{"web-1", "web-2"} {
				e.edit(name, `{"metadata":{"annotations":{"`+cluster.Lost+`":"true"}}}`)
				if err := here.Delete(t.Context(), running(e.namespace, name)); err != nil {
					t.Fatal(err)
				}
			}
			e.same("that one, and one that is ready, are being deleted", 3)
			for _, name := range []string{"web-1", "web-2"} {
				e.edit(name, `{"metadata":{"annotations":null}}`)
			}
			e.same("they are gone", 1)
		})
	}
}

type endpoints struct {
	t         *testing.T
	namespace string
}

func (e endpoints) add(o client.Object) {
	e.t.Helper()
	if err := here.Create(e.t.Context(), o); err != nil {
		e.t.Fatal(err)
	}
}

func (e endpoints) edit(pod, patch string) {
	e.t.Helper()
	if err := here.Patch(e.t.Context(), running(e.namespace, pod), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		e.t.Fatal(err)
	}
}

// same waits until there are so many pods, and the control plane lists those that we would.
func (e endpoints) same(step string, pods int) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	news := make(chan struct{}, 1)
	for _, list := range []client.ObjectList{&corev1.PodList{}, &discoveryv1.EndpointSliceList{}} {
		w, err := here.Watch(ctx, list, client.InNamespace(e.namespace))
		if err != nil {
			e.t.Fatal(err)
		}
		go func() {
			for range w.ResultChan() {
				select {
				case news <- struct{}{}:
				default:
				}
			}
		}()
	}
	for {
		ours, theirs, err := e.both(ctx)
		diff := cmp.Diff(theirs, ours)
		if err == nil && diff == "" && len(theirs) > 0 && e.count(ctx) == pods {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			e.t.Fatalf("%s: not within %s: -the control plane +ours\n%s%v", step, patience, diff, err)
		}
	}
}

func (e endpoints) count(ctx context.Context) int {
	var pods corev1.PodList
	if err := here.List(ctx, &pods, client.InNamespace(e.namespace)); err != nil {
		return -1
	}
	return len(pods.Items)
}

// both returns the endpoints that we would write, and those that the control plane has written, of the pods that a DNS
// server returns.
func (e endpoints) both(ctx context.Context) (ours, theirs []string, err error) {
	var pods corev1.PodList
	var all discoveryv1.EndpointSliceList
	var service, entry corev1.Service
	for _, list := range []client.ObjectList{&pods, &all} {
		if err := here.List(ctx, list, client.InNamespace(e.namespace)); err != nil {
			return nil, nil, err
		}
	}
	if err := here.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: "web"}, &service); err != nil {
		return nil, nil, err
	}
	if err := here.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: "web-clients"}, &entry); err != nil {
		return nil, nil, err
	}
	side := map[plans.Side][]*corev1.Pod{}
	for k := range pods.Items {
		side[plans.Source] = append(side[plans.Source], &pods.Items[k])
	}
	p := &plans.Plan{ID: "1", Source: plans.Ref{Namespace: e.namespace, Name: "web"}, Names: plans.Names{Service: "web"}}
	p.Count = 3
	for _, s := range dns.Want(p, plans.Directory{Namespace: e.namespace}, &service, side, nil) {
		ours = append(ours, listed(s)...)
	}
	for _, s := range dns.Want(p, plans.Directory{Namespace: e.namespace, Lists: plans.Destination, Client: "web-clients", SameNodes: true}, &entry, side, nil) {
		ours = append(ours, entries(s)...)
	}
	for _, s := range all.Items {
		if s.Labels[discoveryv1.LabelServiceName] == "web-clients" {
			theirs = append(theirs, entries(&s)...)
		} else {
			theirs = append(theirs, listed(&s)...)
		}
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	return ours, theirs, nil
}

// entries returns all that kube-proxy reads of a slice.
func entries(s *discoveryv1.EndpointSlice) (out []string) {
	for _, e := range s.Endpoints {
		c, line := e.Conditions, strings.Join(e.Addresses, ",")
		if e.NodeName != nil {
			line += " on " + *e.NodeName
		}
		for _, p := range s.Ports {
			line += fmt.Sprintf(" %s %s %d", *p.Name, *p.Protocol, *p.Port)
		}
		out = append(out, fmt.Sprintf("%s for clients, ready %t serving %t terminating %t", line, *c.Ready, *c.Serving, *c.Terminating))
	}
	return out
}

func listed(s *discoveryv1.EndpointSlice) (out []string) {
	for _, e := range s.Endpoints {
		if c := e.Conditions; *c.Ready { // a DNS server returns no others
			out = append(out, fmt.Sprintf("%s %s ready %t serving %t terminating %t", *e.Hostname, strings.Join(e.Addresses, ","), *c.Ready, *c.Serving, *c.Terminating))
		}
	}
	return out
}
