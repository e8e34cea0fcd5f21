package expanded

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func policy(t *testing.T, namespace, name, spec string) client.Object {
	t.Helper()
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: planstest.Parsed[networkingv1.NetworkPolicySpec](t, spec)}
}

func TestRulesThatMeanTheirOwnNamespaceAreTold(t *testing.T) {
	const (
		deny     = "{podSelector: {}, policyTypes: [Ingress, Egress]}"
		own      = "{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}"
		anybody  = "{podSelector: {}, ingress: [{}]}"
		both     = "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [shop, mall]}]}}]}]}"
		team     = "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: a}}}]}]}"
		second   = "{podSelector: {matchLabels: {apps.kubernetes.io/pod-index: '1'}}, ingress: [{from: [{podSelector: {}}]}]}"
		other    = "{podSelector: {matchLabels: {app: other}}}"
		fromShop = "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}}]}]}"
		blocks   = "{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}"
	)
	type in struct{ namespace, name, spec string }
	for name, c := range map[string]struct {
		one  bool
		of   []in
		want []string
	}{
		"none":                     {one: true},
		"of others":                {one: true, of: []in{{"shop", "p", other}}},
		"its own namespace":        {one: true, of: []in{{"shop", "p", own}}, want: []string{"WARN...NetworkPolicy shop/p on the source...isolates the pods of the set (Ingress)...from those of the destination...name: web-from-mall", "NetworkPolicy shop/p on the source...namespace mall has no policy that says the same...namespace: mall"}},
		"on both sides":            {one: true, of: []in{{"shop", "p", own}, {"mall", "q", own}}, want: []string{"shop/p...isolates", "mall/q on the destination...isolates...web-from-shop"}},
		"an equal one":             {one: true, of: []in{{"shop", "p", both}, {"mall", "q", both}}},
		"all are let in":           {one: true, of: []in{{"shop", "p", own}, {"shop", "q", anybody}, {"mall", "p", own}, {"mall", "q", anybody}}},
		"by a label of namespaces": {one: true, of: []in{{"shop", "p", team}, {"mall", "p", team}}, want: []string{"mall/p...isolates"}},
		"denied there":             {one: true, of: []in{{"mall", "deny", deny}}, want: []string{"mall/deny on the destination...Ingress...from", "mall/deny on the destination...Egress...to"}},
		"of one ordinal":           {one: true, of: []in{{"shop", "p", second}}, want: []string{"it isolates web-1 of the set", "it selects web-1 here"}},
		"of two clusters":          {of: []in{{"shop", "p", both}, {"mall", "p", both}}, want: []string{"shop/p on the source...ipBlock", "mall/p on the destination...ipBlock"}},
		"of another application":   {one: true, of: []in{{"data", "db", fromShop}, {"data", "open", "{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}"}, {"data", "ours", "{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}"}, {"data", "both", both}}, want: []string{"WARN...NetworkPolicy data/db...it allows traffic from the pods in namespace shop, and not in namespace mall...-n data edit networkpolicy db"}},
		"of other pods there":      {one: true, of: []in{{"data", "db", "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}, podSelector: {matchLabels: {app: other}}}]}]}"}}},
		"in another cluster":       {of: []in{{"data", "db", fromShop}}},
		"by addresses":             {of: []in{{"shop", "p", blocks}, {"mall", "p", blocks}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := checktest.Estate{One: c.one, Volumes: []string{disk, disk}, Spec: runs("image: i")}
			shop, mall := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mall", Labels: map[string]string{"team": "a"}}}
			e.Here = append(e.Here, shop)
			for _, p := range append(c.of, in{}) {
				to := &e.Here
				if p.namespace == "mall" && !c.one {
					to = &e.There
				}
				if p.name != "" {
					*to = append(*to, policy(t, p.namespace, p.name, p.spec))
				}
			}
			if c.one {
				e.Here = append(e.Here, mall)
			} else {
				e.There = append(e.There, mall)
			}
			e.Finds(t, PoliciesOfNamespace, c.want...)
		})
	}
	checktest.Estate{One: true, Volumes: []string{disk}, Forbids: "*v1.NetworkPolicyList/"}.Finds(t, PoliciesOfNamespace)
	checktest.Estate{Volumes: []string{disk}, Forbids: "*v1.NetworkPolicyList"}.Finds(t, PoliciesOfNamespace, "WARN...NetworkPolicies of namespace shop...you may not look at networkpolicies")
}

// A monitor sees pods of its own namespace, by their labels or by a Service that has them.
func TestMonitorsThatOnlyTheSourceHasAreTold(t *testing.T) {
	monitor := func(kind, namespace, selector string) client.Object {
		return checktest.CustomObject(t, "{apiVersion: monitoring.coreos.com/v1, kind: "+kind+", metadata: {namespace: "+namespace+", name: m}, spec: {selector: "+selector+"}}")
	}
	const pod = "{matchLabels: {apps.kubernetes.io/pod-index: '0'}}"
	peers := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "peers", Labels: map[string]string{"a": "b"}}, Spec: corev1.ServiceSpec{Selector: map[string]string{"apps.kubernetes.io/pod-index": "0"}}}
	for name, c := range map[string]struct {
		here, there []client.Object
		want        []string
	}{
		"of the pods":        {here: []client.Object{monitor("PodMonitor", "shop", pod)}, want: []string{"WARN...PodMonitor shop/m on the source...none of namespace mall"}},
		"on both sides":      {here: []client.Object{monitor("PodMonitor", "shop", pod)}, there: []client.Object{monitor("PodMonitor", "mall", pod)}},
		"of other pods":      {here: []client.Object{monitor("PodMonitor", "shop", "{matchLabels: {app: other}}")}},
		"of their Service":   {here: []client.Object{peers, monitor("ServiceMonitor", "shop", "{matchLabels: {a: b}}")}, want: []string{"ServiceMonitor shop/m"}},
		"of another Service": {here: []client.Object{peers, monitor("ServiceMonitor", "shop", "{matchLabels: {a: c}}")}},
	} {
		t.Run(name, func(t *testing.T) {
			checktest.Estate{Volumes: []string{disk}, Here: c.here, There: c.there}.Finds(t, PoliciesOfNamespace, c.want...)
		})
	}
}

func TestWhatLaterOrdinalsNeedIsLookedFor(t *testing.T) {
	seed := func(namespace string) client.Object {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "seed"}}
	}
	const source = "dataSource: {kind: PersistentVolumeClaim, name: seed}"
	for name, c := range map[string]struct {
		e    checktest.Estate
		want []string
	}{
		"nothing":             {checktest.Estate{One: true, Template: "{}"}, nil},
		"a claim":             {checktest.Estate{One: true, Template: source, Here: []client.Object{seed("shop")}}, []string{"WARN...spec.volumeClaimTemplates[data].spec.dataSource...PersistentVolumeClaim seed, which is not in namespace mall...dataSource: null"}},
		"one that is there":   {checktest.Estate{One: true, Template: source, Here: []client.Object{seed("shop"), seed("mall")}}, nil},
		"of its namespace":    {checktest.Estate{One: true, Template: "dataSourceRef: {kind: PersistentVolumeClaim, name: seed, namespace: shop}", Here: []client.Object{seed("shop")}}, nil},
		"a snapshot":          {checktest.Estate{Template: "dataSourceRef: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: s}"}, []string{"dataSourceRef...VolumeSnapshot s, which is not in the destination"}},
		"a class":             {checktest.Estate{Template: "storageClassName: fast"}, []string{"storageClassName...StorageClass fast, which is not in the destination"}},
		"of one cluster":      {checktest.Estate{One: true, Template: "storageClassName: fast"}, nil},
		"of empty ordinals":   {checktest.Estate{Empty: true, Template: "storageClassName: fast"}, nil},
		"an attributes class": {checktest.Estate{One: true, Template: "volumeAttributesClassName: gold"}, []string{"VolumeAttributesClass gold"}},
		"patched":             {checktest.Estate{One: true, Template: source, Patch: "spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {dataSource: null}}]}"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.e.Volumes = []string{disk}
			c.e.Finds(t, LaterOrdinals, c.want...)
		})
	}
}
