package preflight

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/dns/clients"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Clients looks at the Services by which clients find the pods of the set, beside the governing one. It refuses what the
// bridge cannot keep served, those whose last endpoint leaves first at the top, and warns of what has no name on the
// destination. It may not look at all, or not at what points at a Service: then it says so.
func Clients(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	c, err := clienteleOf(ctx, i)
	if err != nil {
		return check.Unseen(err, "the Services of "+i.Plan.Source.String(), "the Services and pods there")
	}
	slices.SortStableFunc(c.here, func(a, b clients.Service) int { return cmp.Compare(c.gone(a), c.gone(b)) })
	var out []check.Finding
	for _, s := range c.here {
		out = append(out, c.barred(s)...)
	}
	out = append(out, c.taken()...)
	out = append(out, c.aliases()...)
	twins, err := c.twins(ctx)
	if err != nil {
		return nil, err
	}
	out = append(out, twins...)
	for _, s := range c.here {
		out = append(out, c.twinless(s)...)
	}
	return out, nil
}

// clientele is the Services of clients of both sides.
type clientele struct {
	check.Inspection
	here, there []clients.Service
	// all are the Services of each side's namespace, whatever they select, and points what points at them.
	all    map[plans.Side][]corev1.Service
	points map[plans.Side]clients.Pointers
}

func clienteleOf(ctx context.Context, i check.Inspection) (c clientele, err error) {
	c = clientele{Inspection: i, all: map[plans.Side][]corev1.Service{}, points: map[plans.Side]clients.Pointers{}}
	for side, found := range map[plans.Side]*[]clients.Service{plans.Source: &c.here, plans.Destination: &c.there} {
		at, err := clientsOn(i.On, i.Now, side)
		if err != nil {
			return c, err
		}
		if *found, err = at.Services(ctx); err != nil {
			return c, err
		}
		var all corev1.ServiceList
		if err := i.On[side].List(ctx, &all, client.InNamespace(at.Namespace)); err != nil {
			return c, err
		}
		c.all[side] = all.Items
		if c.points[side], err = clients.Point(ctx, i.On[side], at.Namespace); err != nil {
			return c, err
		}
	}
	return c, nil
}

// left is how many endpoints of its own a Service has before the first wave and after each.
func (c clientele) left(s clients.Service) []int { return s.Left(c.Plan, c.Plan.FirstLeg()) }

// gone returns the wave with which the last endpoint of a Service leaves. A Service without one comes last.
func (c clientele) gone(s clients.Service) int {
	left := c.left(s)
	if left[0] == 0 {
		return len(left)
	}
	return slices.Index(left, 0)
}

func (c clientele) bridged(s clients.Service) bool {
	return slices.Contains(c.Plan.Names.Clients, s.Name)
}

// object names a Service and what points at it.
func (c clientele) object(s clients.Service, side plans.Side) string {
	out := fmt.Sprintf("Service %s/%s on the %s", s.Namespace, s.Name, side)
	if by := c.points[side].Of(s.Name); by != "" {
		out += " (" + by + " " + map[bool]string{true: "point", false: "points"}[strings.Contains(by, ",")] + " at it)"
	}
	return out
}

// loses says which ordinals a Service loses in which wave.
func (c clientele) loses(s clients.Service) string {
	left, wave := c.left(s), 0
	if left[0] == 0 {
		return "it selects no pod now, and may once one has its labels"
	}
	var out []string
	for ordinals := range c.Plan.Waves(c.Plan.FirstLeg()) {
		wave++
		if left[wave] == left[wave-1] {
			continue
		}
		if len(out) == 3 && left[wave] > 0 {
			continue // the rest is alike
		}
		text := fmt.Sprintf("%s in wave %d", c.Plan.Pods(ordinals), wave)
		if left[wave] == 0 {
			text += ", its last endpoint"
		}
		out = append(out, text)
	}
	return "it loses " + strings.Join(out, ", ")
}

// barred returns why a Service of the source cannot be kept served as it is.
func (c clientele) barred(s clients.Service) (out []check.Finding) {
	fail := func(saw, want, remedy string) {
		out = append(out, check.Finding{Object: c.object(s, plans.Source), Saw: saw, Want: want, Remedy: remedy + ", or --ignore clients"})
	}
	const served = "a Service that clients can use until the end"
	pod := c.Now.Set.Spec.Template.Spec
	switch {
	case !c.bridged(s) && !c.Plan.Names.Reaches(c.sameNodes()):
		fail(fmt.Sprintf("%s, and --names %s bridges nothing: its clients lose them", c.loses(s), c.Plan.Names.Mode), served,
			"give --names bridge if the pod networks are routed to one another; else switch its clients before their last endpoint leaves")
	case !c.bridged(s):
		fail(c.loses(s)+", and the plan does not know it: it was made, or began to select the pods, after the plan", served, "make a new plan")
	case s.Spec.ClusterIP == corev1.ClusterIPNone && pod.HostNetwork:
		fail("it is headless, and the pods have the addresses of nodes (hostNetwork): an address tells no pod from another, and outlives it", served,
			"see to it that its clients find the pods by their names")
	case !c.sameNodes() && local(s):
		fail(c.loses(s)+", and sends traffic to its own nodes only (trafficPolicy Local): the endpoints of the other cluster are on none of them", served,
			"set internalTrafficPolicy and externalTrafficPolicy to Cluster for the time of the move")
	}
	if others := strangers(s); others != "" {
		fail(fmt.Sprintf("it also selects %s, which stay when the set has moved: its clients are on two sides then", others), "a Service of the set alone",
			"narrow its selector, or see to it that the others alone are enough for its clients")
	}
	return out
}

// sameNodes reports whether the pods of both sides run on the same nodes.
func (c clientele) sameNodes() bool { return c.Plan.Source.Cluster == c.Plan.Destination.Cluster }

// local reports whether a Service sends traffic to endpoints of the same node alone.
func local(s clients.Service) bool {
	inside := s.Spec.InternalTrafficPolicy != nil && *s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal
	return inside || s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// strangers names the pods of others that a Service selects, or returns "".
func strangers(s clients.Service) string {
	if len(s.Others) == 0 {
		return ""
	}
	var names []string
	owners := map[string]bool{}
	for _, pod := range s.Others {
		names = append(names, pod.Name)
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			owners[owner.Kind+" "+owner.Name] = true
		}
	}
	out := "pod " + check.Few(names)
	if len(owners) > 0 {
		out += " of " + check.Few(slices.Sorted(maps.Keys(owners)))
	}
	return out
}

// taken refuses Services of the destination that have pods already, of another application: its clients would reach the
// set from the first moment on.
func (c clientele) taken() (out []check.Finding) {
	for _, s := range c.there {
		others := strangers(s)
		if others == "" || !c.bridged(s) {
			continue
		}
		out = append(out, check.Finding{
			Object: c.object(s, plans.Destination), Saw: fmt.Sprintf("it selects %s, and would select the pods of the set as well", others),
			Want:   "a Service of the set alone, or none that selects it",
			Remedy: "narrow its selector if it is of another application, or --ignore clients",
		})
	}
	return out
}

// aliases refuses Services of type ExternalName that stand for a Service of the set in the old namespace: nothing can be
// listed for them, and the name that they give is answered until the end only.
func (c clientele) aliases() (out []check.Finding) {
	of := map[string]bool{c.Now.Set.Spec.ServiceName: true}
	for _, s := range c.here {
		of[s.Name] = true
	}
	for _, side := range plans.Sides() {
		for _, s := range c.all[side] {
			target, _, _ := strings.Cut(strings.TrimSuffix(s.Spec.ExternalName, "."), ".svc")
			name, ok := strings.CutSuffix(target, "."+c.Plan.Source.Namespace)
			if at := strings.LastIndex(name, "."); at >= 0 { // POD.SERVICE
				name = name[at+1:]
			}
			if !ok || s.Spec.Type != corev1.ServiceTypeExternalName || !of[name] {
				continue
			}
			out = append(out, check.Finding{
				Object: c.object(clients.Service{Service: s}, side), Saw: fmt.Sprintf("it is an alias of %s (ExternalName), which has no endpoint after finalize", s.Spec.ExternalName),
				Want:   "a name that the move does not change",
				Remedy: fmt.Sprintf("let it stand for the Service in namespace %s before finalize, or finalize with --keep-names; --ignore clients", c.Plan.Destination.Namespace),
			})
		}
	}
	return out
}

// twinless warns of a Service that is bridged and has no equal on the destination: clients there have no name, and those
// here have none after finalize.
func (c clientele) twinless(s clients.Service) []check.Finding {
	to := c.Plan.Destination.Namespace
	f := check.Finding{Level: check.Warn, Object: c.object(s, plans.Source), Want: fmt.Sprintf("a Service %s/%s there that selects the pods", to, s.Name)}
	k := slices.IndexFunc(c.all[plans.Destination], func(o corev1.Service) bool { return o.Name == s.Name })
	copied := slices.ContainsFunc(c.Plan.Dependencies, func(d plans.Dependency) bool { return d.Kind == "Service" && d.Name == s.Name })
	switch {
	case !c.bridged(s) || k < 0 && copied:
		return nil
	case k < 0:
		f.Saw = "the destination has no such Service: its clients have no name there"
		f.Remedy = fmt.Sprintf("let the plan make it (--twins), or make it in namespace %s, and switch clients and what points at it before finalize; until then both sides are served here", to)
	case !slices.ContainsFunc(c.there, func(o clients.Service) bool { return o.Name == s.Name }):
		f.Saw = "that of the destination does not select the pods of the set"
		f.Remedy = fmt.Sprintf("give Service %s/%s the selector of this one, if it is meant for the same clients", to, s.Name)
	default:
		return nil
	}
	if unseen := c.points[plans.Source].Unseen; len(unseen) > 0 {
		f.Remedy += fmt.Sprintf("; what points at it was not looked at: you may not list %s", strings.Join(unseen, ", "))
	}
	return []check.Finding{f}
}

// ClientService is a Service of clients, as a plan shows it.
type ClientService struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Endpoints are how many pods of the set the Service has on the source before the first wave, and after each.
	Endpoints []int `json:"endpoints"`
	// Bridged reports that it lists the pods of both sides, from the beginning to the end.
	Bridged bool `json:"bridged,omitempty"`
}

// clientServices returns the Services of clients of the source. What may not be listed is the check's to say.
func clientServices(ctx context.Context, i check.Inspection) ([]ClientService, error) {
	at, err := clientsOn(i.On, i.Now, plans.Source)
	if err != nil {
		return nil, err
	}
	found, err := at.Services(ctx)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	var out []ClientService
	for _, s := range found {
		out = append(out, ClientService{s.Namespace, s.Name, s.Left(i.Plan, i.Plan.FirstLeg()), slices.Contains(i.Plan.Names.Clients, s.Name)})
	}
	return out, nil
}
