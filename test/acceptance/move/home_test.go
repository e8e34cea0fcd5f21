package move_test

import (
	"path/filepath"
	"testing"

	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

// A plan is kept on its destination. Who names the source, as in the plan that they made, is led there by the mark on the
// set, also in another cluster of the kubeconfig. Where no set has a mark, nothing is searched.
func TestTheMarkOnTheSetLeadsToThePlan(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		both := filepath.Join(t.TempDir(), "kubeconfig")
		if err := fixture.Kubeconfig(both, bed.East, bed.West); err != nil {
			t.Fatal(err)
		}
		of := func(on *end, args ...string) []string {
			return append(args, "--kubeconfig", both, "--context", on.cluster.Name, "-n", on.namespace)
		}
		s.planned()
		run(t, of(s.source, "status", "web")...).expect(t, failed, "there is no plan web in namespace "+s.source.namespace)
		run(t, append(s.applyArgs(), "--pause-after", "1")...).expect(t, done, "paused before web-0")
		run(t, of(s.destination, "status", "web")...).expect(t, done, "Paused")
		run(t, of(s.source, "status", "web")...).expect(t, done, "Paused", "-n "+s.destination.namespace+" --context "+s.destination.cluster.Name)
		before := s.versions()
		for _, args := range [][]string{of(s.source, "pause", "web"), of(s.source, "resume", "web", "--yes"), of(s.source, "abort", "web", "--yes")} {
			run(t, append(args, "--dry-run=client")...).expect(t, done, "dry run: nothing was written")
		}
		run(t, of(s.source, "pause", "web", "--dry-run=server")...).expect(t, done, "nothing was stored")
		same(t, "what is stored", before, s.versions())
		run(t, of(s.source, "status", "other")...).expect(t, failed, "there is no plan other")
		run(t, of(s.source, "resume", "web", "--yes")...).expect(t, done, "moved: 2 ordinals")
		run(t, of(s.source, "finalize", "web", "--yes")...).expect(t, done, "finalized")
		run(t, of(s.source, "status", "web")...).expect(t, failed, "there is no plan web")
	})
}
