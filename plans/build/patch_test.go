package build_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/plans/preview"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// shop returns a set with something to patch, as an API server returns it.
func shop() *appsv1.StatefulSet {
	class, app := "fast", map[string]string{"app": "web", "tier": "front"}
	s := planstest.Set(2, 3)
	s.ResourceVersion = "12"
	s.Annotations = map[string]string{plans.StampAnnotation: "another/1/1", corev1.LastAppliedConfigAnnotation: "{}", "team": "shop"}
	s.Spec.ServiceName = "web"
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	s.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	s.Spec.Template.Labels = app
	s.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "web", Image: "east.example/web:1", Env: []corev1.EnvVar{{Name: "REGION", Value: "east"}, {Name: "MODE", Value: "fast"}}},
		{Name: "sidecar", Image: "east.example/sidecar:1"},
	}
	for _, name := range []string{"data", "logs"} {
		s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class},
		})
	}
	s.Status.Replicas = 3
	return s
}

func patchedInputs(patches ...string) build.Inputs {
	in := planstest.Inputs()
	in.Set = shop()
	in.Destination.Namespace = "mall"
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "front"}}
	one := intstr.FromInt32(1)
	b.Spec = policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}}}
	in.SourceBudget = b
	for _, p := range patches {
		in.Patches = append(in.Patches, plans.Patch{Path: "west.yaml", Patch: p})
	}
	return in
}

func TestPatchesChangeTheDestination(t *testing.T) {
	tests := map[string]struct {
		patches []string
		want    []string
	}{
		"the image of one container": {
			[]string{"spec: {template: {spec: {containers: [{name: web, image: west.example/web:1}]}}}"},
			[]string{"spec.template.spec.containers[web].image: east.example/web:1 -> west.example/web:1"},
		},
		"as kustomize wants it, with what is there already": {
			[]string{"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web, namespace: mall, labels: {cluster: west}}\nspec: {serviceName: web}"},
			[]string{"metadata.labels.cluster: (none) -> west"},
		},
		"where pods run, and one variable less": {
			[]string{`
spec:
  template:
    metadata: {annotations: {example.com/zone: w1}}
    spec:
      nodeSelector: {zone: west}
      tolerations: [{key: dedicated, operator: Exists}]
      priorityClassName: high
      imagePullSecrets: [{name: west}]
      containers: [{name: web, env: [{name: MODE, $patch: delete}, {name: REGION, value: west}], resources: {requests: {cpu: 100m}}}]
`},
			[]string{
				"spec.template.metadata.annotations[example.com/zone]: (none) -> w1",
				`spec.template.spec.containers[web].env[MODE]: {"name":"MODE","value":"fast"} -> (none)`,
				"spec.template.spec.containers[web].env[REGION].value: east -> west",
				"spec.template.spec.containers[web].resources.requests.cpu: (none) -> 100m",
				"spec.template.spec.imagePullSecrets[west].name: (none) -> west",
				"spec.template.spec.nodeSelector.zone: (none) -> west",
				"spec.template.spec.priorityClassName: (none) -> high",
				`spec.template.spec.tolerations: (none) -> [{"key":"dedicated","operator":"Exists"}]`,
			},
		},
		"the class of one claim template": {
			[]string{"spec: {volumeClaimTemplates: [{metadata: {name: logs}, spec: {storageClassName: cold}}]}"},
			[]string{"spec.volumeClaimTemplates[logs].spec.storageClassName: fast -> cold"},
		},
		"a JSON patch": {
			[]string{"- {op: test, path: /spec/template/spec/containers/0/name, value: web}\n- {op: replace, path: /spec/template/spec/containers/0/image, value: west.example/web:1}"},
			[]string{"spec.template.spec.containers[web].image: east.example/web:1 -> west.example/web:1"},
		},
		"several, and several documents, the last one wins": {
			[]string{"spec: {minReadySeconds: 1}\n---\nspec: {minReadySeconds: 2}\n", `[{"op":"replace","path":"/spec/minReadySeconds","value":3}]`},
			[]string{"spec.minReadySeconds: (none) -> 3"},
		},
		"what is so already": {[]string{"spec: {replicas: 3, ordinals: {start: 2}}"}, nil},
		"comments only":      {[]string{"# nothing\n"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := build.Plan(patchedInputs(tt.patches...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, p.Changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			raw, err := plans.Encode(p)
			if err != nil {
				t.Fatal(err)
			}
			again, err := plans.DecodePlan(raw)
			if err != nil {
				t.Fatal(err)
			}
			one, err := build.DestinationSet(shop(), p)
			if err != nil {
				t.Fatal(err)
			}
			two, err := build.DestinationSet(shop(), again)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(one, two); diff != "" {
				t.Errorf("a plan from its file makes another set:\n%s", diff)
			}
		})
	}
}

func TestTheDestinationSetIsABareCopyOfTheSource(t *testing.T) {
	p, err := build.Plan(patchedInputs())
	if err != nil {
		t.Fatal(err)
	}
	got, err := build.DestinationSet(shop(), p)
	if err != nil {
		t.Fatal(err)
	}
	want := metav1.ObjectMeta{Namespace: "mall", Name: "web", Annotations: map[string]string{"team": "shop"}}
	if diff := cmp.Diff(want, got.ObjectMeta); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(shop().Spec, got.Spec); diff != "" {
		t.Error(diff)
	}
}

func TestPatchesThatChangeWhatTheMoveGoesByAreRefused(t *testing.T) {
	tests := map[string]struct{ patch, want string }{
		"kind":                  {"kind: Deployment", "apiVersion or kind"},
		"name":                  {"metadata: {name: wob}", "metadata.name"},
		"namespace":             {"metadata: {namespace: elsewhere}", "metadata.namespace"},
		"finalizers":            {"metadata: {finalizers: [a/b]}", "metadata (other than"},
		"a mark of ours":        {"metadata: {annotations: {stsmigrate.dev/stamp: x/1/1}}", "metadata.annotations.stsmigrate.dev/stamp"},
		"status":                {"status: {replicas: 1}", "status"},
		"replicas":              {"spec: {replicas: 5}", "spec.replicas"},
		"replicas, taken away":  {"spec: {replicas: null}", "spec.replicas"},
		"replicas, JSON patch":  {"[{op: replace, path: /spec/replicas, value: 5}]", "spec.replicas"},
		"ordinals":              {"spec: {ordinals: {start: 7}}", "spec.ordinals"},
		"selector":              {"spec: {selector: {matchLabels: {tier: front}}}", "spec.selector"},
		"service":               {"spec: {serviceName: other}", "spec.serviceName"},
		"management policy":     {"spec: {podManagementPolicy: Parallel}", "spec.podManagementPolicy"},
		"retention policy":      {"spec: {persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}}", "spec.persistentVolumeClaimRetentionPolicy"},
		"partition":             {"spec: {updateStrategy: {rollingUpdate: {partition: 2}}}", "spec.updateStrategy.rollingUpdate.partition"},
		"another template":      {"spec: {volumeClaimTemplates: [{metadata: {name: more}}]}", `named "more", expected one of data, logs`},
		"a nameless template":   {"spec: {volumeClaimTemplates: [{spec: {storageClassName: cold}}]}", `named ""`},
		"templates taken away":  {"spec: {volumeClaimTemplates: null}", "spec.volumeClaimTemplates"},
		"one template removed":  {"[{op: remove, path: /spec/volumeClaimTemplates/0}]", "spec.volumeClaimTemplates"},
		"the whole set":         {"$patch: replace\nmetadata: {name: web}", "apiVersion or kind"},
		"a label of the set":    {"spec: {template: {metadata: {labels: {app: other}}}}", "the set's selector (app=web)"},
		"a label of the budget": {"spec: {template: {metadata: {labels: {tier: null}}}}", "PodDisruptionBudget front of the source (tier=front)"},
		"unknown field":         {"spec: {template: {spec: {nodeselector: {a: b}}}}", `unknown field "spec.template.spec.nodeselector"`},
		"unknown field, null":   {"spec: {replica: null}", `unknown field "spec.replica"`},
		"unknown field, JSON":   {"[{op: add, path: /spec/replica, value: 5}]", `unknown field "spec.replica"`},
		"unknown in a template": {"spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {class: cold}}]}", `unknown field "spec.volumeClaimTemplates[0].spec.class"`},
		"a field given twice":   {"spec: {minReadySeconds: 1, minReadySeconds: 2}", "already set in map"},
		"not a patch":           {"just words", "a map"},
		"not YAML":              {"{ a: [", "malformed YAML"},
		"aliases":               {"{spec: {template: {metadata: {annotations: &a {a: *a}}}}}", "write out what is meant"},
		"a path that is absent": {"[{op: replace, path: /spec/nowhere/image, value: x}]", "/spec/nowhere"},
		"an op that is unknown": {"[{op: replace, paths: /spec/replicas, value: 5}]", `unknown field "[0].paths"`},
		"a failed test":         {"[{op: test, path: /spec/serviceName, value: db}]", "/spec/serviceName"},
		"another type":          {"spec: {template: {spec: {nodeSelector: here}}}", "nodeSelector"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := build.Plan(patchedInputs(tt.patch))
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, expected one line with %q", err, tt.want)
			}
		})
	}
}

func TestDependenciesAreThoseOfThePatchedTemplate(t *testing.T) {
	p, err := build.Plan(patchedInputs("spec: {template: {spec: {containers: [{name: web, envFrom: [{secretRef: {name: west}}]}]}}}"))
	if err != nil {
		t.Fatal(err)
	}
	want := []plans.Dependency{{Kind: "Secret", Name: "west"}, {Kind: "Service", Name: "web"}}
	if diff := cmp.Diff(want, p.Dependencies); diff != "" {
		t.Error(diff)
	}
}

func TestRenderSaysWhatIsPatched(t *testing.T) {
	in := patchedInputs("spec: {template: {spec: {nodeSelector: {zone: west}}}}")
	in.Dependencies = []plans.Dependency{{Kind: "ConfigMap", Name: "web"}, {Kind: "Secret", Name: "tls", Required: "made by Certificate web of cert-manager"}}
	p, err := build.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"patched      spec.template.spec.nodeSelector.zone: (none) -> west\n",
		"copied       ConfigMap/web, if it is absent",
		"required     Secret/tls, which must already exist on the destination (made by Certificate web of cert-manager)\n",
	} {
		if !strings.Contains(preview.Render(p, p.FirstLeg()), want) {
			t.Errorf("%q is not in\n%s", want, preview.Render(p, p.FirstLeg()))
		}
	}
}

func TestAMigrationGivesPatchesByPathOrAsText(t *testing.T) {
	head := "apiVersion: " + plans.APIVersion + "\nkind: Migration\nspec:\n  source: {name: web}\n  destination:\n    namespace: mall\n    patches:\n"
	tests := map[string]struct{ patches, want string }{
		"both forms": {"    - path: west.yaml\n    - patch: |-\n        - {op: remove, path: /spec/minReadySeconds}\n", ""},
		"neither":    {"    - {}\n", "patches[0]"},
		"both":       {"    - {path: a, patch: b}\n", "patches[0]"},
		"a target":   {"    - {path: a, target: {kind: StatefulSet}}\n", `unknown field "spec.destination.patches[0].target"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := plans.DecodeMigration([]byte(head + tt.patches))
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, expected %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := []plans.Patch{{Path: "west.yaml"}, {Patch: "- {op: remove, path: /spec/minReadySeconds}"}}
			if diff := cmp.Diff(want, m.Spec.Destination.Patches); diff != "" || m.Spec.Destination.Namespace != "mall" {
				t.Errorf("%+v\n%s", m.Spec.Destination, diff)
			}
		})
	}
}

// A StatefulSet has no EnforcedRollingUpdate.
func TestAStatefulSetOnTheDestinationRollsAsItCan(t *testing.T) {
	in := patchedInputs()
	in.Set.Spec.UpdateStrategy.Type = v1alpha1.EnforcedRollingUpdate
	for kind, want := range map[string]appsv1.StatefulSetUpdateStrategyType{"": appsv1.RollingUpdateStatefulSetStrategyType, plans.SliceKind: v1alpha1.EnforcedRollingUpdate} {
		in.Destination.Kind = kind
		after, err := in.DestinationSet()
		if err != nil || after.Spec.UpdateStrategy.Type != want {
			t.Errorf("%q: %v, %v", kind, after.Spec.UpdateStrategy.Type, err)
		}
	}
}
