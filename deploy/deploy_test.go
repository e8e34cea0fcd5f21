package deploy

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

var update = flag.Bool("update", false, "write the folders for kustomize anew") //nolint:gochecknoglobals // flags are

// folders lists the folders for kustomize users, and the components in each.
func folders() map[string][]string {
	return map[string][]string{
		"orchestrator":            {"orchestrator"},
		"account":                 {"account"},
		"slicecontroller":         {"slicecontroller"},
		"slicecontroller-webhook": {"webhook"},
		"policies":                {"policies"},
	}
}

func render(t *testing.T, namespace string, components ...string) []byte {
	t.Helper()
	values, err := Values(components...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Render(namespace, "", values)
	if err != nil {
		t.Fatalf("%v: %v", components, err)
	}
	return out
}

func decode(t *testing.T, raw []byte) (out []*unstructured.Unstructured) {
	t.Helper()
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%v\n%s", err, raw)
		}
		out = append(out, o)
	}
}

func into[T any](t *testing.T, o *unstructured.Unstructured) *T {
	t.Helper()
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, out, true); err != nil {
		t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return out
}

func TestKustomizeHasWhatTheChartMakes(t *testing.T) {
	for folder, components := range folders() {
		file := filepath.Join(folder, "manifests.yaml")
		want := append([]byte("# Made by `make generate` of deploy/chart; `stsmigrate install "+strings.Join(components, " ")+"` prints the same.\n"), render(t, "stsmigrate", components...)...)
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s is not what the chart makes: run `make generate`", file)
		}
	}
}

func TestHelmFindsNothingWrongWithTheChart(t *testing.T) {
	all, err := Values(Components()...)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range map[string]map[string]any{"as it comes": nil, "with everything": all} {
		for _, m := range lint.RunAll("chart", values, "stsmigrate").Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

func TestTheKindInTheChartIsTheOneThatIsGenerated(t *testing.T) {
	chart, err := os.ReadFile("chart/statefulsetslices.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kind, err := os.ReadFile("../slicecontroller/manifests/apps.stsmigrate.dev_statefulsetslices.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(chart, kind) {
		t.Error("chart/statefulsetslices.yaml is not the generated kind: run `make generate`")
	}
}

func TestValuesThatNobodyKnowsAreRefused(t *testing.T) {
	for name, values := range map[string]map[string]any{
		"a word that is spelled wrong":   {"orchestrator": map[string]any{"replica": 3}},
		"fewer than no replicas":         {"orchestrator": map[string]any{"replicas": -1}},
		"a duration without a unit":      {"orchestrator": map[string]any{"stepTimeout": "10"}},
		"sets that nobody takes care of": {"slicecontroller": map[string]any{"manage": "apps/v2"}},
		"nothing at all":                 {"orchestrator": map[string]any{"enabled": false}, "account": map[string]any{"create": false}},
	} {
		if out, err := Render("stsmigrate", "", values); err == nil {
			t.Errorf("%s: rendered\n%s", name, out)
		}
	}
	if _, err := Values("orchestrators"); err == nil || !strings.Contains(err.Error(), "slicecontroller") {
		t.Errorf("a component that does not exist: %v", err)
	}
}

func TestEverythingIsInTheNamespaceThatIsAskedFor(t *testing.T) {
	raw := render(t, "moves", Components()...)
	for _, o := range decode(t, raw) {
		if o.GetNamespace() != "" && o.GetNamespace() != "moves" || o.GetKind() == "Namespace" && o.GetName() != "moves" {
			t.Errorf("%s %s is in namespace %q", o.GetKind(), o.GetName(), o.GetNamespace())
		}
	}
	for line := range strings.Lines(string(raw)) {
		if strings.Contains(line, "namespace: stsmigrate") || strings.Contains(line, "serviceaccount:stsmigrate") || strings.Contains(line, "stsmigrate.svc") {
			t.Errorf("this names another namespace: %s", line)
		}
	}
}

// The API server itself would apply these checks (Pod Security Standard "restricted", latest).
func TestPodsAreRestricted(t *testing.T) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	strict := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	pods := 0
	for _, o := range decode(t, render(t, "stsmigrate", Components()...)) {
		if o.GetKind() != "Deployment" {
			continue
		}
		pods++
		pod := into[appsv1.Deployment](t, o).Spec.Template
		for _, r := range checks.EvaluatePod(strict, &pod.ObjectMeta, &pod.Spec) {
			if !r.Allowed {
				t.Errorf("%s: %s (%s)", o.GetName(), r.ForbiddenReason, r.ForbiddenDetail)
			}
		}
		for _, c := range pod.Spec.Containers {
			if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
				t.Errorf("%s: container %s can write to its root", o.GetName(), c.Name)
			}
		}
	}
	if pods != 2 {
		t.Errorf("%d Deployments, expected those of the orchestrator and the slice controller", pods)
	}
}

// Every right is listed explicitly, and no binding grants all of them.
func TestThereAreNoWildcards(t *testing.T) {
	bound := 0
	for _, o := range decode(t, render(t, "stsmigrate", Components()...)) {
		var rules []rbacv1.PolicyRule
		switch o.GetKind() {
		case "Role":
			rules = into[rbacv1.Role](t, o).Rules
		case "ClusterRole":
			rules = into[rbacv1.ClusterRole](t, o).Rules
		case "RoleBinding", "ClusterRoleBinding":
			bound++
			if ref, _, _ := unstructured.NestedString(o.Object, "roleRef", "name"); !strings.Contains(ref, "orchestrator") && !strings.Contains(ref, "slicecontroller") {
				t.Errorf("%s %s binds %s", o.GetKind(), o.GetName(), ref)
			}
		}
		for _, r := range rules {
			for _, list := range [][]string{r.APIGroups, r.Resources, r.Verbs, r.NonResourceURLs} {
				if slices.Contains(list, "*") || slices.Contains(list, "escalate") || slices.Contains(list, "bind") || slices.Contains(list, "impersonate") {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), r)
				}
			}
		}
	}
	if bound == 0 {
		t.Error("there are no bindings")
	}
}

// With a flag that a program does not have, its pods would not start.
func TestProgramsKnowTheirFlags(t *testing.T) {
	for _, o := range decode(t, render(t, "stsmigrate", Components()...)) {
		if o.GetKind() != "Deployment" {
			continue
		}
		c := into[appsv1.Deployment](t, o).Spec.Template.Spec.Containers[0]
		help, err := exec.CommandContext(t.Context(), "go", "run", "../cmd/"+c.Name, "--help").CombinedOutput()
		if err != nil || len(c.Args) == 0 {
			t.Fatalf("%s: %v\n%s", c.Name, err, help)
		}
		for _, arg := range c.Args {
			if flag, _, _ := strings.Cut(arg, "="); !strings.Contains(string(help), " "+flag+" ") {
				t.Errorf("%s has no flag %s", c.Name, flag)
			}
		}
	}
}

func TestSecretsAreReadInTheOwnNamespaceOnly(t *testing.T) {
	for _, o := range decode(t, render(t, "stsmigrate", Components()...)) {
		if o.GetKind() != "ClusterRole" {
			continue
		}
		for _, r := range into[rbacv1.ClusterRole](t, o).Rules {
			if slices.Contains(r.Resources, string(corev1.ResourceSecrets)) {
				t.Errorf("ClusterRole %s reads Secrets", o.GetName())
			}
		}
	}
}

// Without the label, two installs in one cluster would share these objects.
func TestWhatIsInNoNamespaceSaysWhoseItIs(t *testing.T) {
	names := map[string]map[string]string{} // by namespace of the install
	for _, namespace := range []string{"moves", "stsmigrate"} {
		names[namespace] = map[string]string{}
		for _, o := range decode(t, render(t, namespace, Components()...)) {
			switch {
			case o.GetNamespace() != "", o.GetKind() == "Namespace", o.GetKind() == "CustomResourceDefinition":
				continue // each install has its own namespace, and kinds are the same for all installs
			case o.GetLabels()[InstallLabel] != namespace:
				t.Errorf("%s %s has the label %s=%q, expected %q", o.GetKind(), o.GetName(), InstallLabel, o.GetLabels()[InstallLabel], namespace)
			}
			names[namespace][o.GetKind()+" "+o.GetName()] = o.GetName()
		}
	}
	for of, name := range names["moves"] {
		_, shared := names["stsmigrate"][of]
		// A cluster has one of each: the policies apply to all its volumes, and two slice controllers would
		// work against each other.
		once := strings.HasPrefix(of, "ValidatingAdmissionPolicy") || strings.Contains(name, "slicecontroller")
		if shared != once {
			t.Errorf("%s: two installs share it: %v, expected %v", of, shared, once)
		}
	}
}

// What kubectl explain prints: every field of our own kinds is described. The fields of pods and claims are those of
// Kubernetes, whose own reference describes them.
func TestKubectlExplainsEveryField(t *testing.T) {
	kinds := 0
	for _, o := range decode(t, render(t, "stsmigrate", "orchestrator", "slicecontroller")) {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		kinds++
		d := into[apiextensionsv1.CustomResourceDefinition](t, o)
		for _, v := range d.Spec.Versions {
			whole := *v.Schema.OpenAPIV3Schema
			for name, field := range whole.Properties {
				if name == "metadata" { // the API server describes it
					continue
				}
				undescribed(t, d.Spec.Names.Kind+"."+name, field)
			}
			if whole.Description == "" {
				t.Errorf("%s has no description", d.Spec.Names.Kind)
			}
		}
	}
	if kinds != 2 {
		t.Errorf("%d kinds were read, expected StatefulSetMigration and StatefulSetSlice", kinds)
	}
}

// undescribed reports the fields from one on that have no description.
func undescribed(t *testing.T, path string, field apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	if field.Description == "" {
		t.Errorf("%s has no description", path)
	}
	if slices.Contains([]string{"StatefulSetSlice.spec.template", "StatefulSetSlice.spec.volumeClaimTemplates"}, path) {
		return
	}
	below := field.Properties
	if field.Items != nil && field.Items.Schema != nil {
		below = field.Items.Schema.Properties
	}
	for name, f := range below {
		undescribed(t, path+"."+name, f)
	}
}

// Without a kind its objects are gone, and sets and plans with them: helm keeps it when a release or a component goes.
func TestKindsAreKept(t *testing.T) {
	count := func(all []*unstructured.Unstructured) (n int) {
		for _, o := range all {
			if o.GetKind() != "CustomResourceDefinition" && o.GetKind() != "Namespace" {
				continue
			}
			n++
			if o.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
				t.Errorf("%s %s goes with its release", o.GetKind(), o.GetName())
			}
		}
		return n
	}
	if n := count(with(t)); n != 4 {
		t.Errorf("%d objects, expected the namespace and three kinds", n)
	}
	if n := count(with(t, "crds.install=false", "namespace.create=false")); n != 0 {
		t.Errorf("%d kinds and namespaces although there is to be none", n)
	}
}
