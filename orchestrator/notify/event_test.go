package notify

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stsmigrate/stsmigrate/plans"
)

func state(word string) State {
	return State{
		Home: "home-uid", Namespace: "stsmigrate", Plan: "web", Object: "object-uid", ID: "web-abc", Hash: "5e0d", State: plans.State(word), Direction: "Move",
		Source:      &Set{Cluster: "east-uid", Context: "east", Namespace: "shop", Name: "web", Kind: "StatefulSet"},
		Destination: &Set{Cluster: "west-uid", Context: "west", Namespace: "shop", Name: "web", Kind: "StatefulSet"},
		Ordinals:    3, MaxUnavailable: 1,
	}
}

// Every change of state is told once, under a word of its own.
func TestEveryChangeIsToldOnce(t *testing.T) {
	blocked := func(why string) State { s := state("Blocked"); s.Reason = why; return s }
	overdue := func(word string) State {
		s := state(word)
		s.Overdue, s.Reason = true, "volume a is attached"
		return s
	}
	failed := func(word string) State { s := state(word); s.Failed, s.Reason = true, "there is no set web"; return s }
	var last Mark
	ids := map[string]bool{}
	for k, c := range []struct {
		now  State
		want Change
	}{
		{state("Planning"), ""},
		{failed("Planning"), Failed},
		{state("Planning"), ""},
		{state("PlanReady"), Planned},
		{failed("PlanReady"), Failed},
		{state("Planned"), Approved},
		{state("Paused"), Paused},
		{state("Planned"), Approved},
		{state("Moving"), Begun},
		{state("Waiting"), ""}, // its process has died
		{state("Moving"), ""},
		{overdue("Moving"), Overdue},
		{overdue("Moving"), ""},
		{state("Moving"), Resumed},
		{blocked("a claim is in the way"), Blocked},
		{blocked("a claim is in the way"), ""},
		{state("Moving"), Resumed},
		{state("Moving"), ""},
		{blocked("a claim is in the way"), Blocked},
		{blocked("a volume is gone"), Blocked},
		{state("Unreadable"), Unreadable},
		{state("Aborting"), Aborting},
		{overdue("Aborting"), Overdue},
		{state("Aborting"), Aborting},
		{state("Aborted"), Aborted},
		{state("Split"), Split},
		{state("Moving"), Resumed},
		{state("Moved"), Moved},
		{state("Finalizing"), Finalizing},
		{state("Finalized"), Finalized},
		{state("Finalized"), ""},
	} {
		e, news := Next(last, c.now, time.Unix(int64(k), 0))
		if news != (c.want != "") || e.Data.Change != c.want || news && e.Type != TypePrefix+string(c.want) {
			t.Fatalf("%d, %s after %s: %v %+v, expected %q", k, c.now.State, last.Change, news, e, c.want)
		}
		if !news {
			continue
		}
		again, _ := Next(last, c.now, time.Unix(int64(k)+1000, 0))
		if again.ID != e.ID {
			t.Errorf("%d: another process tells the same change under another id", k)
		}
		if ids[e.ID] {
			t.Errorf("%d: two changes have one id", k)
		}
		ids[e.ID] = true
		mark, object := e.Mark()
		if mark.Sequence != last.Sequence+1 || object != "object-uid" || e.Data.Previous != last.Change {
			t.Errorf("%d: %+v after %+v", k, mark, last)
		}
		last = mark
	}
}

// An object that was deleted and created under the same name has events of its own.
func TestAnotherObjectHasOtherIDs(t *testing.T) {
	one, other := state("Moving"), state("Moving")
	other.Object = "another-uid"
	a, _ := Next(Mark{}, one, time.Time{})
	b, _ := Next(Mark{}, other, time.Time{})
	if a.ID == b.ID {
		t.Error("two objects have one id")
	}
}

// The published schema describes what is sent: every kind of change, with all fields and with few.
func TestEventsAreAsTheSchemaSays(t *testing.T) {
	const file = "../../docs/schemas/notification.schema.json"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	valid := func(e Event) error {
		body, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(doc)
	}
	seen := []Change{}
	for _, word := range []string{"Planning", "PlanReady", "Planned", "Moving", "Blocked", "Paused", "Moved", "Split", "Finalized", "Aborted", "Aborting", "Finalizing", "Unreadable"} {
		for _, last := range append([]Change{""}, Changes()...) {
			full := state(word)
			full.Reason, full.ReasonID, full.Next = "why", "SetDiffers", "stsmigrate status web"
			overdue, failed, bare := full, full, State{Home: "h", Namespace: "n", Plan: "p", Object: "o", State: plans.State(word), Failed: true}
			overdue.Overdue, failed.Failed = true, true
			for _, s := range []State{full, overdue, failed, bare} {
				e, news := Next(Mark{Sequence: 3, Change: last}, s, time.Unix(1000, 0))
				if !news {
					continue
				}
				if err := valid(e); err != nil {
					t.Errorf("%s: %v", word, err)
				}
				seen = append(seen, e.Data.Change)
			}
		}
	}
	for _, change := range Changes() {
		if !slices.Contains(seen, change) || !bytes.Contains(raw, []byte(`"`+string(change)+`"`)) {
			t.Errorf("%s was not tried, or is not in the schema", change)
		}
	}
	e, _ := Next(Mark{}, state("Moving"), time.Unix(1000, 0))
	e.Type, e.Data.Change = "exploded", "It exploded"
	if valid(e) == nil {
		t.Error("the schema accepts what is no change")
	}
}

// The page about notifications has a row for each change, and no other.
func TestThePageHasEveryChange(t *testing.T) {
	page, err := os.ReadFile("../../docs/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllSubmatch(page, -1) {
		have = append(have, string(m[1]))
	}
	var want []string
	for _, change := range Changes() {
		want = append(want, string(change))
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("docs/notifications.md has %v, expected %v", have, want)
	}
}
