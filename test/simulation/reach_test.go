package simulation

import (
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

// While nothing is reached from the place of an ordinal, all ordinals stay up, in both directions and modes. When it is, the
// move ends as any other, and a death at any write changes nothing in that.
func TestAPartitionIsFoundBeforeAnOrdinalLeaves(t *testing.T) {
	t.Parallel()
	for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
		for _, mode := range modes() {
			for _, proof := range []plans.Proof{plans.Scheduled, plans.Warm} {
				sc := placed(threeOrdinals(mode), proof)
				sc.Reach = []string{"db.shop.svc:5432"}
				if mode == plans.Rebind {
					sc.Reach = append(sc.Reach, "peers:80")
				}
				w := readyFor(t, sc, direction)
				w.checked = false
				from := w.origin(direction)
				w.partitioned = true
				e, err := w.process().takeOver(t.Context(), direction)
				if err != nil {
					t.Fatal(err)
				}
				got := waitsFor(t, w, e)
				if !strings.Contains(got.Reason, "are not reached") || !strings.Contains(got.Reason, "no such host") || w.up(from) != sc.Ordinals {
					t.Errorf("%s %s %s: %+v, and %d of %d serve where they were", mode, direction, proof, got, w.up(from), sc.Ordinals)
				}
				unbroken(t, w)
				w.partitioned = false
				walk(t, w, direction, nil)
				w.rest()
				if left := len(w.placeholders(plans.Source)) + len(w.placeholders(plans.Destination)); left > 0 {
					t.Errorf("%d placeholders are left", left)
				}
			}
		}
	}
}
