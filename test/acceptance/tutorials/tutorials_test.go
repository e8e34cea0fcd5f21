// Package tutorials_test runs the commands of the tutorials, of README and of all other pages, from those very files, on
// real control planes. After a block of commands a page may show a block of output: every line of it must be in what
// the commands have printed. A comment before a block says why it is not run (<!-- not run: REASON -->).
package tutorials_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
	"github.com/stsmigrate/stsmigrate/test/internal/today"
)

const (
	root = "../../.."
	home = "stsmigrate" // the namespace of what is installed

	pace    = 300 * time.Millisecond // how long a pod takes to start and to stop
	tooLong = 10 * time.Minute       // for one tutorial, on a busy machine
)

// programs are those that a tutorial installs: the pods of the bed run nothing, so the test runs them as processes,
// with the account of the Deployment.
func programs() map[string][]string {
	return map[string][]string{
		"orchestrator":    {"--metrics-bind-address=0", "--health-probe-bind-address=0", "--allow-loopback-clusters"},
		"slicecontroller": {"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0"},
	}
}

var bin string

func TestMain(m *testing.M) {
	fixture.Tests("tutorials", 2, func(ctx context.Context, dir string) (int, error) {
		bin = dir
		for program := range programs() {
			if _, err := fixture.Build(ctx, dir, program); err != nil {
				return 1, err
			}
		}
		if _, err := fixture.Build(ctx, dir, "stsmigrate"); err != nil {
			return 1, err
		}
		return m.Run(), nil
	})
}

// The first tutorial is played every day, and of the others a half each day. TUTORIALS=all plays all of them.
func TestTutorialsWorkAsTheyAreWritten(t *testing.T) {
	day, every := today.Day("TUTORIALS_DAY"), os.Getenv("TUTORIALS") == "all"
	pages, err := filepath.Glob(filepath.Join(root, "docs", "tutorials", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("found the pages %v (%v)", pages, err)
	}
	for n, page := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			if !every && (n+day)%2 == 1 && filepath.Base(page) != "namespace.md" {
				t.Skip("played tomorrow; TUTORIALS=all plays every tutorial")
			}
			t.Parallel() // they wait more than they compute
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			blocks := parse(string(text))
			if len(blocks) < 4 {
				t.Fatalf("%d blocks of commands were found", len(blocks))
			}
			b := newBench(t)
			b.compare(blocks, b.play(blocks))
		})
	}
}

// block is a block of commands, the comment before it, and the lines that the page shows of their output.
type block struct {
	commands, mark string
	shown          []string
}

// parse returns the blocks of a page.
func parse(text string) (out []block) {
	for _, m := range regexp.MustCompile("(?ms)^(?:<!-- ([^\n]*) -->\n)?```(sh|text)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		switch {
		case m[2] == "sh":
			out = append(out, block{commands: m[3], mark: m[1]})
		case len(out) > 0:
			out[len(out)-1].shown = strings.Split(strings.TrimSpace(m[3]), "\n")
		}
	}
	return out
}

// shows reports whether output has the line: "..." stands for anything, and spaces for any number of them.
func shows(output, line string) bool {
	var words []string
	for _, word := range strings.Fields(line) {
		words = append(words, strings.ReplaceAll(regexp.QuoteMeta(word), `\.\.\.`, `.*`))
	}
	return regexp.MustCompile(`(?m)^\s*` + strings.Join(words, `[^\S\n]+`)).MatchString(output)
}

func TestWhatAPageShows(t *testing.T) {
	got := parse("a\n```sh\nx\n```\nb\n```text\none   ... three\n\n```\n```sh\ny\n```\n```yaml\nz\n```\n")
	if len(got) != 2 || got[0].commands != "x\n" || len(got[0].shown) != 1 || got[1].shown != nil {
		t.Fatalf("parsed %+v", got)
	}
	for output, want := range map[string]bool{"one two  three\n": true, " one 2 three four": true, "one\nthree": false, "two three": false} {
		if shows(output, got[0].shown[0]) != want {
			t.Errorf("%q: expected %v", output, want)
		}
	}
}

// bench is two clusters, and a terminal.
type bench struct {
	*testing.T
	bed *cluster.Bed
	dir string // the current folder of the terminal
	env []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	bed, err := cluster.StartBed(ctx, "", cluster.Options{PodStart: pace, PodStop: pace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bed.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	kubectl, err := cluster.Program(ctx, "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	docs, err := filepath.Abs(filepath.Join(root, "docs"))
	if err := errors.Join(err, current(kubeconfig, bed), os.Symlink(docs, filepath.Join(dir, "docs"))); err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, bed: bed, dir: dir, env: append(os.Environ(), "COLUMNS=10000", "TMPDIR="+dir, "KUBECONFIG="+kubeconfig, "PATH="+bin+":"+filepath.Dir(kubectl)+":"+os.Getenv("PATH"))}
	for _, c := range []*cluster.Cluster{bed.East, bed.West} {
		b.ofCluster(c)
	}
	return b
}

// current writes a kubeconfig for both clusters, with east as the current one.
func current(path string, bed *cluster.Bed) error {
	if err := fixture.Kubeconfig(path, bed.East, bed.West); err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return err
	}
	config.CurrentContext = bed.East.Name
	config.Contexts["HOME"] = config.Contexts[bed.West.Name] // the pages' name for the cluster that keeps the plans
	return clientcmd.WriteToFile(*config, path)
}

// ofCluster gives a cluster what the tutorials ask of one, a default StorageClass, and runs there what they install.
func (b *bench) ofCluster(c *cluster.Cluster) {
	b.Helper()
	at, err := client.New(c.Config(), client.Options{Scheme: clusters.Scheme()})
	if err != nil {
		b.Fatal(err)
	}
	var class storagev1.StorageClass
	if err := at.Get(b.Context(), client.ObjectKey{Name: cluster.SharedClass}, &class); err != nil {
		b.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"storageclass.kubernetes.io/is-default-class":"true"}}}`))
	if err := at.Patch(b.Context(), &class, patch); err != nil {
		b.Fatal(err)
	}
	for program, flags := range programs() {
		go b.run(at, c, program, flags)
	}
}

// run waits until a Deployment of this name is there, and runs its program until the test ends.
func (b *bench) run(at client.Client, c *cluster.Cluster, program string, flags []string) {
	ctx := b.Context()
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return at.Get(ctx, client.ObjectKey{Namespace: home, Name: program}, &appsv1.Deployment{}) == nil, nil
	})
	if err != nil {
		return // the tutorial installs none
	}
	config, _, err := fixture.Credentials(ctx, at, c, home, program)
	if err != nil {
		b.Errorf("%s in %s: %v", program, c.Name, err)
		return
	}
	kubeconfig := filepath.Join(b.dir, program+"-"+c.Name)
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		b.Errorf("%s in %s: %v", program, c.Name, err)
		return
	}
	for ctx.Err() == nil {
		cmd := exec.CommandContext(ctx, filepath.Join(bin, program), append([]string{"--kubeconfig", kubeconfig}, flags...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			return
		}
		b.Logf("%s in %s ended, and is started again: %v\n%s", program, c.Name, err, out) // as a Deployment would
	}
}

// play runs the commands of a page, as a person would who stops at the first that fails. It returns what each block has
// printed.
func (b *bench) play(blocks []block) []string {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), tooLong)
	defer cancel()
	var script strings.Builder
	for n, part := range blocks {
		fmt.Fprintf(&script, "{ printf '\\n@@ %d\\n'; } 2>/dev/null\n%s", n, part.commands)
	}
	cmd := exec.CommandContext(ctx, "bash", "-euxo", "pipefail", "-c", script.String())
	cmd.Dir, cmd.Env, cmd.SysProcAttr = b.dir, b.env, &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel, cmd.WaitDelay = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }, 10*time.Second
	out, err := cmd.CombinedOutput()
	b.Logf("%s", out)
	if ctx.Err() != nil {
		b.Fatalf("the last command above does not end in %s: a block that does not end is marked <!-- run until: OUTPUT -->", tooLong)
	}
	if err != nil {
		b.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^@@ \d+\n`).Split(string(out), -1)[1:]
}

// compare looks for every line that the page shows.
func (b *bench) compare(blocks []block, printed []string) {
	b.Helper()
	if len(printed) != len(blocks) {
		b.Fatalf("%d of %d blocks have printed something", len(printed), len(blocks))
	}
	for n, part := range blocks {
		for _, line := range part.shown {
			if strings.TrimSpace(line) != "" && !shows(printed[n], line) {
				b.Errorf("the page shows %q, which is not in what its commands have printed:\n%s\n%s", line, part.commands, printed[n])
			}
		}
	}
}
