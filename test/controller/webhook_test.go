package controller_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
)

// said collects the warnings of an API server.
type said struct {
	lock sync.Mutex
	text bytes.Buffer
}

// HandleWarningHeader implements rest.WarningHandler.
func (s *said) HandleWarningHeader(_ int, _, text string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.text.WriteString(text + "\n")
}

// take returns the warnings since its last call.
func (s *said) take() string {
	s.lock.Lock()
	defer s.lock.Unlock()
	defer s.text.Reset()
	return s.text.String()
}

// loud returns a client of the west that collects warnings.
func loud(t *testing.T) (client.Client, *said) {
	t.Helper()
	config, observed := bed.West.Config(), &said{}
	config.WarningHandler = rest.WarningHandler(observed)
	c, err := client.New(config, client.Options{Scheme: clusters.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c, observed
}

// The webhook refuses what the schema cannot (VA-4, VA-9), with the field names of the slice. A slice that
// is already stored can still be scaled (VA-7).
func TestTheWebhookRefusesWhatCannotBeMade(t *testing.T) {
	t.Parallel()
	s := place(t)
	for spec, want := range map[string]string{
		"  template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: web, image: web}]}}":                                 "spec.selector (app=web) does not select pods with these labels",
		"  template: {metadata: {labels: {app: web}}, spec: {restartPolicy: Never, containers: [{name: web, image: web}]}}":            `spec.template.spec.restartPolicy: Unsupported value: "Never"`,
		"  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web}]}}":                                              "spec.template.spec.containers[0].image: Required value",
		"  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web, ports: [{containerPort: 70000}]}]}}": "spec.template.spec.containers[0].ports[0].containerPort: Invalid value: 70000",
		"  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}]":                                     "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value",
		"  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [Sometimes], resources: {requests: {storage: 1Gi}}}}]":  "spec.volumeClaimTemplates[0].spec.accessModes",
	} {
		if err := s.Create(t.Context(), s.merged(t, spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, expected %q", strings.TrimSpace(spec), err, want)
		}
	}
	if err := s.Create(t.Context(), s.written(t, "  replicas: 0")); err != nil {
		t.Fatal(err)
	}
	if err := s.patch(t.Context(), `{"template":{"spec":{"containers":[{"name":"web"}]}}}`); err == nil || !strings.Contains(err.Error(), "spec.template.spec.containers[0].image: Required value") {
		t.Error(err)
	}
}

// merged returns a slice whose fields replace the usual ones.
func (s *side) merged(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	o := s.written(t, "")
	more := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &more); err != nil {
		t.Fatal(err)
	}
	fields, _, _ := unstructured.NestedMap(o.Object, "spec")
	for k, v := range more {
		fields[k] = v
	}
	if err := unstructured.SetNestedMap(o.Object, fields, "spec"); err != nil {
		t.Fatal(err)
	}
	return o
}

// A user of kubectl sees the warnings (MU-9, 961-05, PT-5, RV-7, CL-11, 3541-43).
func TestTheWebhookWarns(t *testing.T) {
	t.Parallel()
	s := place(t)
	c, observed := loud(t)
	set := three()
	set.Namespace = s.namespace
	set.Spec.Replicas = new(int32(0))
	if err := s.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), s.written(t, "  replicas: 3\n  updateStrategy: {rollingUpdate: {maxUnavailable: 3}}")); err != nil {
		t.Fatal(err)
	}
	if got := observed.take(); got != "maxUnavailable 3 lets an update take down all 3 pods at once\n" {
		t.Errorf("%q", got)
	}
	for patch, want := range map[string]string{
		`{"updateStrategy":{"rollingUpdate":{"maxUnavailable":1,"partition":9}}}`: "partition 9 is no ordinal of the range 0..2",
		`{"revisionHistoryLimit":-1}`: "keeps every ControllerRevision",
	} {
		if err := c.Patch(t.Context(), s.slice(t), client.RawPatch("application/merge-patch+json", []byte(`{"spec":`+patch+`}`))); err != nil {
			t.Fatal(err)
		}
		if got := observed.take(); !strings.Contains(got, want) {
			t.Errorf("%s: %q, expected %q", patch, got, want)
		}
	}
	other := s.written(t, "")
	other.SetName("twin")
	twin := set.DeepCopy()
	twin.ObjectMeta = metav1.ObjectMeta{Namespace: s.namespace, Name: "twin"}
	twin.Spec.Replicas = new(int32(1))
	twin.Spec.Ordinals = nil
	if err := s.Create(t.Context(), twin); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if got := observed.take(); !strings.Contains(got, "StatefulSet twin has the same name and the same pods twin-0 to twin-0") {
		t.Errorf("CL-11: %q", got)
	}
}

// B24-01: the manifest from the announcement of maxUnavailable, with another group and kind.
func TestTheAnnouncedManifestIsAccepted(t *testing.T) {
	t.Parallel()
	s := place(t)
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: apps.stsmigrate.dev/v1alpha1
kind: StatefulSetSlice
metadata: {name: web}
spec:
  podManagementPolicy: OrderedReady
  replicas: 5
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec:
      containers: [{image: "nginx", imagePullPolicy: Always, name: nginx}]
  updateStrategy:
    rollingUpdate: {maxUnavailable: 2, partition: 0}
    type: RollingUpdate
`), &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetNamespace(s.namespace)
	if err := s.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s.until(t, "five pods", s.has("web-0", "web-1", "web-2", "web-3", "web-4"))
	s.taken()
	if err := s.patch(t.Context(), `{"template":{"metadata":{"annotations":{"a":"b"}}}}`); err != nil {
		t.Fatal(err)
	}
	s.updated(t, 5)
	if got := strings.Join(deletions(s.taken()), " "); got != "-4 -3 -2 -1 -0" { // 961-08
		t.Errorf("the pods went in the order %s", got)
	}
}
