package plans

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What an earlier release has written is read: every plan and journal in testdata. A file of
// another version of the format is refused with a sentence.
func TestWhatEarlierReleasesHaveWrittenIsRead(t *testing.T) {
	files, err := filepath.Glob("testdata/plan-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := DecodePlan(raw)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if _, err := DecodePlan([]byte(strings.Replace(string(raw), APIVersion, "stsmigrate.dev/v9", 1))); err == nil || !strings.Contains(err.Error(), "is of version") {
			t.Errorf("%s, of a later version: %v", file, err)
		}
		release := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "plan-"), ".yaml")
		if raw, err = os.ReadFile("testdata/journal-" + release + ".json"); err != nil {
			t.Fatal(err)
		}
		j, err := DecodeJournal(raw, p)
		if err != nil {
			t.Fatalf("%s: the journal of %s: %v", file, release, err)
		}
		if j.Plan != p.ID || j.Leg.End != p.End() {
			t.Errorf("%s: %+v", file, j)
		}
		if _, err := DecodeJournal([]byte(strings.Replace(string(raw), APIVersion, "stsmigrate.dev/v9", 1)), p); err == nil || !strings.Contains(err.Error(), "version") {
			t.Errorf("%s, of a later version: %v", file, err)
		}
	}
}
