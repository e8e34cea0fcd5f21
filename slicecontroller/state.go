package slicecontroller

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// stateMetrics are the metrics of sets that kube-state-metrics exposes (MT-8), under the names of the KEPs,
// for clusters without kube-state-metrics. Each scrape reads them from the cache, so that there are no
// series of deleted sets (MT-9).
type stateMetrics struct {
	ctx  context.Context //nolint:containedctx // a Collector is given none
	kind kind
	sets client.Reader
}

// stateMetric is one metric and its value for a set, if it has one.
type stateMetric struct {
	desc  *prometheus.Desc
	value func(*core.Set) (float64, bool)
}

func stateMetricsOfSets() []stateMetric {
	metric := func(name, help string, value func(*core.Set) (float64, bool)) stateMetric {
		return stateMetric{prometheus.NewDesc("kube_statefulset_"+name, help, []string{"namespace", "statefulset"}, nil), value}
	}
	return []stateMetric{
		metric("replicas", "Number of desired pods for a StatefulSet.", func(s *core.Set) (float64, bool) {
			if s.Spec.Replicas == nil {
				return 1, true
			}
			return float64(*s.Spec.Replicas), true
		}),
		metric("status_replicas", "The number of replicas per StatefulSet.", func(s *core.Set) (float64, bool) { return float64(s.Status.Replicas), true }),
		metric("ordinals_start", "Start ordinal of the StatefulSet, where it has one (KEP-3335).", func(s *core.Set) (float64, bool) {
			if s.Spec.Ordinals == nil {
				return 0, false
			}
			return float64(s.Spec.Ordinals.Start), true
		}),
		metric("spec_strategy_rollingupdate_max_unavailable", "How many pods an update may take down at once, as a number of pods (KEP-961).", func(s *core.Set) (float64, bool) {
			return float64(s.MaxUnavailable()), s.Spec.UpdateStrategy.RollingUpdate != nil
		}),
	}
}

// Describe implements prometheus.Collector.
func (m stateMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, metric := range stateMetricsOfSets() {
		to <- metric.desc
	}
}

// Collect implements prometheus.Collector. A cache that is not filled yet has no sets.
func (m stateMetrics) Collect(to chan<- prometheus.Metric) {
	list := m.kind.list()
	if m.sets.List(m.ctx, list, client.UnsafeDisableDeepCopy) != nil {
		return
	}
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		object, _ := o.(client.Object)
		set := m.kind.read(object)
		for _, metric := range stateMetricsOfSets() {
			if v, there := metric.value(set); there {
				to <- prometheus.MustNewConstMetric(metric.desc, prometheus.GaugeValue, v, set.Namespace, set.Name)
			}
		}
		return nil
	})
}
