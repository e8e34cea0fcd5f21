package live

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stsmigrate/stsmigrate/records"
)

// A list that is watched shows what is new, what has changed, and what is gone, and nothing twice.
func TestAWatchedListShowsWhatHasChanged(t *testing.T) {
	at := func(name, state string) records.Listed {
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
	if got := Row(at("a", "Moved"), false); got != "shop   a   Moved   ?   ?\n" {
		t.Errorf("%q", got)
	}
}
