package move_test

import (
	"context"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// An application that breaks on the destination keeps finalize from its first deletion, and the way back is open.
func TestAFinalizeThatWaitsIsAborted(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		before, there := s.state(s.source), s.names("destination")
		s.planned()
		run(t, s.applyArgs()...).expect(t, done, "moved: 3 ordinals")
		s.change(s.destination, &corev1.Pod{}, "web-0", `{"metadata":{"labels":{"`+cluster.NeverReady+`":"true"}}}`)
		s.eventually("web-0 is not ready", func(ctx context.Context) bool {
			var set appsv1.StatefulSet
			return s.destination.Get(ctx, s.destination.key("web"), &set) == nil && set.Status.ReadyReplicas == 2
		})
		p := start(t, s.args("finalize")...)
		p.until("nothing of the source is deleted before that")
		p.signal(syscall.SIGKILL)
		p.end()
		run(t, s.args("apply", "--yes")...).expect(t, done, "moved: 3 ordinals")
		p = start(t, s.args("finalize")...)
		p.until("nothing of the source is deleted before that")
		p.signal(syscall.SIGKILL)
		p.end()
		run(t, s.args("abort")...).expect(t, done, "aborted")
		s.asBefore(before, there)
	})
}

// A wave of an abort that finds no room on the source returns to the destination, and the abort goes later.
func TestAnAbortWithoutRoomIsTurned(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		before, there := s.state(s.source), s.names("destination")
		w := s.watched()
		s.planned()
		run(t, s.applyArgs()...).expect(t, done, "moved: 3 ordinals")
		p := start(t, s.args("abort")...)
		p.until("web-0 Release")
		p.signal(syscall.SIGKILL)
		p.end()
		q := &corev1.ResourceQuota{ObjectMeta: s.source.named("closed"), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
		reopen := s.put(s.source, q)
		s.eventually("the quota is counted", func(ctx context.Context) bool {
			return s.source.Get(ctx, client.ObjectKeyFromObject(q), q) == nil && len(q.Status.Used) > 0
		})
		p = start(t, s.args("abort")...)
		p.until("web-0 Grow")
		p.signal(syscall.SIGKILL)
		p.end()
		run(t, s.args("apply", "--yes")...).expect(t, done, "moved: 3 ordinals")
		s.arrived(before)
		reopen()
		run(t, s.args("abort")...).expect(t, done, "aborted")
		proper(t, w, 1)
		s.asBefore(before, there)
	})
}

// A set that has grown after its move is finalized with its new ordinals.
func TestAGrownSetIsFinalized(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		s.planned()
		run(t, s.applyArgs()...).expect(t, done, "moved: 3 ordinals")
		s.change(s.destination, &appsv1.StatefulSet{}, "web", `{"spec":{"replicas":5}}`)
		s.eventually("it has five", func(ctx context.Context) bool {
			var set appsv1.StatefulSet
			return s.destination.Get(ctx, s.destination.key("web"), &set) == nil && set.Status.AvailableReplicas == 5
		})
		run(t, s.args("verify")...).expect(t, done, "the destination also has the ordinals [3..4]")
		run(t, s.args("status")...).expect(t, done, "ordinals [3..4] of the destination were added by kubectl-edit")
		run(t, s.args("abort")...).expect(t, failed, "OrdinalsAdded", "no ordinal is scaled down")
		run(t, s.args("finalize")...).expect(t, done, "finalized")
		s.sliceIs(s.destination, s.start, 5)
		s.unmarked()
	})
}
