package reasons_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

var update = flag.Bool("update", false, "write ids.go and docs/reasons.md anew") //nolint:gochecknoglobals // a flag of the test

func table(t *testing.T) []reasons.Explanation {
	t.Helper()
	all, err := reasons.Table()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ids returns ids.go as it is made of the table.
func ids(all []reasons.Explanation) string {
	var b strings.Builder
	b.WriteString("package reasons\n\n// ID names a reason. Its form is that of a reason of a Kubernetes condition or Event.\ntype ID string\n")
	for k, e := range all {
		if k == 0 || all[k-1].Topic != e.Topic {
			fmt.Fprintf(&b, "\n// The reasons in table/%s.yaml, from which they are made: go test ./internal/reasons -update\nconst (\n", e.Topic)
		}
		fmt.Fprintf(&b, "%s ID = %q\n", e.ID, e.ID)
		if k == len(all)-1 || all[k+1].Topic != e.Topic {
			b.WriteString(")\n")
		}
	}
	return b.String()
}

func TestTheIDsAreMadeOfTheTable(t *testing.T) {
	const file = "ids.go"
	want, err := format.Source([]byte(ids(table(t))))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is not as generated (%v): go test ./internal/reasons -update", file, err)
	}
}

// used returns the IDs that the program attaches to a reason.
func used(t *testing.T) map[string]bool {
	t.Helper()
	out, mention := map[string]bool{}, regexp.MustCompile(`\breasons\.([A-Z]\w+)`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "test" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		raw, err := os.ReadFile(path)
		for _, m := range mention.FindAllStringSubmatch(string(raw), -1) {
			out[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// An ID that no code attaches misleads a user at night. One without an explanation does not exist.
func TestEveryIDIsExplainedOnceAndUsed(t *testing.T) {
	mentions, explained := used(t), map[reasons.ID]bool{}
	for _, e := range table(t) {
		if explained[e.ID] {
			t.Errorf("%s is explained twice", e.ID)
		}
		if explained[e.ID] = true; !mentions[string(e.ID)] {
			t.Errorf("no code attaches %s to a reason", e.ID)
		}
	}
}

// Conditions and Events of Kubernetes accept these words as their reason.
func TestEveryExplanationIsComplete(t *testing.T) {
	word := regexp.MustCompile(`^[A-Z][A-Za-z]{3,40}$`)
	for _, e := range table(t) {
		if !word.MatchString(string(e.ID)) || !strings.HasSuffix(e.What, ".") || !strings.HasSuffix(e.Unchanged, ".") || len(e.Do) == 0 {
			t.Errorf("%+v: expected an ID of letters, two sentences, and a command", e)
		}
		for _, a := range e.Do {
			if a.Run == "" || a.Why == "" || !strings.HasPrefix(a.Run, "stsmigrate ") && !strings.HasPrefix(a.Run, "kubectl ") {
				t.Errorf("%s: %+v: expected a command of stsmigrate or kubectl, and what it is for", e.ID, a)
			}
		}
	}
}

// A deletion cannot be undone, and an object that is in use does not go by itself: the steps make it go where that is
// needed, and recreate it, before they let the plan continue.
func TestWhatWasDeletedIsRecreatedBeforeThePlanContinues(t *testing.T) {
	for id, steps := range map[reasons.ID][]string{
		reasons.VolumeDeleted:      {"> volume.yaml", `{"finalizers":null}`, "create -f volume.yaml", "stsmigrate resume"},
		reasons.SharedClaimDeleted: {"delete pod", "/spec/claimRef/uid", "create -f claim.json", "stsmigrate resume"},
		reasons.SetDeleted:         {"/spec/claimRef/uid", "apply -f SET.yaml", "stsmigrate resume"},
		reasons.ClaimRecreated:     {"/spec/claimRef/uid", "delete pvc", "delete pod", "stsmigrate resume"},
	} {
		e, _ := reasons.Find(table(t), string(id))
		text := e.Text()
		for _, s := range steps {
			_, after, found := strings.Cut(text, s)
			if !found {
				t.Errorf("%s: no step has %q after the ones before it: %s", id, s, e.Text())
				break
			}
			text = after
		}
	}
}

func TestAReasonIsFoundInAnyCase(t *testing.T) {
	e, ok := reasons.Find(table(t), "claimmounted")
	if !ok || e.ID != reasons.ClaimMounted || !strings.Contains(e.Text(), "What is unchanged:") {
		t.Errorf("%v, %+v", ok, e)
	}
	if e, ok := reasons.Find(table(t), "claim"); ok {
		t.Errorf("a part of an ID finds %s", e.ID)
	}
}

func TestAnErrorKeepsItsIDWhenItIsWrapped(t *testing.T) {
	cause := errors.New("full")
	err := fmt.Errorf("writing: %w", reasons.Because(reasons.WaitsForRoom, cause))
	if reasons.Of(err) != reasons.WaitsForRoom || !errors.Is(err, cause) || err.Error() != "writing: full" {
		t.Errorf("%v with ID %q", err, reasons.Of(err))
	}
	if reasons.Of(cause) != "" || reasons.Because(reasons.WaitsForRoom, nil) != nil {
		t.Error("an error without an ID has one, or no error has become one")
	}
	if got := reasons.Tagged(reasons.Paused, "it rests"); got != "it rests [Paused]" {
		t.Error(got)
	}
	if got := reasons.Tagged("", "it rests"); got != "it rests" {
		t.Error(got)
	}
}

func TestThePageIsMadeOfTheTable(t *testing.T) {
	const page = "../../docs/reasons.md"
	want := reasons.Page(table(t))
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil || string(have) != want {
		t.Errorf("%s is not as generated (%v): go test ./internal/reasons -update", page, err)
	}
}
