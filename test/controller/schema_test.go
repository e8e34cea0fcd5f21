package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// parsed returns an object from its text.
func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return o
}

// Claim templates are compared by meaning (VA-6): the text of a user, the object that a program makes of
// it, and the same text written again are equal. A template may request more storage or another class, and
// have other labels. Every other change is refused.
func TestClaimTemplatesAreComparedByWhatTheyMean(t *testing.T) {
	t.Parallel()
	s := place(t)
	claim := func(metadata, spec string) string {
		return "  replicas: 0\n  volumeClaimTemplates: [{metadata: {" + metadata + "}, spec: {" + spec + "}}]"
	}
	const asked = "accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}"
	if err := s.Create(t.Context(), s.written(t, claim("name: data", asked))); err != nil {
		t.Fatal(err)
	}
	typed := func() {
		t.Helper()
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // the controller writes the status, too
			o := s.slice(t)
			o.Labels = map[string]string{"written": "by-a-program"}
			return s.Update(t.Context(), o)
		})
		if err != nil {
			t.Errorf("a typed client: %v", err)
		}
	}
	put := func(text string) error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			o := s.written(t, text)
			o.SetResourceVersion(s.slice(t).ResourceVersion)
			return s.Update(t.Context(), o)
		})
	}
	typed()
	if raw := fmt.Sprint(s.raw(t.Context())["spec"].(map[string]any)["volumeClaimTemplates"]); strings.Contains(raw, "status") { //nolint:forcetypeassert // of a slice
		t.Errorf("stored is %s", raw)
	}
	for _, same := range []string{
		claim("name: data", asked),
		claim("name: data", "accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}"),
		claim("name: data", "accessModes: [ReadWriteOnce], resources: {requests: {storage: 1073741824}}"),
		claim("name: data, labels: {}, annotations: {}", asked+", volumeMode: Filesystem"),
		claim("name: data", "accessModes: [ReadWriteOnce], resources: {limits: {}, requests: {storage: 1Gi}}"),
	} {
		if err := put(same); err != nil {
			t.Errorf("%s: %v", same, err)
		}
		typed()
	}
	for _, other := range []string{
		claim("name: data", "accessModes: [ReadWriteOnce], resources: {requests: {storage: 1023Mi}}"),
		claim("name: data", "accessModes: [ReadWriteOnce]"),
		claim("name: data", asked[:len(asked)-1]+", limits: {storage: 2Gi}}"),
		claim("name: data", asked+", volumeMode: Block"),
		claim("name: data", asked+", volumeName: one"),
		claim("name: data", asked+", selector: {matchLabels: {a: b}}"),
		claim("name: data", asked+", dataSource: {kind: PersistentVolumeClaim, name: other}"),
		claim("name: data", asked+", dataSourceRef: {kind: PersistentVolumeClaim, name: other}"),
		claim("name: data", strings.ReplaceAll(asked, "Once", "Many")),
		claim("name: other", asked),
		claim("name: data, finalizers: [example.com/a]", asked),
		claim("name: data", asked) + "\n  - {metadata: {name: more}, spec: {}}",
		"  replicas: 0",
	} {
		other = strings.Replace(other, "]\n  - ", ", ", 1)
		if strings.HasSuffix(other, "spec: {}}") {
			other += "]"
		}
		if err := put(other); err == nil || !strings.Contains(err.Error(), "volumeClaimTemplates cannot be changed") && !strings.Contains(err.Error(), "the storage request of volumeClaimTemplates can only grow") {
			t.Errorf("%s: %v", other, err)
		}
	}
	for _, next := range []string{ // for new claims
		claim("name: data", asked+", storageClassName: other"),
		claim("name: data", asked+", storageClassName: \"\""),
		claim("name: data", asked+", volumeAttributesClassName: fast, storageClassName: other"),
		claim("name: data, labels: {a: b}", asked),
		claim("name: data, annotations: {a: b}", asked),
		claim("name: data", "accessModes: [ReadWriteOnce], resources: {requests: {storage: 1025Mi}}"),
		claim("name: data", "accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}"),
	} {
		if err := put(next); err != nil {
			t.Errorf("%s: %v", next, err)
		}
		typed()
	}
	if err := put(claim("name: data", asked)); err == nil || !strings.Contains(err.Error(), "the storage request of volumeClaimTemplates can only grow") {
		t.Errorf("it shrinks: %v", err)
	}
}

// A claim template must have a name: the names of its claims begin with it.
func TestAClaimTemplateHasAName(t *testing.T) {
	t.Parallel()
	s := place(t)
	for _, nameless := range []string{"{metadata: {}, spec: {}}", "{metadata: {labels: {a: b}}, spec: {}}", "{spec: {}}"} {
		err := s.Create(t.Context(), s.written(t, "  volumeClaimTemplates: ["+nameless+"]"))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.volumeClaimTemplates[0].metadata") {
			t.Errorf("%s: %v", nameless, err)
		}
	}
}

// The API server refuses a pod template with values of a wrong type BEFORE it is stored. It accepts unknown
// fields and null values, and defaults nothing.
func TestTheTemplateIsLookedAtWhereItIsStored(t *testing.T) {
	s := away(t) // where no webhook is served, which would refuse fields unknown to the controller
	slice := func(name, template string) *unstructured.Unstructured {
		return parsed(t, fmt.Sprintf("{apiVersion: apps.stsmigrate.dev/v1alpha1, kind: StatefulSetSlice, metadata: {name: %s, namespace: %s}, spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: %s}}", name, s.namespace, template))
	}
	for template, want := range map[string]string{
		"{metadata: {labels: {app: web}}, spec: {containers: [{name: web, env: [{name: PORT, value: 8080}]}]}}":                  "spec.template.spec.containers[0].env[0].value",
		"{metadata: {labels: {app: web, version: 2}}, spec: {containers: [{name: web}]}}":                                        "spec.template.metadata.labels.version",
		"{metadata: {labels: {app: web}}, spec: {containers: [{name: web, resources: {requests: {cpu: 500 m}}}]}}":               "spec.template.spec.containers[0].resources.requests.cpu",
		"{metadata: {labels: {app: web}}, spec: {containers: [{name: web, livenessProbe: {periodSeconds: \"5\"}}]}}":             "spec.template.spec.containers[0].livenessProbe.periodSeconds",
		"{metadata: {labels: {app: web}}, spec: {containers: {name: web}}}":                                                      "spec.template.spec.containers",
		"{metadata: {labels: {app: web}}, spec: {containers: [{name: web, ports: [{containerPort: 80}, {containerPort: 80}]}]}}": "spec.template.spec.containers[0].ports[1]: Duplicate value",
		"{metadata: {labels: {app: web}}, spec: {}}":                                                                             "spec.template.spec.containers: Required value",
	} {
		if err := s.Create(t.Context(), slice("bad", template)); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, expected %q", template, err, want)
		}
	}
	const template = "{metadata: {labels: {app: web}, annotations: null, creationTimestamp: null}, spec: {later: {a: 1}, affinity: null, containers: [{name: web, image: web, later: 1, env: null, ports: [{containerPort: 80}], resources: {later: x}}]}}"
	o := slice("kept", template)
	if err := s.Create(t.Context(), o, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		t.Fatal(err)
	}
	want := parsed(t, strings.Replace(template, "containerPort: 80", "containerPort: 80, protocol: TCP", 1)).Object
	if got, _, _ := unstructured.NestedMap(o.Object, "spec", "template"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("stored is %v, expected %v", got, want)
	}
}

// Two programs that apply a slice server-side each own their containers, variables and ports.
func TestServerSideApplyMergesWhatIsInATemplate(t *testing.T) {
	t.Parallel()
	s := place(t)
	apply := func(owner, container string) {
		t.Helper()
		o := s.written(t, "  replicas: 0")
		spec, _ := o.Object["spec"].(map[string]any)
		spec["template"] = parsed(t, "{metadata: {labels: {app: web}}, spec: {containers: ["+container+"]}}").Object
		//nolint:staticcheck // an apply of what no apply configuration is generated for
		if err := s.Patch(t.Context(), o, client.Apply, client.FieldOwner(owner)); err != nil {
			t.Fatalf("%s: %v", owner, err)
		}
	}
	apply("author", "{name: web, image: web, env: [{name: A, value: a}], ports: [{containerPort: 80}]}")
	apply("mesh", "{name: proxy, image: proxy}")
	apply("tuner", "{name: web, env: [{name: B, value: b}], ports: [{containerPort: 80, protocol: UDP}]}")
	apply("author", "{name: web, image: web:2, env: [{name: A, value: c}], ports: [{containerPort: 80}]}")
	var got v1alpha1.StatefulSetSlice
	if err := s.Get(context.WithoutCancel(t.Context()), client.ObjectKey{Namespace: s.namespace, Name: "web"}, &got); err != nil {
		t.Fatal(err)
	}
	c := got.Spec.Template.Spec.Containers
	if len(c) != 2 || c[0].Image != "web:2" || len(c[0].Env) != 2 || c[0].Env[0].Value != "c" || len(c[0].Ports) != 2 {
		t.Errorf("%+v", c)
	}
}
