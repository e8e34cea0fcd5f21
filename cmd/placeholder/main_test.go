//go:build unix

package main

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/placeholder/waiting"
)

// TestMain lets the test's own program be the one that is tested, in a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv("PLACEHOLDER_RUN") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func started(t *testing.T, path string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = []string{"PLACEHOLDER_RUN=1"}
	return cmd
}

func itself(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// It needs the standard library and nothing else: a node pulls it before anything of the application is there.
func TestItIsOfTheStandardLibrary(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(string(out)) {
		first, _, _ := strings.Cut(p, "/")
		if strings.Contains(first, ".") && !strings.HasPrefix(p, "github.com/stsmigrate/stsmigrate/cmd/placeholder") && p != "github.com/stsmigrate/stsmigrate/internal/placeholder/waiting" {
			t.Errorf("it needs %s", p)
		}
	}
}

// What it has installed can be run by anybody, also where an earlier copy is.
func TestItInstallsItself(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	dir := t.TempDir()
	for range 2 {
		if out, err := started(t, itself(t), "install", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	all, err := os.ReadDir(dir)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v %v", all, err)
	}
	info, err := all[0].Info()
	if err != nil || info.Name() != waiting.Name || info.Mode().Perm() != 0o755 {
		t.Errorf("%s %v %v", info.Name(), info.Mode(), err)
	}
	out, err := started(t, filepath.Join(dir, waiting.Name), "--version").Output()
	if err != nil || !strings.HasPrefix(string(out), "placeholder ") {
		t.Errorf("%q %v", out, err)
	}
	if out, err := started(t, itself(t), "install", filepath.Join(dir, "none")).CombinedOutput(); err == nil || !strings.Contains(string(out), "none") {
		t.Errorf("%v %s", err, out)
	}
}

// It ends at once with whatever signal its image names, and by none of those that tell of something else.
func TestItWaitsForASignal(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGWINCH, syscall.SIGHUP, syscall.SIGUSR1} {
		cmd := started(t, itself(t), "wait")
		awake, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(awake).ReadString('\n'); err != nil || line != "waiting\n" {
			t.Fatalf("%q %v", line, err)
		}
		for _, other := range []syscall.Signal{syscall.SIGCHLD, syscall.SIGURG, syscall.SIGCONT, s} {
			if err := cmd.Process.Signal(other); err != nil {
				t.Errorf("%v: %v, it has ended too early", other, err)
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", s, err)
		}
	}
}

// It writes what it has seen, and fails if something is not reached, unless it is told to report only.
func TestItTellsWhatItReaches(t *testing.T) {
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	yes, no := open.Addr().String(), closed.Addr().String()
	for name, c := range map[string]struct {
		args    []string
		fails   bool
		reached int
	}{
		"all":      {args: []string{yes}, reached: 1},
		"one":      {args: []string{yes, no}, fails: true, reached: 1},
		"none":     {args: []string{no}, fails: true},
		"reported": {args: []string{"-report", no}},
		"no peer":  {args: []string{"--"}},
	} {
		message := filepath.Join(t.TempDir(), "message")
		args := append([]string{"reach", "-for", "0s", "-to", message}, c.args...)
		out, err := started(t, itself(t), args...).CombinedOutput()
		if (err != nil) != c.fails {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		raw, err := os.ReadFile(message)
		if err != nil {
			t.Fatal(err)
		}
		got, err := waiting.Decode(string(raw))
		if err != nil || got.Reached != c.reached || len(got.Each) != got.Asked {
			t.Errorf("%s: %s %v", name, raw, err)
		}
		if c.reached < got.Asked && (got.Each[0].Target != no || !strings.Contains(got.Each[0].Error, "refused") || got.Each[0].Addresses[0] != "127.0.0.1") {
			t.Errorf("%s: %s", name, raw)
		}
	}
	for _, args := range [][]string{nil, {"install"}, {"wait", "now"}, {"reach"}, {"reach", "-for", "x"}, slices.Concat([]string{"reach", "--"}, slices.Repeat([]string{yes}, waiting.MaxTargets+1))} {
		if out, err := started(t, itself(t), args...).CombinedOutput(); err == nil {
			t.Errorf("%q: %s", args, out)
		}
	}
}
