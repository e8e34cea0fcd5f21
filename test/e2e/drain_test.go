//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// The single unit of the budget goes to the side whose node is being drained: neither side's drain
// waits for the end of the move (S3).
func TestANodeOfEitherSideIsDrainedDuringAMove(t *testing.T) {
	s := between(t, "drained")
	s.replicas = 6
	s.started(t, s.dataSet(cluster.AttachedClass))
	source, destination := s.places()[0], s.places()[1]
	s.moveUnder(t, "data, a node of each side is drained, d = 1", new(int),
		fault{1, s.withinOneWave(s.drain(source, source.Name+"-worker"))},
		fault{4, s.withinOneWave(s.drain(destination, destination.Name+"-worker"))})
}

// withinOneWave checks that at most one ordinal leaves for the destination during what: the ordinal
// that was about to leave.
func (s fixture) withinOneWave(what func(*testing.T) string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		before := s.moved(t)
		said := what(t)
		if after := s.moved(t); after > before+1 {
			t.Errorf("%s; meanwhile %d ordinals left for the destination, expected one at most", said, after-before)
		}
		return said
	}
}

// moved returns how many ordinals the destination's set has in its spec.
func (s fixture) moved(t *testing.T) int32 {
	t.Helper()
	set, err := s.places()[1].find(t.Context(), s.set)
	if err != nil {
		t.Error(err)
		return 0
	}
	return *set.Spec.Replicas
}

// drain evicts the set's pods from a node of a place, as kubectl drain does, and makes the node
// schedulable again at the end.
func (s fixture) drain(from place, node string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		if err := from.cordon(t.Context(), node, true); err != nil {
			t.Errorf("drain: %v", err)
			return ""
		}
		var evicted, refused int
		err := wait.PollUntilContextTimeout(t.Context(), 5*time.Second, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
			var pods corev1.PodList
			if err := from.Client.List(ctx, &pods, client.InNamespace(from.namespace), client.MatchingLabels{"app": s.set}, client.MatchingFields{"spec.nodeName": node}); err != nil {
				return false, err
			}
			for _, pod := range pods.Items {
				if pod.DeletionTimestamp != nil {
					continue
				}
				err := from.Set.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
				switch {
				case err == nil:
					evicted++
				case apierrors.IsTooManyRequests(err):
					refused++
				case !apierrors.IsNotFound(err):
					return false, err
				}
			}
			return len(pods.Items) == 0, nil
		})
		if err = errors.Join(err, from.cordon(t.Context(), node, false)); err != nil || evicted == 0 {
			t.Errorf("drain of %s: %d evicted: %v", node, evicted, err)
		}
		return fmt.Sprintf("drain of %s: %d evictions, and %d that were refused and retried", node, evicted, refused)
	}
}

func (p place) cordon(ctx context.Context, node string, yes bool) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%v}}`, yes))
	return p.Client.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, patch)
}
