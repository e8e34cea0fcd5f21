package pods

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// hosts are nodes with a host name, one in each of the zones that are given.
func hosts(zones ...string) (out []client.Object) {
	for k, zone := range zones {
		n := node(fmt.Sprint("n", k), zone, "4")
		n.Labels[corev1.LabelHostname] = n.Name
		out = append(out, &n)
	}
	return out
}

// runs is a pod of a node. The set's own are named web-N.
func runs(t *testing.T, namespace, name, node, labels, spec string) client.Object {
	t.Helper()
	p := &corev1.Pod{Spec: planstest.Parsed[corev1.PodSpec](t, spec)}
	p.Namespace, p.Name, p.UID, p.Spec.NodeName = namespace, name, types.UID("uid-"+namespace+name), node
	app, _, _ := strings.Cut(labels, ",")
	p.Labels = map[string]string{"app": app}
	if namespace == "shop" && strings.HasPrefix(name, "web-") {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "u", Controller: new(true)}}
	}
	return p
}

// The pods are asked for as the scheduler will: all of them, in the order of the plan, beside what is there meanwhile.
func TestEachPodThatIsToComeFindsANode(t *testing.T) {
	const plain = "containers: [{name: web}]"
	apart := func(more string) string {
		return `{containers: [{name: web}], affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}` + more + `}]}}}`
	}
	near := func(more string) string {
		return `{containers: [{name: web}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: cache}}` + more + `}]}}}`
	}
	spread := `{containers: [{name: web}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]}`
	port := `{containers: [{name: web, ports: [{containerPort: 7001, hostPort: 7001}]}]}`
	host := `{hostNetwork: true, containers: [{name: web, ports: [{containerPort: 7001}]}]}`
	disks := []string{"spec: {csi: {driver: d, volumeHandle: h0}}", "spec: {csi: {driver: d, volumeHandle: h1}}"}
	limited := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n0"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "d", NodeID: "n0", Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(1))}}}}}
	own := func(spec string) []client.Object {
		return []client.Object{runs(t, "shop", "web-0", "n0", "web", spec), runs(t, "shop", "web-1", "n1", "web", spec)}
	}
	labelled := func(name string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": name}}}
	}
	ns := func(list ...[]client.Object) (out []client.Object) {
		for _, l := range list {
			out = append(out, l...)
		}
		return out
	}
	two := []string{"spec: {nfs: {server: files, path: /a}}", "spec: {nfs: {server: files, path: /b}}"}
	for name, c := range map[string]struct {
		spec    string
		one     bool
		volumes []string
		there   []client.Object // in the one cluster, or the other
		set     func(*appsv1.StatefulSetSpec)
		forbids string
		want    []string
	}{
		"room for all":                     {spec: plain, there: hosts("a")},
		"pods that others need, elsewhere": {spec: near(""), one: true, there: ns(hosts("a"), []client.Object{runs(t, "shop", "cache", "n0", "cache", plain)}), want: []string{"FAIL ...pod web-1 on...1 without the pods that its pod affinity asks for", "FAIL ...pod web-0 on"}},
		"pods that others need, named":     {spec: near(", namespaces: [shop]"), one: true, there: ns(hosts("a"), []client.Object{runs(t, "shop", "cache", "n0", "cache", plain)})},
		"by the labels of namespaces": {spec: near(", namespaceSelector: {matchLabels: {team: shop}}"), one: true, there: ns(hosts("a"), []client.Object{
			labelled("shop"), labelled("mall"), runs(t, "shop", "cache", "n0", "cache", plain),
		})},
		"by labels that may not be read":   {spec: near(", namespaceSelector: {matchLabels: {team: shop}}"), there: hosts("a"), forbids: "*v1.NamespaceList", want: []string{"FAIL ...namespaces of the destination: you may not list them"}},
		"a host port that is taken":        {spec: port, there: ns(hosts("a"), []client.Object{runs(t, "gateway", "g", "n0", "g", port)}), want: []string{"FAIL ...web-1...1 where host port 7001 is taken", "FAIL ...web-0"}},
		"a port in the node's network":     {spec: host, there: ns(hosts("a"), []client.Object{runs(t, "gateway", "g", "n0", "g", port)}), want: []string{"FAIL ...web-1...1 where host port 7001 is taken", "FAIL ...web-0"}},
		"host ports of the set alone":      {spec: port, there: hosts("a", "b")},
		"one node too few":                 {spec: port, there: hosts("a"), want: []string{"FAIL ...pod web-0 on...1 where host port 7001 is taken...(with web-1 on n0)"}},
		"the port of one that leaves":      {spec: port, one: true, there: ns(hosts("a", "b"), own(port))},
		"no place but that of another one": {spec: port, one: true, there: ns(hosts("a", "b"), own(port), []client.Object{runs(t, "gateway", "g", "n1", "g", plain)}), want: nil},
		"apart in both namespaces":         {spec: apart(", namespaces: [shop, mall]"), one: true, there: ns(hosts("a", "b"), own(plain))},
		"apart in both, and one node":      {spec: apart(", namespaces: [shop, mall]"), one: true, there: ns(hosts("a"), []client.Object{runs(t, "shop", "web-0", "n0", "web", plain)}), want: []string{"FAIL ...pod web-1 on...1 with pods that its pod anti-affinity keeps away from"}},
		"kept away by another pod":         {spec: plain, there: ns(hosts("a"), []client.Object{runs(t, "mall", "loner", "n0", "loner", apart(""))}), want: []string{"FAIL ...web-1...1 with pods whose pod anti-affinity keeps it away", "FAIL ...web-0"}},
		"spread over two zones":            {spec: spread, there: hosts("a", "b")},
		"an order that spread cannot follow": {
			spec: spread, there: hosts("a", "b"), volumes: []string{two[0] + "\nmetadata: {labels: {topology.kubernetes.io/zone: a}}", two[1] + "\nmetadata: {labels: {topology.kubernetes.io/zone: a}}"},
			want: []string{"FAIL ...pod web-0 on...1 where its topology spread over topology.kubernetes.io/zone lets no more in, 1 where its volume cannot be reached (with web-1 on n0)"},
		},
		"another scheduler":                         {spec: "{schedulerName: volcano, containers: [{name: web}]}", there: hosts("a"), want: []string{"FAIL ...scheduler volcano places its pods...--ignore nodes-fit"}},
		"gates":                                     {spec: "{schedulingGates: [{name: example.com/quota}], containers: [{name: web}]}", there: hosts("a"), want: []string{"FAIL ...scheduling gates (example.com/quota)"}},
		"claims of devices":                         {spec: "{resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}], containers: [{name: web}]}", there: hosts("a"), want: []string{"FAIL ...resource claims"}},
		"a node by name":                            {spec: "{nodeName: n1, containers: [{name: web}]}", there: hosts("a", "b")},
		"a node that is not there":                  {spec: "{nodeName: n7, containers: [{name: web}]}", there: hosts("a"), want: []string{"FAIL ...web-1...1 other than n7, which it names", "FAIL ..."}},
		"volumes that a node can attach":            {spec: plain, volumes: disks, there: ns(hosts("a", "b"), []client.Object{limited})},
		"more than it can attach":                   {spec: plain, volumes: disks, there: ns(hosts("a"), []client.Object{limited}), want: []string{"FAIL ...pod web-0 on...1 that can attach no more volumes of d (with web-1 on n0)"}},
		"attached for others":                       {spec: plain, volumes: disks[:1], there: ns(hosts("a"), []client.Object{limited, &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: storagev1.VolumeAttachmentSpec{Attacher: "d", NodeName: "n0", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv-of-others")}}}}), want: []string{"FAIL ...1 that can attach no more volumes of d"}},
		"pods that may not be read":                 {spec: plain, there: hosts("a"), forbids: "*v1.PodList/", want: []string{"WARN ...you may not list the pods that run there"}},
		"ports of pods that may not be read":        {spec: port, there: hosts("a", "b"), forbids: "*v1.PodList/", want: []string{"FAIL ...you may not list the pods that run there, and the pods of the set have ports of the node"}},
		"rules in its own namespace, others unread": {spec: apart(""), there: hosts("a"), forbids: "*v1.PodList/", want: []string{"FAIL ...pod web-0 on...1 with pods that its pod anti-affinity keeps away from"}},
	} {
		t.Run(name, func(t *testing.T) {
			volumes := c.volumes
			if volumes == nil {
				volumes = two
			}
			e := checktest.Estate{Volumes: volumes, Spec: c.spec, One: c.one, There: c.there, Forbids: c.forbids, Labels: map[string]string{"app": "web"}}
			if c.one {
				e.Here, e.There = c.there, nil
			}
			i := e.Inspected(t)
			if c.set != nil {
				c.set(&i.Now.Set.Spec)
			}
			found, err := NodesFit(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, ofLevel(found, c.want), c.want...)
			checktest.Unread(t, i, NodesFit)
		})
	}
}

// ofLevel leaves out warnings, unless one is expected.
func ofLevel(found []check.Finding, want []string) (out []check.Finding) {
	for _, f := range found {
		if f.Level != check.Warn || len(want) > 0 && strings.HasPrefix(want[0], "WARN") {
			out = append(out, f)
		}
	}
	return out
}

// What the scheduler chooses decides: the first pod may take the only zone in which the other one finds room.
func TestAChoiceOfTheSchedulerIsTheUsersToJudge(t *testing.T) {
	near := `{containers: [{name: web, resources: {requests: {cpu: 2}}}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: web}}}]}}}`
	for _, zones := range [][]string{{"b"}, {"b", "b"}} {
		small := node("small", "a", "2")
		e := checktest.Estate{Volumes: []string{"spec: {nfs: {server: f, path: /a}}", "spec: {nfs: {server: f, path: /b}}"}, Spec: near, There: append(hosts(zones...), &small), Labels: map[string]string{"app": "web"}}
		e.Finds(t, NodesFit, "FAIL ...pod web-0 on the destination...it depends on the nodes that the scheduler chooses...with too little cpu...(with web-1 on small)...--ignore nodes-fit")
	}
}

// A rule that means the members of one namespace means fewer while the set is in two, and names of namespaces may mean none
// afterwards.
func TestRulesThatMeanTheOwnNamespaceAreNamed(t *testing.T) {
	term := `topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}`
	anti := func(how, of string) string {
		return `{containers: [{name: web}], affinity: {podAntiAffinity: {` + how + `DuringSchedulingIgnoredDuringExecution: [` + of + `]}}}`
	}
	for name, c := range map[string]struct {
		spec      string
		one       bool
		want, two []string // within one cluster, and to another one
	}{
		"required": {spec: anti("required", "{"+term+"}"), want: []string{
			`WARN ...pod web-1 and those after it...required pod anti-affinity over kubernetes.io/hostname...same node...--patch '{"spec":{"template":{"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{..."namespaces":["shop","mall"]`,
		}},
		"preferred":              {spec: anti("preferred", "{weight: 10, podAffinityTerm: {"+term+"}}"), want: []string{`WARN ...preferred pod anti-affinity..."weight":10`}},
		"in both namespaces":     {spec: anti("required", "{"+term+", namespaces: [shop, mall]}")},
		"in every namespace":     {spec: anti("required", "{"+term+", namespaceSelector: {}}")},
		"in the old one by name": {spec: anti("required", "{"+term+", namespaces: [shop]}"), want: []string{"WARN ...required pod anti-affinity"}, two: []string{"WARN ...required pod anti-affinity"}},
		"about others":           {spec: anti("required", "{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: cache}}}")},
		"by the revision":        {spec: anti("required", "{"+term+", matchLabelKeys: [controller-revision-hash]}"), want: []string{"WARN ...required pod anti-affinity"}},
		"spread":                 {spec: `{containers: [{name: web}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}]}`, want: []string{"WARN ...topology spread over kubernetes.io/hostname counts the members of its own namespace alone"}},
		"together":               {spec: strings.ReplaceAll(anti("required", "{"+term+"}"), "podAntiAffinity", "podAffinity"), want: []string{"WARN ...required pod affinity...they need not come near"}},
	} {
		for _, one := range []bool{true, false} {
			e := checktest.Estate{Volumes: []string{"spec: {nfs: {server: f, path: /a}}", "spec: {nfs: {server: f, path: /b}}"}, Spec: c.spec, One: one, Labels: map[string]string{"app": "web"}}
			want := c.want
			if e.Here, e.There = hosts("a", "b", "c"), nil; !one {
				e.Here, e.There, want = nil, hosts("a", "b", "c"), c.two
			}
			found, err := NodesFit(t.Context(), e.Inspected(t))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			checktest.ExpectFindings(t, found, want...)
		}
	}
}

// A pod is asked for as the API server lets it in: with the defaults of the namespace, and what webhooks add to it.
func TestThePodIsAskedForAsItIsLetIn(t *testing.T) {
	e := checktest.Estate{Volumes: []string{"spec: {nfs: {server: f, path: /a}}"}, Spec: "containers: [{name: web}]", There: hosts("a")}
	i := e.Inspected(t)
	on := i.On[plans.Destination]
	i.On[plans.Destination] = interceptor.NewClient(on.(client.WithWatch), interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error { //nolint:forcetypeassert // of the estate
		switch o := o.(type) {
		case *authorizationv1.SelfSubjectRulesReview:
			o.Status.ResourceRules = []authorizationv1.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
			return nil
		case *corev1.Pod:
			o.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("5")}
			return nil
		}
		return c.Create(ctx, o, opts...)
	}})
	found, err := NodesFit(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	checktest.ExpectFindings(t, found, "FAIL ...1 with too little cpu")
}

// Before a wave the pods of all waves that have not left are asked for, from the side that receives them, and what was
// read of others for an earlier wave counts.
func TestTheWavesThatFollowAreAskedForToo(t *testing.T) {
	e := checktest.Estate{Volumes: []string{"spec: {nfs: {server: f, path: /a}}", "spec: {nfs: {server: f, path: /b}}", "spec: {nfs: {server: f, path: /c}}"}, Spec: "containers: [{name: web, resources: {requests: {cpu: 2}}}]", There: hosts("a")}
	i := e.Inspected(t)
	i.Midway, i.Ordinals, i.Now.Existing = true, plans.Slice{Start: 2, Replicas: 1}, &appsv1.StatefulSet{}
	i.Coming = []plans.Slice{{Start: 2, Replicas: 1}, {Start: 1, Replicas: 1}, {Start: 0, Replicas: 1}}
	var memory check.Memory
	listed := 0
	on := i.On[plans.Destination]
	i.On[plans.Destination] = interceptor.NewClient(on.(client.WithWatch), interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error { //nolint:forcetypeassert // of the estate
		if o := (&client.ListOptions{}).ApplyOptions(opts); o.Namespace == "" {
			if _, is := list.(*corev1.PodList); is {
				listed++
			}
		}
		return c.List(ctx, list, opts...)
	}})
	for range 2 {
		found, err := NodesFit(t.Context(), i.Of(i.Ordinals).Keeping(&memory))
		if err != nil {
			t.Fatal(err)
		}
		checktest.ExpectFindings(t, found, "FAIL ...pod web-0 on the destination...1 with too little cpu")
	}
	if listed != 1 {
		t.Errorf("all pods were listed %d times", listed)
	}
	memory.Fade()
	if _, err := NodesFit(t.Context(), i.Of(i.Ordinals).Keeping(&memory)); err != nil || listed != 2 {
		t.Errorf("what has faded was not read again: %d, %v", listed, err)
	}
}
