package journal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Every plan and journal of testdata is read: each format has one of its own. A file of another version of the format
// is refused with a sentence, and so is a journal of release 0.1, which had no format yet.
func TestFilesOfEveryFormatAreRead(t *testing.T) {
	files, err := filepath.Glob("testdata/plan-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plans.DecodePlan(raw)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if _, err := plans.DecodePlan([]byte(strings.Replace(string(raw), plans.APIVersion, "stsmigrate.dev/v9", 1))); err == nil || !strings.Contains(err.Error(), "is of version") {
			t.Errorf("%s, of a later version: %v", file, err)
		}
		format := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "plan-"), ".yaml")
		if raw, err = os.ReadFile("testdata/journal-" + format + ".json"); err != nil {
			t.Fatal(err)
		}
		j, err := Decode(raw, p)
		if err != nil {
			t.Fatalf("%s: the journal of %s: %v", file, format, err)
		}
		if j.Plan != p.ID || j.Leg.End != p.End() {
			t.Errorf("%s: %+v", file, j)
		}
		if _, err := Decode([]byte(strings.Replace(string(raw), plans.APIVersion, "stsmigrate.dev/v9", 1)), p); err == nil || !strings.Contains(err.Error(), "version") {
			t.Errorf("%s, of a later version: %v", file, err)
		}
		refusesEarly(t, p)
	}
}

// refusesEarly requires that a journal of release 0.1 is refused, with and without the hash of the plan.
func refusesEarly(t *testing.T, p *plans.Plan) {
	t.Helper()
	raw, err := os.ReadFile("testdata/early-0.1.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(raw), strings.Replace(string(raw), `"epoch"`, `"hash":"`+p.Hash+`","epoch"`, 1)} {
		if _, err := Decode([]byte(text), p); err == nil || !strings.Contains(err.Error(), "was written by stsmigrate 0.1") {
			t.Errorf("a journal of release 0.1: %v", err)
		}
	}
}
