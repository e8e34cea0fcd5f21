package expanded

import (
	"context"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

func TestWhatTheNamespaceMakesOfThePodsIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		spec, patch string
		want        []string
	}{
		"nothing":            {spec: runs("env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]")},
		"its own namespace":  {spec: runs("env: [{name: NS, " + ownNamespace + "}]"), want: []string{"WARN...mall/web...spec.template.spec.containers[web].env[NS]...it is shop on the source and mall on the destination...env: [{name: NS, value: \"shop\", valueFrom: null}]"}},
		"by a patch":         {spec: runs("env: [{name: NS, " + ownNamespace + "}]"), patch: "spec: {template: {spec: {containers: [{name: web, env: [{name: NS, value: shop, valueFrom: null}]}]}}}"},
		"a patch alone":      {spec: runs("image: a"), patch: "spec: {template: {spec: {containers: [{name: web, image: b, env: [{name: X, value: z}]}]}}}"},
		"arguments":          {spec: runs("args: [--ns=$(NS)], env: [{name: NS, " + ownNamespace + "}]"), want: []string{"args...[\"--ns=shop\"] on the source and [\"--ns=mall\"]", "env[NS]"}},
		"a file":             {spec: runs("image: a") + "\nvolumes: [{name: info, downwardAPI: {items: [{path: ns, fieldRef: {fieldPath: metadata.namespace}}]}}]", want: []string{"spec.template.spec.volumes[info]...shop...mall"}},
		"a path of the node": {spec: runs("args: [--dir=/data/$(NODE)], env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]"), want: []string{"args[0]...name of the node in it: --dir=/data/(spec.nodeName)"}},
		"a host path":        {spec: runs("volumeMounts: [{name: h, mountPath: /h}]") + "\nvolumes: [{name: h, hostPath: {path: /var/cache}}]", want: []string{"volumes[h]...write to /var/cache of their node"}},
		"one that is read":   {spec: runs("volumeMounts: [{name: h, mountPath: /h, readOnly: true}]") + "\nvolumes: [{name: h, hostPath: {path: /etc/localtime}}]"},
	} {
		t.Run(name, func(t *testing.T) {
			e := checktest.Estate{Volumes: []string{disk}, Spec: c.spec, Patch: c.patch}
			i := e.Inspected(t)
			i.On[plans.Destination] = unable{i.On[plans.Destination]}
			found, err := SamePod(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
		})
	}
}

// unable is a cluster in which the user may not create a pod.
type unable struct{ client.Client }

func (unable) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }

// able lets the user create pods, and admits them.
func able(on client.Client, admits func(*corev1.Pod)) client.Client {
	watching, _ := on.(client.WithWatch)
	return interceptor.NewClient(watching, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		switch o := o.(type) {
		case *authorizationv1.SelfSubjectRulesReview:
			o.Status.ResourceRules = []authorizationv1.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
		case *corev1.Pod:
			served(o)
			admits(o)
		}
		return nil
	}})
}

// served is what the API server makes of every pod.
func served(p *corev1.Pod) {
	p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "node.kubernetes.io/not-ready"})
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "kube-api-access-" + p.Name[len(p.Name)-3:]})
	for k := range p.Spec.Containers {
		p.Spec.Containers[k].VolumeMounts = append(p.Spec.Containers[k].VolumeMounts, corev1.VolumeMount{Name: "kube-api-access-" + p.Name[len(p.Name)-3:], MountPath: "/var/run/secrets"})
	}
}

// What admission makes of the pods is not in the plan: the pod that runs is compared with the one that would be let in.
func TestWhatAdmissionMakesOfThePodsIsTold(t *testing.T) {
	sidecar := func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy", Image: "proxy:1"})
	}
	limited := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}
		p.Status.QOSClass = corev1.PodQOSBurstable
	}
	no := func(*corev1.Pod) {}
	for name, c := range map[string]struct {
		here, there func(*corev1.Pod)
		patch       string
		want        []string
	}{
		"the same":                {here: sidecar, there: sidecar},
		"a sidecar there":         {here: no, there: sidecar, want: []string{"WARN...pod web-0: spec.containers[proxy]...admission of the destination adds container proxy"}},
		"a sidecar here":          {here: sidecar, there: no, want: []string{"pod on the source has container proxy, which admission added and that of the destination does not"}},
		"another one":             {here: sidecar, there: func(p *corev1.Pod) { sidecar(p); p.Spec.Containers[1].Image = "proxy:2" }, want: []string{"spec.containers[proxy]...image proxy:1 -> proxy:2"}},
		"an init container":       {here: no, there: func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "init"}} }, want: []string{"adds init container init"}},
		"a volume":                {here: no, there: func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "ca"}) }, want: []string{"adds volume ca"}},
		"limits that are lost":    {here: limited, there: func(p *corev1.Pod) { p.Status.QOSClass = corev1.PodQOSBestEffort }, want: []string{"spec.containers[web].resources...limits.memory 512Mi -> (none)...QoS class is BestEffort there, not Burstable...resources: {\"limits\":{\"memory\":\"512Mi\"}}"}},
		"limits that are added":   {here: no, there: limited, want: []string{"limits.memory (none) -> 512Mi"}},
		"limits that are patched": {here: limited, there: limited, patch: "spec: {template: {spec: {containers: [{name: web, resources: {limits: {cpu: 1}}}]}}}"},
		"a variable":              {here: func(p *corev1.Pod) { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "AWS_ROLE_ARN", Value: "x"}} }, there: no, want: []string{"spec.containers[web].env...[AWS_ROLE_ARN]"}},
		"a toleration":            {here: no, there: func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "spot"}) }, want: []string{"spec.tolerations...spot"}},
		"an annotation":           {here: no, there: func(p *corev1.Pod) { p.Annotations = map[string]string{"openshift.io/scc": "restricted"} }, want: []string{"metadata.annotations[openshift.io/scc]...(none) -> restricted"}},
		"a readiness gate":        {here: no, there: func(p *corev1.Pod) { p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "lb"}} }, want: []string{"spec.readinessGates"}},
		"a priority":              {here: no, there: func(p *corev1.Pod) { n := int32(7); p.Spec.Priority = &n; p.Spec.PriorityClassName = "d" }, want: []string{"spec.priority...priorityClassName"[:13] + "...(none) -> 7"}},
		"a node, and what is used": {here: func(p *corev1.Pod) {
			p.Spec.NodeName = "n"
			p.Labels = map[string]string{"statefulset.kubernetes.io/pod-name": "web-0", "apps.kubernetes.io/pod-index": "0", "controller-revision-hash": "web-1", "topology.kubernetes.io/zone": "a"}
		}, there: no},
	} {
		t.Run(name, func(t *testing.T) {
			e := checktest.Estate{Volumes: []string{disk}, Spec: runs("image: i"), Patch: c.patch}
			runsHere := build.Pod(e.Inspected(t).Now.Set, 0)
			served(runsHere)
			c.here(runsHere)
			e.Here = []client.Object{runsHere}
			i := e.Inspected(t)
			i.On[plans.Destination] = able(i.On[plans.Destination].(client.WithWatch), c.there) //nolint:forcetypeassert // the fixture's
			found, err := SamePod(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
		})
	}
}

// A user who wants to see the whole difference gets it, with what the patches change.
func TestTheWholeDifferenceIsShown(t *testing.T) {
	e := checktest.Estate{Volumes: []string{disk}, Spec: runs("image: a, env: [{name: NS, " + ownNamespace + "}]"), Patch: "spec: {template: {spec: {containers: [{name: web, image: b}]}}}"}
	runsHere := build.Pod(e.Inspected(t).Now.Set, 0)
	served(runsHere)
	e.Here = []client.Object{runsHere}
	for name, c := range map[string]struct {
		on   func(client.Client) client.Client
		want string
	}{
		"as it is let in": {func(on client.Client) client.Client {
			return able(on, func(p *corev1.Pod) { p.Spec.Containers[0].TTY = true })
		}, "(as it runs, and as a dry run there returns it):\n  spec.containers[web].env[NS].value: shop -> mall\n  spec.containers[web].image: a -> b\n  spec.containers[web].tty: (none) -> true\n"},
		"by the templates": {func(on client.Client) client.Client { return unable{on} }, "(by the templates alone: no pod could be tried there, or none runs here):\n  spec.containers[web].env[NS].value: shop -> mall\n  spec.containers[web].image: a -> b\n"},
	} {
		i := e.Inspected(t)
		i.On[plans.Destination] = c.on(i.On[plans.Destination])
		text, err := Shown(t.Context(), i)
		if want := "\nPod web-0 on the source and on the destination " + c.want; err != nil || text != want {
			t.Errorf("%s: %v, %q, expected %q", name, err, text, want)
		}
	}
	e.Spec, e.Patch = runs("image: a"), ""
	i := e.Inspected(t)
	i.On[plans.Destination] = unable{i.On[plans.Destination]}
	if text, err := Shown(t.Context(), i); err != nil || !strings.HasSuffix(text, ":\n  nothing differs\n") {
		t.Errorf("%v, %q", err, text)
	}
}

// Linux has 64 bytes for the name of a host: the kubelet does not start a pod with a longer one.
func TestAHostNameThatIsTooLongIsRefused(t *testing.T) {
	for length, want := range map[int][]string{
		64 - len("web-0.peers.mall.svc.cluster.local"): nil,
		65 - len("web-0.peers.mall.svc.cluster.local"): {"FAIL...setHostnameAsFQDN...65 bytes...at most 64...setHostnameAsFQDN: false"},
	} {
		e := checktest.Estate{Volumes: []string{disk}, Spec: "setHostnameAsFQDN: true\n" + runs("image: i")}
		i := e.Inspected(t)
		i.Now.Set.Spec.ServiceName = "peers" + strings.Repeat("s", length)
		i.On[plans.Destination] = unable{i.On[plans.Destination]}
		found, err := SamePod(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		checktest.ExpectFindings(t, found, want...)
	}
}

func TestWhoTrustsTheAccountIsNamed(t *testing.T) {
	account := func(namespace, key string) client.Object {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Annotations: map[string]string{key: "x"}}}
	}
	of := func(more string) string { return "serviceAccountName: web\n" + more + "\n" + runs("image: i") }
	for name, c := range map[string]struct {
		e    checktest.Estate
		want []string
	}{
		"nobody":             {checktest.Estate{One: true, Spec: of("")}, nil},
		"a role":             {checktest.Estate{One: true, Spec: of(""), Here: []client.Object{account("shop", "eks.amazonaws.com/role-arn")}}, []string{"WARN...ServiceAccount web: annotation eks.amazonaws.com/role-arn...system:serviceaccount:mall:web, and system:serviceaccount:shop:web as well until the end"}},
		"in another cluster": {checktest.Estate{Spec: of(""), Here: []client.Object{account("shop", "iam.gke.io/gcp-service-account")}}, []string{"iam.gke.io/gcp-service-account...system:serviceaccount:mall:web, by the issuer of the cluster west"}},
		"one that is there":  {checktest.Estate{Spec: of(""), Here: []client.Object{account("shop", "azure.workload.identity/client-id")}, There: []client.Object{account("mall", "a")}}, nil},
		"Vault":              {checktest.Estate{One: true, Spec: of("")}, nil},
		"a token":            {checktest.Estate{One: true, Spec: of("volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: t, audience: vault}}]}}]")}, []string{"spec.template.spec.volumes[t]...audience vault"}},
		"the API's token":    {checktest.Estate{One: true, Spec: of("volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: t}}]}}]")}, nil},
		"SPIFFE":             {checktest.Estate{One: true, Spec: of("volumes: [{name: s, csi: {driver: csi.spiffe.io}}]")}, []string{"volumes[s]...SPIRE"}},
		"of the default one": {checktest.Estate{One: true, Spec: runs("image: i"), Here: []client.Object{&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "default", Annotations: map[string]string{"pod-identity.alibabacloud.com/role-name": "x"}}}}}, []string{"ServiceAccount default...RAM role"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.e.Volumes = []string{disk}
			if name != "Vault" {
				c.e.Finds(t, Identities, c.want...)
				return
			}
			c.e.Patch = "spec: {template: {metadata: {annotations: {vault.hashicorp.com/role: web}}}}"
			c.e.Finds(t, Identities, "spec.template.metadata: vault.hashicorp.com/role...bound_service_account_namespaces")
		})
	}
}
