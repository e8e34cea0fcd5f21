package draft

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

func TestAPlanIsWrittenWhereItIsAskedFor(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	plan := "kind: " + plans.PlanKind + "\n"
	former, real, other := write("former", plan, 0o644), write("real", plan, 0o600), write("other", "kind: Pod\n", 0o600)
	link := filepath.Join(folder, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	for out, want := range map[string]struct {
		file string
		mode os.FileMode
	}{
		filepath.Join(folder, "new"): {filepath.Join(folder, "new"), 0o600},
		former:                       {former, 0o644},
		link:                         {real, 0o600},
	} {
		f := Flags{Out: out}
		if err := f.Save(&plans.Plan{Kind: plans.PlanKind, Name: "web"}); err != nil {
			t.Errorf("%s: %v", out, err)
		}
		raw, err := os.ReadFile(want.file)
		if err != nil || !strings.Contains(string(raw), "name: web") {
			t.Errorf("%s: %q (%v)", out, raw, err)
		}
		if found, err := os.Lstat(want.file); err != nil || found.Mode() != want.mode {
			t.Errorf("%s: %s (%v), expected %s", out, found.Mode(), err, want.mode)
		}
	}
	if found, err := os.Lstat(link); err != nil || found.Mode().IsRegular() {
		t.Errorf("the link is a file now (%v)", err)
	}
	if err := (&Flags{Out: other}).Save(&plans.Plan{}); err == nil || !strings.Contains(err.Error(), "which is no plan") {
		t.Error(err)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 5 {
		t.Errorf("%v (%v), expected 5 files", left, err)
	}
}

// The last line of a plan is the command that carries it out: by whom its user has said.
func TestTheNextCommandHandsThePlanOver(t *testing.T) {
	for want, hand := range map[string]func(*Flags){
		"stsmigrate apply web.yaml --kubeconfig k":                                                 func(*Flags) {},
		"stsmigrate apply web.yaml --detach --kubeconfig k":                                        func(f *Flags) { f.HandTo("stsmigrate", "") },
		"stsmigrate apply web.yaml --detach --home-context home --home-namespace a --kubeconfig k": func(f *Flags) { f.HandTo("a", "home") },
	} {
		f := Flags{Out: "web.yaml"}
		hand(&f)
		if got := f.Next(" --kubeconfig k"); got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
}
