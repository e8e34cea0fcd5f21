package repo

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

// ofOrchestrator returns the reasons of the Events that the orchestrator writes.
func ofOrchestrator(t *testing.T) []string {
	t.Helper()
	constant := regexp.MustCompile(`(?m)^(?:const|\t)\s*(\w+)\s+= "(\w+)"`)
	told := regexp.MustCompile(`(?:tell\(|Events\.Event\(.*, ?)corev1\.EventType\w+, (?:string\(reasons\.(\w+)|"(\w+)"|(\w+),)`)
	values, found := map[string]string{}, map[string]bool{}
	var names []string
	product(t, func(path string, text []byte) {
		if !strings.HasPrefix(path, "orchestrator/") {
			return
		}
		for _, m := range constant.FindAllStringSubmatch(string(text), -1) {
			values[m[1]] = m[2]
		}
		for _, m := range told.FindAllStringSubmatch(string(text), -1) {
			found[m[1]+m[2]] = true // of an alternative that does not match there is nothing
			names = append(names, m[3])
		}
	})
	for _, name := range names {
		found[values[name]] = true
	}
	for _, outcome := range []plans.Outcome{plans.Moved, plans.Split, plans.Finalized, plans.Aborted} {
		found[string(outcome)] = true
	}
	delete(found, "")
	return sorted(found)
}

// ofSliceController returns the reasons of the Events that the slice controller writes.
func ofSliceController(t *testing.T) []string {
	t.Helper()
	literal := regexp.MustCompile(`(?:Event|Fault)\{\s*(?:Type: [\w.]+, )?Reason: "?([A-Z]\w+)|f\.Reason, f\.Passing = "(\w+)"`)
	verb := regexp.MustCompile(`tellOf\("(\w+)"`)
	found := map[string]bool{}
	product(t, func(path string, text []byte) {
		if !strings.HasPrefix(path, "slicecontroller/") {
			return
		}
		for _, m := range literal.FindAllStringSubmatch(string(text), -1) {
			found[m[1]+m[2]] = true
		}
		for _, m := range verb.FindAllStringSubmatch(string(text), -1) {
			found["Successful"+m[1]], found["Failed"+m[1]] = true, true
		}
	})
	delete(found, "Successful") // the verb is added
	return sorted(found)
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

func TestThePageOfEventsHasEveryReason(t *testing.T) {
	page := pages(t)["docs/events.md"]
	for heading, want := range map[string][]string{"Of the orchestrator": ofOrchestrator(t), "Of the slice controller": ofSliceController(t)} {
		have := firstCells(section(t, page, heading))
		slices.Sort(have)
		if len(want) < 10 || !slices.Equal(have, want) {
			t.Errorf("%q of docs/events.md has\n%v\nexpected\n%v", heading, have, want)
		}
	}
}
