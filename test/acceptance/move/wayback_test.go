package move_test

import (
	"context"
	"regexp"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The old namespace was closed after the move: an abort is held with every ordinal up, and goes on once there is room (S18).
func TestAnAbortIntoAClosedNamespaceIsHeld(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		before, there := s.state(s.source), s.names("destination")
		w := s.watched()
		s.planned()
		run(t, s.applyArgs()...).expect(t, done, "moved: 3 ordinals")
		q := &corev1.ResourceQuota{ObjectMeta: s.source.named("closed"), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"persistentvolumeclaims": resource.MustParse("0")}}}
		mend := s.put(s.source, q)
		s.eventually("the quota is counted", func(ctx context.Context) bool {
			return s.source.Get(ctx, client.ObjectKeyFromObject(q), q) == nil && len(q.Status.Used) > 0
		})
		run(t, s.args("abort")...).expect(t, held, "no ordinal that serves leaves before this is fixed, or with --ignore claims-accepted,quota", "quota: ResourceQuota "+s.source.namespace+"/closed")
		s.ready(s.destination)
		mend()
		run(t, s.args("abort")...).expect(t, done, "aborted")
		proper(t, w, 1)
		s.asBefore(before, there)
	})
}

// The image was upgraded on the destination: an abort names both, is held with every ordinal up, and goes on with the word
// that it has printed.
func TestAnAbortAfterAnUpgradeIsHeld(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		s.planned()
		run(t, s.applyArgs()...).expect(t, done, "moved: 3 ordinals")
		patch := `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"web:2"}]`
		set := &appsv1.StatefulSet{ObjectMeta: s.destination.named("web")}
		if err := s.destination.Patch(t.Context(), set, client.RawPatch("application/json-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
		s.ready(s.destination)
		p := start(t, s.args("abort")...)
		p.until("spec.containers[web].image: web:2 -> web", "--other-template ")
		p.signal(syscall.SIGINT)
		said := p.end().expect(t, interrupted).stdout
		s.ready(s.destination)
		word := regexp.MustCompile(`--other-template ([0-9a-f]{8})`).FindStringSubmatch(said)
		run(t, s.args("abort", "--other-template", word[1])...).expect(t, done, "aborted")
		s.ready(s.source)
	})
}
