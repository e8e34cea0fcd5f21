//go:build e2e

// Package walkthrough runs the commands of docs/walkthrough.md, from that very file.
package walkthrough

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

const root = "../../.."

var block = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

func TestTheWalkthroughWorksAsItIsWritten(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "walkthrough.md"))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, b := range block.FindAllSubmatch(text, -1) {
		script.Write(b[1])
	}
	if n := strings.Count(script.String(), "stsmigrate "); n < 5 {
		t.Fatalf("%d commands of stsmigrate were found in the file", n)
	}
	kubectl, err := cluster.Program(t.Context(), "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shell(context.WithoutCancel(t.Context()), "make kind-down", "").Run() }) // also when it fails half way
	cmd := shell(t.Context(), script.String(), filepath.Dir(kubectl))
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Nothing has been written", "stopped; no ordinal is in flight", "moved: 3 ordinals", "finalized"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output does not have %q", want)
		}
	}
	// Nothing went wrong on any volume, before or after.
	states := regexp.MustCompile(`"Wrong":(\S+?),"Names"`).FindAllSubmatch(out, -1)
	if len(states) != 2 {
		t.Errorf("%d members were asked for their state, expected 2", len(states))
	}
	for _, s := range states {
		if string(s[1]) != "null" {
			t.Errorf("a member says that something went wrong: %s", s[1])
		}
	}
}

// shell is a script that ends with the first command that fails, as a person would.
func shell(ctx context.Context, script, tools string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-euxo", "pipefail", "-c", script)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"))
	return cmd
}
