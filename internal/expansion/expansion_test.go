package expansion

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func podOf(t *testing.T, spec string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-2", Labels: map[string]string{"apps.kubernetes.io/pod-index": "2"}}}
	if err := yaml.UnmarshalStrict([]byte(spec), &pod.Spec); err != nil {
		t.Fatal(err)
	}
	return pod
}

// The kubelet leaves what nothing defines, and takes $$ for one $.
func TestReferencesAreReplacedAsTheKubeletDoes(t *testing.T) {
	by := map[string]string{"A": "1", "B": "$(A)", "E": ""}
	for text, want := range map[string]string{
		"": "", "plain": "plain", "$(A)": "1", "x$(A)y$(A)": "x1y1", "$(C)": "$(C)", "$$(A)": "$(A)", "$$$(A)": "$1", "$A": "$A", "$": "$", "a$": "a$", "$(A": "$(A",
		"$(B)": "$(A)", "[$(E)]": "[]", "$()": "$()", "$(A)$": "1$",
	} {
		if got := Filled(text, by); got != want {
			t.Errorf("%q is %q, expected %q", text, got, want)
		}
	}
}

func TestATextIsSettledWhereTheOtherSideHasAnotherValue(t *testing.T) {
	here, there := map[string]string{"NS": "sh$op", "POD": "web-0"}, map[string]string{"NS": "mall", "POD": "web-0"}
	text := Settled("$$x/$(NS)/$(POD)/$(NONE)", here, there)
	if text != "$$x/sh$$op/$(POD)/$(NONE)" {
		t.Error(text)
	}
	for _, by := range []map[string]string{here, there} {
		if got := Filled(text, by); got != "$x/sh$op/web-0/$(NONE)" {
			t.Error(got)
		}
	}
}

// Each variable sees those before it, envFrom comes first, a Service of the namespace last, and no value of a Secret
// is known.
func TestAContainerGetsWhatTheKubeletGivesIt(t *testing.T) {
	pod := podOf(t, `
containers:
- name: web
  envFrom: [{configMapRef: {name: conf}}, {prefix: S_, secretRef: {name: keys}}]
  env:
  - {name: EARLY, value: $(NS)}
  - {name: NS, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
  - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: INDEX, valueFrom: {fieldRef: {fieldPath: "metadata.labels['apps.kubernetes.io/pod-index']"}}}
  - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
  - {name: BOTH, value: $(NS)/$(POD)/$(COLOUR)/$(S_password)}
  - {name: COLOUR, value: red}
  - {name: DB, value: $(ORDERS_DB_SERVICE_HOST):$(ORDERS_DB_SERVICE_PORT)}
  - {name: HEADLESS, value: $(WEB_SERVICE_HOST)}
  - {name: MISSING, valueFrom: {configMapKeyRef: {name: conf, key: none, optional: true}}}
  - {name: CORES, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
  - {name: MIB, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
  - {name: ALL, valueFrom: {resourceFieldRef: {resource: requests.cpu}}}
  resources: {limits: {cpu: 1500m, memory: 1Gi}}
  command: [run, $(BOTH), $$(NS)]
  args: [--db=$(DB), $(MISSING)]
  volumeMounts: [{name: data, mountPath: /data, subPathExpr: $(NS)/$(POD)}]
  readinessProbe: {exec: {command: [sh, -c, "$(COLOUR)[$(NS)]"]}}
  lifecycle: {preStop: {exec: {command: [leave, $(NS)]}}}
volumes:
- {name: info, downwardAPI: {items: [{path: ns, fieldRef: {fieldPath: metadata.namespace}}]}}
- {name: more, projected: {sources: [{downwardAPI: {items: [{path: pod, fieldRef: {fieldPath: metadata.name}}]}}]}}
`)
	at := Place{
		Namespace: "shop", ConfigMaps: map[string]map[string]string{"conf": {"COLOUR": "blue"}}, Secrets: map[string][]string{"keys": {"password"}},
		Services: []corev1.Service{
			{ObjectMeta: metav1.ObjectMeta{Name: "orders-db"}, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Port: 5432}}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: "None"}},
		},
	}
	texts, err := Texts(Expand(pod, at))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range texts {
		if strings.Contains(x.Path, ".env[") && strings.HasSuffix(x.Path, ".name") {
			continue
		}
		got = append(got, strings.TrimPrefix(x.Path, "spec.containers[web].")+": "+x.Is)
	}
	want := []string{
		"metadata.labels[apps.kubernetes.io/pod-index]: 2",
		"args[0]: --db=(address of Service orders-db):5432", "args[1]: $(MISSING)",
		"command[0]: run", "command[1]: shop/web-2/blue/(Secret keys, key password)", "command[2]: $(NS)",
		"env[EARLY].value: $(NS)", "env[NS].value: shop", "env[POD].value: web-2", "env[INDEX].value: 2", "env[NODE].value: (spec.nodeName)",
		"env[BOTH].value: shop/web-2/blue/(Secret keys, key password)", "env[COLOUR].value: red", "env[DB].value: (address of Service orders-db):5432",
		"env[HEADLESS].value: $(WEB_SERVICE_HOST)", "env[MISSING].valueFrom.configMapKeyRef.key: none",
		"env[CORES].value: 2", "env[MIB].value: 1024", "env[ALL].value: (requests.cpu of the node)",
		"envFrom[0].configMapRef.name: conf", "envFrom[1].prefix: S_", "envFrom[1].secretRef.name: keys",
		"lifecycle.preStop.exec.command[0]: leave", "lifecycle.preStop.exec.command[1]: $(NS)", "name: web",
		"readinessProbe.exec.command[0]: sh", "readinessProbe.exec.command[1]: -c", "readinessProbe.exec.command[2]: red[]",
		"resources.limits.cpu: 1500m", "resources.limits.memory: 1Gi",
		"volumeMounts[/data].mountPath: /data", "volumeMounts[/data].name: data", "volumeMounts[/data].subPathExpr: shop/web-2",
		"spec.volumes[info].downwardAPI.items[ns].fieldRef.fieldPath: shop", "spec.volumes[info].downwardAPI.items[ns].path: ns", "spec.volumes[info].name: info",
		"spec.volumes[more].name: more", "spec.volumes[more].projected.sources[0].downwardAPI.items[pod].fieldRef.fieldPath: web-2", "spec.volumes[more].projected.sources[0].downwardAPI.items[pod].path: pod",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	no := false
	pod.Spec.EnableServiceLinks = &no
	if v := Variables(pod, pod.Spec.Containers[0], at); v["DB"] != "$(ORDERS_DB_SERVICE_HOST):$(ORDERS_DB_SERVICE_PORT)" || v["KUBERNETES_SERVICE_HOST"] == "" {
		t.Errorf("without the variables of Services it gets %v", v)
	}
}

// A shell replaces more than the kubelet: what a container is told is often a script.
func TestAShellReplacesTheVariablesThatAreKnown(t *testing.T) {
	by := map[string]string{"NS": "shop", "N": "1"}
	for text, want := range map[string]string{
		"/data/$NS/x": "/data/shop/x", "/data/${NS}_x": "/data/shop_x", "$NS_x": "$NS_x", "${NS:-x}": "shop", "${NS-x}": "shop", "${NS:=x}": "shop", "${NS:?is not set}": "shop", "${NO:-x}": "${NO:-x}", "${NS:+x}": "${NS:+x}", "${NS%o*}": "${NS%o*}", "$(NS)": "$(NS)", "$N$NS": "1shop", "$": "$",
	} {
		if got := Shell(text, by); got != want {
			t.Errorf("%q is %q, expected %q", text, got, want)
		}
	}
	if diff := cmp.Diff(map[string]string{"NS": "shop"}, Other(by, map[string]string{"NS": "mall", "N": "1"})); diff != "" {
		t.Error(diff)
	}
}
