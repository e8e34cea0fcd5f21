package slicecontroller

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
	"github.com/stsmigrate/stsmigrate/slicecontroller/manifests"
)

// MT-8, 961-20, 3335-51, 3335-53.
func TestStateOfSetsIsTold(t *testing.T) {
	half := intstr.FromString("50%")
	plain := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "plain"}, Status: appsv1.StatefulSetStatus{Replicas: 2}}
	sliced := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(6)), Ordinals: &appsv1.StatefulSetOrdinals{Start: 4},
		UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &half}},
	}}
	c := fake.NewClientBuilder().WithObjects(plain, sliced).Build()
	want := `# HELP kube_statefulset_ordinals_start Start ordinal of the StatefulSet, where it has one (KEP-3335).
# TYPE kube_statefulset_ordinals_start gauge
kube_statefulset_ordinals_start{namespace="shop",statefulset="web"} 4
# HELP kube_statefulset_replicas Number of desired pods for a StatefulSet.
# TYPE kube_statefulset_replicas gauge
kube_statefulset_replicas{namespace="shop",statefulset="plain"} 1
kube_statefulset_replicas{namespace="shop",statefulset="web"} 6
# HELP kube_statefulset_spec_strategy_rollingupdate_max_unavailable How many pods an update may take down at once, as a number of pods (KEP-961).
# TYPE kube_statefulset_spec_strategy_rollingupdate_max_unavailable gauge
kube_statefulset_spec_strategy_rollingupdate_max_unavailable{namespace="shop",statefulset="web"} 3
# HELP kube_statefulset_status_replicas The number of replicas per StatefulSet.
# TYPE kube_statefulset_status_replicas gauge
kube_statefulset_status_replicas{namespace="shop",statefulset="plain"} 2
kube_statefulset_status_replicas{namespace="shop",statefulset="web"} 0
`
	m := stateMetrics{t.Context(), native(core.Traits{}), c}
	if err := testutil.CollectAndCompare(m, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if err := c.Delete(t.Context(), sliced); err != nil {
		t.Fatal(err)
	}
	if n := testutil.CollectAndCount(m); n != 2 {
		t.Errorf("MT-9: %d series of one set", n)
	}
}

// The configuration for kube-state-metrics reports the same, from fields that exist.
func TestKubeStateMetricsTellsTheSame(t *testing.T) {
	raw, err := os.ReadFile("../deploy/slicecontroller/kube-state-metrics.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Spec struct {
			Resources []struct {
				MetricNamePrefix string
				LabelsFromPath   map[string][]string
				Metrics          []struct {
					Name string
					Each struct {
						Type  string
						Gauge struct{ Path []string }
					}
				}
			}
		}
	}
	if err := yaml.UnmarshalStrict(raw, &config); err != nil && !strings.Contains(err.Error(), "unknown field") {
		t.Fatal(err)
	}
	crd := map[string]any{}
	if err := yaml.Unmarshal(manifests.CRD, &crd); err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	schema, _, _ := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema") //nolint:forcetypeassert // a version is an object
	var told, known []string
	for _, m := range config.Spec.Resources[0].Metrics {
		told = append(told, config.Spec.Resources[0].MetricNamePrefix+"_"+m.Name)
		at := schema
		for _, field := range m.Each.Gauge.Path {
			next, found, _ := unstructured.NestedMap(at, "properties", field)
			if !found {
				t.Errorf("%s: the kind has no field %s", m.Name, strings.Join(m.Each.Gauge.Path, "."))
			}
			at = next
		}
	}
	for _, m := range stateMetricsOfSets() {
		name, _, _ := strings.Cut(strings.TrimPrefix(m.desc.String(), `Desc{fqName: "`), `"`)
		known = append(known, name)
	}
	if slices.Sort(told); !slices.Equal(told, slices.Sorted(slices.Values(known))) {
		t.Errorf("kube-state-metrics tells %v, and the controller %v", told, known)
	}
}
