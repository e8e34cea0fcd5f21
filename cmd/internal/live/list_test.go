package live

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A list that is watched shows what is new, what has changed, and what is gone, and nothing twice.
func TestAWatchedListShowsWhatHasChanged(t *testing.T) {
	at := func(name string, state plans.State) records.Listed {
		return records.Listed{Namespace: "shop", Name: name, State: state}
	}
	before := []records.Listed{at("a", "Moving"), at("b", "Paused"), at("c", "Moved")}
	after := []records.Listed{at("a", "Moved"), at("b", "Paused"), at("d", "Planned")}
	want := []records.Listed{at("a", "Moved"), at("d", "Planned"), at("c", "Gone")}
	if diff := cmp.Diff(want, Changed(before, after)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Changed(after, after); len(got) != 0 {
		t.Errorf("nothing has changed: %+v", got)
	}
	further := at("b", "Paused")
	further.Moved = 2
	if got := Changed(after, []records.Listed{after[0], further, after[2]}); len(got) != 1 || got[0].Moved != 2 {
		t.Errorf("an ordinal more has moved: %+v", got)
	}
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	if got := Row(at("a", "Moved"), now, false); got != "shop   a   Moved   ?   -   ?   ?\n" {
		t.Errorf("%q", got)
	}
	further.Ordinals, further.Begun = 5, &metav1.Time{Time: now.Add(-90 * time.Minute)}
	if got := Row(further, now, false); got != "shop   b   Paused   2 of 5   90m   ?   ?\n" {
		t.Errorf("%q", got)
	}
}
