package move_test

import (
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// A large set with three volumes per ordinal moves to the other cluster and back. Three ordinals move
// together, as many as may be down, and the witness finds no violation (3335-14).
func TestThirtyOrdinalsMoveThereAndBack(t *testing.T) {
	if os.Getenv("MOVE_LARGE") == "" {
		t.Skip("two minutes of its own: `make large` runs it")
	}
	t.Parallel()
	for _, policy := range []appsv1.PodManagementPolicyType{appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			tenth, always := intstr.FromString("10%"), policyv1.AlwaysAllow
			s := newMigration(t, reimport, options{replicas: 30, budget: &tenth, set: func(set *appsv1.StatefulSet) {
				set.Spec.PodManagementPolicy = policy
				set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, newClaim("index", cluster.SharedClass))
				c := &set.Spec.Template.Spec.Containers[0]
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "index", MountPath: "/index"})
			}})
			s.change(s.source, &policyv1.PodDisruptionBudget{}, "web", `{"spec":{"unhealthyPodEvictionPolicy":"`+string(always)+`"}}`)
			before := s.state(s.source)
			same(t, "claims", 90, len(before.Volumes))
			s.moveAll(before)
			back := &migration{t: t, mode: reimport, replicas: s.replicas, planFile: s.file(""), source: s.destination, destination: s.source}
			back.moveAll(before)
		})
	}
}

// moveAll moves a set completely, three ordinals at a time.
func (s *migration) moveAll(before state) {
	s.t.Helper()
	w := s.watchedInWaves(3)
	run(s.t, s.planArgs("--window", "3")...).expect(s.t, done, "3 ordinals move together", "27..29")
	run(s.t, s.applyArgs()...).expect(s.t, done, "web-27..29 Shrink", "web-0..2 Relax", "moved: 30 ordinals")
	run(s.t, s.args("finalize")...).expect(s.t, done, "finalized")
	proper(s.t, w, 3)
	s.ready(s.destination)
	s.settled(before)
}
