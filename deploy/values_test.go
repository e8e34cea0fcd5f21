package deploy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/strvals"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// with renders all components with additional values.
func with(t *testing.T, more ...string) []*unstructured.Unstructured {
	t.Helper()
	values, err := Values(Components()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range more {
		if err := strvals.ParseInto(v, values); err != nil {
			t.Fatal(err)
		}
	}
	out, err := Render("stsmigrate", "v1.2.3", values)
	if err != nil {
		t.Fatalf("%v: %v", more, err)
	}
	return decode(t, out)
}

func find(t *testing.T, all []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	at := slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	if at < 0 {
		t.Fatalf("there is no %s %s", kind, name)
	}
	return all[at]
}

func TestAnImageCanBeNamedByItsDigest(t *testing.T) {
	digest := "sha256:" + strings.Repeat("4711", 16)
	all := with(t, "image.digests.orchestrator="+digest)
	for name, want := range map[string]string{"orchestrator": "ghcr.io/stsmigrate/orchestrator:v1.2.3@" + digest, "slicecontroller": "ghcr.io/stsmigrate/slicecontroller:v1.2.3"} {
		if have := into[appsv1.Deployment](t, find(t, all, "Deployment", name)).Spec.Template.Spec.Containers[0].Image; have != want {
			t.Errorf("%s: %s, expected %s", name, have, want)
		}
	}
	values, _ := Values("orchestrator")
	values["image"] = map[string]any{"digests": map[string]any{"orchestrator": "sha256:4711"}}
	if _, err := Render("stsmigrate", "", values); err == nil {
		t.Error("half a digest is rendered")
	}
}

func TestPodsOfTheChartHaveTheirPriorityClass(t *testing.T) {
	all := with(t, "orchestrator.priorityClassName=high", "slicecontroller.priorityClassName=system-cluster-critical")
	for name, want := range map[string]string{"orchestrator": "high", "slicecontroller": "system-cluster-critical"} {
		pod := into[appsv1.Deployment](t, find(t, all, "Deployment", name)).Spec.Template.Spec
		if pod.PriorityClassName != want || pod.Containers[0].Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: class %q, limits %v", name, pod.PriorityClassName, pod.Containers[0].Resources.Limits)
		}
	}
}

// The account has one name in all objects, and the policies refer to it.
func TestTheAccountCanHaveAnotherName(t *testing.T) {
	all := with(t, "account.name=mover", "policies.accounts={system:serviceaccount:other:orchestrator}")
	find(t, all, "ServiceAccount", "mover")
	if have := into[appsv1.Deployment](t, find(t, all, "Deployment", "orchestrator")).Spec.Template.Spec.ServiceAccountName; have != "mover" {
		t.Errorf("the pods run as %s", have)
	}
	for _, kind := range []string{"RoleBinding", "ClusterRoleBinding"} {
		name := map[string]string{"RoleBinding": "orchestrator", "ClusterRoleBinding": "stsmigrate-orchestrator.stsmigrate"}[kind]
		subjects, _, err := unstructured.NestedSlice(find(t, all, kind, name).Object, "subjects")
		if subject, ok := subjects[0].(map[string]any); err != nil || !ok || subject["name"] != "mover" {
			t.Errorf("%s is for %v", kind, subjects)
		}
	}
	for _, name := range []string{"stsmigrate-orchestrator", "stsmigrate-new-volumes", "stsmigrate-placeholders", "stsmigrate-protected-volumes", "stsmigrate-marked-sets", "stsmigrate-scaled-statefulsets", "stsmigrate-scaled-statefulsetslices"} {
		raw, err := find(t, all, "ValidatingAdmissionPolicy", name).MarshalJSON()
		for _, account := range []string{`\"system:serviceaccount:stsmigrate:mover\"`, `\"system:serviceaccount:other:orchestrator\"`} {
			if err != nil || !strings.Contains(string(raw), account) {
				t.Errorf("policy %s does not name %s", name, account)
			}
		}
	}
}

// API servers look for the kind of the parameters of a policy every second while it is missing, and log that. So only a
// cluster with slices has the policy of their scale.
func TestTheScaleOfSlicesIsGuardedWhereThereAreSlices(t *testing.T) {
	for _, c := range []struct {
		components, more []string
		want             bool
	}{
		{[]string{"policies"}, nil, false},
		{[]string{"policies"}, []string{"policies.slices=true"}, true},
		{[]string{"policies", "slicecontroller"}, nil, true},
		{[]string{"policies", "slicecontroller"}, []string{"slicecontroller.namespaces={shop}"}, true},
		{[]string{"policies", "slicecontroller"}, []string{"slicecontroller.manage=apps/v1"}, false},
		{[]string{"slicecontroller"}, []string{"policies.slices=true"}, false},
	} {
		values, err := Values(c.components...)
		for _, v := range c.more {
			if err == nil {
				err = strvals.ParseInto(v, values)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := Render("stsmigrate", "", values)
		if err != nil {
			t.Fatal(err)
		}
		have := slices.ContainsFunc(decode(t, out), func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "ValidatingAdmissionPolicy" && o.GetName() == "stsmigrate-scaled-statefulsetslices"
		})
		if have != c.want {
			t.Errorf("%v %v: the policy is there: %t", c.components, c.more, have)
		}
	}
}

// Accounts of Kubernetes keep their plans in their own namespaces. Other users of the value have no namespace: a part
// of their name must not become one.
func TestOnlyAccountsOfKubernetesNameAHome(t *testing.T) {
	for _, c := range []struct {
		accounts string
		want     []string
	}{
		{"{alice}", []string{"stsmigrate"}},
		{"{orchestrator-east}", []string{"stsmigrate"}},
		{"{oidc:bob}", []string{"stsmigrate"}},
		{"{arn:aws:iam::123:role/x}", []string{"stsmigrate"}},
		{"{oidc:system:serviceaccount:other:orchestrator}", []string{"stsmigrate"}},
		{"{system:serviceaccount:other}", []string{"stsmigrate"}},
		{"{alice,system:serviceaccount:other:orchestrator,system:serviceaccount:other:second}", []string{"stsmigrate", "other"}},
	} {
		all := with(t, "policies.accounts="+c.accounts)
		for _, name := range []string{"stsmigrate-records"} {
			of := into[admissionv1.ValidatingAdmissionPolicy](t, find(t, all, "ValidatingAdmissionPolicy", name))
			if homes := of.Spec.MatchConstraints.NamespaceSelector.MatchExpressions[0].Values; !slices.Equal(homes, c.want) {
				t.Errorf("%s, with accounts %s, is for the namespaces %v, expected %v", name, c.accounts, homes, c.want)
			}
			user := strings.Trim(strings.Split(c.accounts, ",")[0], "{}")
			if raw, err := json.Marshal(of.Spec); err != nil || !strings.Contains(string(raw), `\"`+user+`\"`) {
				t.Errorf("%s does not name %s", name, user)
			}
		}
	}
}

// Only the served ports of a pod are reachable, and its outgoing connections are not limited.
func TestNothingButWhatIsServedCanBeReached(t *testing.T) {
	all := with(t)
	for name, want := range map[string][]string{"orchestrator": {"metrics"}, "slicecontroller": {"metrics", "webhook"}} {
		p := into[networkingv1.NetworkPolicy](t, find(t, all, "NetworkPolicy", name))
		var ports []string
		for _, r := range p.Spec.Ingress {
			for _, port := range r.Ports {
				ports = append(ports, port.Port.StrVal)
			}
		}
		if !slices.Equal(ports, want) || !slices.Equal(p.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
			t.Errorf("%s: %v of %v", name, ports, p.Spec.PolicyTypes)
		}
		c := into[appsv1.Deployment](t, find(t, all, "Deployment", name)).Spec.Template.Spec.Containers[0]
		for _, port := range want {
			if !slices.ContainsFunc(c.Ports, func(have corev1.ContainerPort) bool { return have.Name == port }) {
				t.Errorf("%s has no port %s", name, port)
			}
		}
	}
	for _, o := range with(t, "networkPolicy.enabled=false") {
		if o.GetKind() == "NetworkPolicy" {
			t.Errorf("%s is made all the same", o.GetName())
		}
	}
}

// Prometheus presents a token that is valid for metrics only. With a certificate, it verifies the server.
func TestMetricsAreCollectedWithATokenOfTheirOwn(t *testing.T) {
	signed := with(t, "orchestrator.metricsCertificate=cert", "slicecontroller.metricsCertificate=cert")
	for _, name := range []string{"orchestrator", "slicecontroller"} {
		for what, all := range map[string][]*unstructured.Unstructured{"": with(t), "signed": signed} {
			points, _, err := unstructured.NestedSlice(find(t, all, "ServiceMonitor", name).Object, "spec", "endpoints")
			if err != nil || len(points) != 1 {
				t.Fatalf("%s: %v: %v", name, points, err)
			}
			point, _ := points[0].(map[string]any)
			tls, _ := point["tlsConfig"].(map[string]any)
			of, _, _ := unstructured.NestedString(point, "authorization", "credentials", "name")
			if point["scheme"] != "https" || of != "stsmigrate-metrics" || point["bearerTokenFile"] != nil {
				t.Errorf("%s: %v", name, point)
			}
			if ca, known, _ := unstructured.NestedString(tls, "ca", "secret", "name"); known != (what == "signed") || (tls["insecureSkipVerify"] == true) == known || known && ca != "cert" {
				t.Errorf("%s, %s: %v", name, what, tls)
			}
		}
	}
}

func TestProgramsGetTheCertificateOfTheirMetrics(t *testing.T) {
	signed := with(t, "orchestrator.metricsCertificate=cert", "slicecontroller.metricsCertificate=cert")
	for _, name := range []string{"orchestrator", "slicecontroller"} {
		c := into[appsv1.Deployment](t, find(t, signed, "Deployment", name)).Spec.Template.Spec
		mount := "/etc/" + name + "/metrics"
		if !slices.Contains(c.Containers[0].Args, "--metrics-cert-dir="+mount) || !slices.ContainsFunc(c.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == mount }) ||
			!slices.ContainsFunc(c.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == "cert" }) {
			t.Errorf("%s does not get its certificate: %v, %v", name, c.Containers[0].Args, c.Volumes)
		}
	}
}

// With a receiver the orchestrator gets its URL and the Secret with the key; without one it has neither.
func TestTheOrchestratorGetsItsReceiver(t *testing.T) {
	const url = "https://hooks.example/stsmigrate?team=a,b"
	for name, set := range map[string][]string{
		"":          nil,
		"receiver":  {"orchestrator.notifications.url=https://hooks.example/stsmigrate?team=a\\,b", "orchestrator.notifications.secret=hooks"},
		"and certs": {"orchestrator.notifications.url=https://hooks.example/stsmigrate?team=a\\,b", "orchestrator.notifications.secret=hooks", "orchestrator.metricsCertificate=cert"},
	} {
		pod := into[appsv1.Deployment](t, find(t, with(t, set...), "Deployment", "orchestrator")).Spec.Template.Spec
		c := pod.Containers[0]
		told := slices.Contains(c.Args, "--notify-url="+url)
		mounted := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/orchestrator/notify" && m.ReadOnly })
		volume := slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == "hooks" })
		if want := name != ""; told != want || mounted != want || volume != want || slices.Contains(c.Args, "--notify-plain-http") {
			t.Errorf("%q: %v, %v, %v", name, c.Args, c.VolumeMounts, pod.Volumes)
		}
		if len(pod.Volumes) != len(c.VolumeMounts) {
			t.Errorf("%q: %d volumes and %d mounts", name, len(pod.Volumes), len(c.VolumeMounts))
		}
	}
}

// The page of all plans is served and reached only where it is wanted.
func TestTheOrchestratorServesItsPageOnRequest(t *testing.T) {
	const folder = "/etc/orchestrator/dashboard"
	for name, set := range map[string][]string{
		"":       nil,
		"page":   {"orchestrator.dashboard.enabled=true"},
		"signed": {"orchestrator.dashboard.enabled=true", "orchestrator.dashboard.certificate=cert"},
		"not":    {"orchestrator.dashboard.enabled=false", "orchestrator.dashboard.certificate=cert"},
	} {
		all := with(t, set...)
		pod := into[appsv1.Deployment](t, find(t, all, "Deployment", "orchestrator")).Spec.Template.Spec
		c, on := pod.Containers[0], name == "page" || name == "signed"
		port := slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == "dashboard" && p.ContainerPort == 8444 })
		if port != on || slices.Contains(c.Args, "--dashboard-bind-address=:8444") != on {
			t.Errorf("%q: %v, %v", name, c.Args, c.Ports)
		}
		mounted := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == folder })
		if want := name == "signed"; mounted != want || slices.Contains(c.Args, "--dashboard-cert-dir="+folder) != want || len(pod.Volumes) != len(c.VolumeMounts) {
			t.Errorf("%q: %v, %v, %v", name, c.Args, c.VolumeMounts, pod.Volumes)
		}
		reached := 0
		for _, r := range into[networkingv1.NetworkPolicy](t, find(t, all, "NetworkPolicy", "orchestrator")).Spec.Ingress {
			reached += len(r.Ports)
		}
		service := slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "Service" && o.GetName() == "orchestrator-dashboard"
		})
		if service != on || reached != map[bool]int{true: 2, false: 1}[on] {
			t.Errorf("%q: the Service is there: %t, %d ports are reached", name, service, reached)
		}
	}
}

// An alert of an install is about its own namespace, also where several share one Prometheus.
func TestAlertsAreAboutTheirOwnInstall(t *testing.T) {
	raw := render(t, "moves", "orchestrator", "slicecontroller", "monitoring")
	groups, _, err := unstructured.NestedSlice(find(t, decode(t, raw), "PrometheusRule", "orchestrator").Object, "spec", "groups")
	if err != nil || len(groups) != 1 {
		t.Fatalf("%v, %v", groups, err)
	}
	rules, _, _ := unstructured.NestedSlice(groups[0].(map[string]any), "rules") //nolint:forcetypeassert // it is one, or the test fails
	for _, r := range rules {
		expr, _, _ := unstructured.NestedString(r.(map[string]any), "expr") //nolint:forcetypeassert // it is one, or the test fails
		if strings.Count(expr, "stsmigrate_") == 0 || strings.Count(expr, `namespace="moves"`) < strings.Count(expr, "stsmigrate_") || strings.Contains(expr, `namespace="stsmigrate"`) {
			t.Errorf("an alert of the namespace moves asks: %s", expr)
		}
	}
	if len(rules) == 0 {
		t.Error("there are no rules")
	}
}
