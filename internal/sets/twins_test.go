package sets

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/sets/copies"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// entrance is a Service of clients with all that others can give to one.
func entrance(t *testing.T) *corev1.Service {
	t.Helper()
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "entrance", Labels: map[string]string{"team": "a"},
		Annotations: map[string]string{"external-dns.alpha.kubernetes.io/hostname": "shop.example", corev1.LastAppliedConfigAnnotation: "{}"},
	}}
	s.Spec = planstest.Parsed[corev1.ServiceSpec](t, `{
		type: LoadBalancer, selector: {app: web}, clusterIP: 10.96.0.7, clusterIPs: [10.96.0.7], ipFamilies: [IPv4], sessionAffinity: ClientIP,
		ports: [{name: sql, port: 5432, nodePort: 30001}], externalIPs: [192.0.2.1], externalTrafficPolicy: Local, healthCheckNodePort: 30002,
		loadBalancerIP: 192.0.2.2, loadBalancerClass: a.example/lb, loadBalancerSourceRanges: [198.51.100.0/24], allocateLoadBalancerNodePorts: true, publishNotReadyAddresses: true}`)
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.3"}}
	return s
}

func twinned(s *scene) { // the plan makes it
	s.plan.Names.Twins = true
	s.plan.Dependencies = []plans.Dependency{{Kind: "Service", Name: "entrance", Twin: &plans.Twin{}}}
}

// The twin of a Service of clients has an address of its cluster alone: nothing that another has given to its original, and
// nothing that tells a controller to give it something. What it lacks is said by the field.
func TestATwinIsForTheClusterAlone(t *testing.T) {
	s := whole(plans.Freeze, plans.Source, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
	twinned(s)
	from := entrance(t)
	got, _ := copies.Replica(s.plan, from).(*corev1.Service)
	want := planstest.Parsed[corev1.ServiceSpec](t, `{type: ClusterIP, selector: {app: web}, sessionAffinity: ClientIP, ports: [{name: sql, port: 5432}], publishNotReadyAddresses: true}`)
	if s.plan.OneCluster() {
		want.IPFamilies = from.Spec.IPFamilies
	}
	if !equality.Semantic.DeepEqual(got.Spec, want) || len(got.Annotations) > 0 || got.Labels["team"] != "a" || got.Namespace != s.plan.Destination.Namespace {
		t.Errorf("%+v", got)
	}
	left := strings.Join(copies.LeftOut(s.plan, from), "\n")
	for _, field := range []string{
		"spec.type LoadBalancer", "spec.clusterIP 10.96.0.7", "spec.ports[sql].nodePort 30001", "spec.externalIPs 192.0.2.1", "spec.externalTrafficPolicy Local",
		"spec.healthCheckNodePort 30002", "spec.loadBalancerIP 192.0.2.2", "spec.loadBalancerSourceRanges 198.51.100.0/24", "spec.loadBalancerClass a.example/lb",
		"spec.allocateLoadBalancerNodePorts true", "the address 192.0.2.3", "the annotation external-dns.alpha.kubernetes.io/hostname",
	} {
		if !strings.Contains(left+"\n", field+"\n") {
			t.Errorf("it is not said that %s is left out:\n%s", field, left)
		}
	}
	if strings.Contains(left, "last-applied") || strings.Contains(left, "shop.example") {
		t.Errorf("too much is said:\n%s", left)
	}
	plain := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "entrance"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone}}
	if got, _ := copies.Replica(s.plan, plain).(*corev1.Service); got.Spec.ClusterIP != corev1.ClusterIPNone || len(copies.LeftOut(s.plan, plain)) > 0 {
		t.Errorf("a headless one stays headless: %+v, without %q", got.Spec, copies.LeftOut(s.plan, plain))
	}
}

// A Service that somebody has made there between the plan and the first write is theirs: no write, and no hold.
func TestATwinIsMadeOnlyWhereNoneIs(t *testing.T) {
	theirs := func(s *scene) {
		twinned(s)
		other := entrance(t)
		other.Namespace, other.Spec.Selector = "mall", map[string]string{"app": "other"}
		s.others = append(s.others, entrance(t), other)
	}
	frozen := func() *scene {
		s := whole(plans.Freeze, plans.Source, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
		s.seen()
		return s
	}
	looks(t, frozen, func(w Steps) plans.Look { return w.Freeze }, map[string]seen{
		"there is none":                         {func(s *scene) { twinned(s); s.others = append(s.others, entrance(t)) }, plans.Before, "destination: create Service/entrance"},
		"another's is there":                    {theirs, plans.After, ""},
		"the original is gone":                  {twinned, plans.After, ""},
		"the plan was made without that option": {func(s *scene) { s.others = append(s.others, entrance(t)) }, plans.After, ""},
	})
}

// An abort takes away the twin that the plan made, as it was made. What a user has changed, or made anew, is the user's, and
// what admission made of it is not a user's.
func TestOnlyATwinThatNobodyChangedIsTakenAway(t *testing.T) {
	const stamp = "web-abc/1/2"
	by := func(have *corev1.Service, managers ...string) {
		for _, m := range managers {
			name, sub, _ := strings.Cut(m, "/")
			have.ManagedFields = append(have.ManagedFields, metav1.ManagedFieldsEntry{Manager: name, Subresource: sub, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:type":{}}}`)})
		}
	}
	for name, c := range map[string]struct {
		change func(from, have *corev1.Service)
		to     plans.Side
		want   string
	}{
		"as it was made":                         {func(_, have *corev1.Service) { by(have, "stsmigrate") }, plans.Source, "delete Service/entrance, which the migration copied"},
		"where nobody says who wrote":            {func(_, _ *corev1.Service) {}, plans.Source, "delete Service/entrance, which the migration copied"},
		"a controller wrote its status":          {func(_, have *corev1.Service) { by(have, "stsmigrate", "manager/status") }, plans.Source, "delete Service/entrance"},
		"its original was changed since":         {func(from, have *corev1.Service) { by(have, "stsmigrate"); from.Spec.Ports[0].Port = 1 }, plans.Source, "delete Service/entrance"},
		"admission changed it as it was made":    {func(_, have *corev1.Service) { by(have, "stsmigrate"); have.Spec.Ports[0].Port = 1 }, plans.Source, "delete Service/entrance"},
		"a user gave it another type":            {func(_, have *corev1.Service) { by(have, "stsmigrate", "kubectl-edit"); have.Spec.Type = "NodePort" }, plans.Source, "keep Service/entrance, which kubectl-edit has changed since the migration made it, and take our mark off"},
		"a user annotated it":                    {func(_, have *corev1.Service) { by(have, "stsmigrate", "kubectl-annotate") }, plans.Source, "keep Service/entrance, which kubectl-annotate has changed"},
		"a user made it anew from what was read": {func(_, have *corev1.Service) { by(have, "kubectl-replace") }, plans.Source, "keep Service/entrance, which kubectl-replace has changed"},
		"changed, where nobody says by whom":     {func(_, have *corev1.Service) { have.Spec.Ports[0].Port = 1 }, plans.Source, "keep Service/entrance, which an unknown client has changed"},
		"another's":                              {func(_, have *corev1.Service) { have.Annotations = nil }, plans.Source, ""},
		"another plan's":                         {func(_, have *corev1.Service) { have.Annotations[plans.StampAnnotation] = "web-xyz/1/2" }, plans.Source, ""},
		"after a finalize":                       {func(_, have *corev1.Service) { by(have, "stsmigrate") }, plans.Destination, "take our mark off Service/entrance"},
	} {
		s := whole(plans.Thaw, c.to.Other(), plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
		twinned(s)
		from := entrance(t)
		have, _ := copies.Replica(s.plan, from).(*corev1.Service)
		have.Annotations = map[string]string{plans.StampAnnotation: stamp}
		c.change(from, have)
		marked := have.Annotations[plans.StampAnnotation] == stamp
		s.others = append(s.others, from, have)
		w := watched(t, s)
		got, err := Copies{w.Pair}.Uncopy(t.Context(), s.moment)
		if err != nil || !strings.HasPrefix(strings.TrimPrefix(got.Reason, "destination: "), c.want) || (c.want == "") != (got.Standing == plans.After) {
			t.Errorf("%s: %s %q (%v), expected %q", name, got.Standing, got.Reason, err, c.want)
			continue
		}
		if c.want == "" {
			continue
		}
		if err := got.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
		seen, err := w.Live().Dependency(t.Context(), plans.Destination, s.plan.Dependencies[0])
		left := seen.Object()
		if err != nil || (left == nil) != strings.HasPrefix(c.want, "delete") || left != nil && marked && left.GetAnnotations()[plans.StampAnnotation] != "" {
			t.Errorf("%s: %v is left (%v)", name, left, err)
		}
	}
}
