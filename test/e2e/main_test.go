//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stsmigrate/stsmigrate/test/e2e/bed"
)

// suite holds what the tests share.
var suite struct {
	dir    string
	binary string // stsmigrate
	bed    *bed.Bed
	up     sync.Once
	rows   []row
	suffix string // of namespaces, on a bed that other runs have used
}

// row is a line of the summary.
type row struct {
	scenario     string
	ordinals, d  int
	wall         time.Duration
	down         time.Duration // longest of one ordinal
	gap          time.Duration // longest time without an answer to a client
	acknowledged int           // acknowledged writes, or records on the volumes
	lost         int
	notes        []string // a line for each ordinal, or fault
}

// note stores a line and prints it.
func (r *row) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	fmt.Println("  " + line)
	r.notes = append(r.notes, line)
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if suite.dir, err = os.MkdirTemp("", "stsmigrate-e2e-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(suite.dir)) }()
	suite.binary = filepath.Join(suite.dir, "stsmigrate")
	if _, err := command("../..", "go", "build", "-o", suite.binary, "./cmd/stsmigrate"); err != nil {
		return 1, err
	}
	defer func() {
		if suite.bed != nil && os.Getenv("E2E_BED") == "" {
			err = errors.Join(err, suite.bed.Down())
		}
	}()
	code = m.Run()
	fmt.Print(summary())
	if file := os.Getenv("E2E_RESULTS"); file != "" && code == 0 && len(suite.rows) > 0 {
		err = report(file)
	}
	return code, err
}

// report writes the results of a run to a file.
func report(file string) error {
	commit, err := command("../..", "git", "describe", "--always", "--dirty")
	if err != nil {
		return err
	}
	version, err := suite.bed.East.Set.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	var b strings.Builder
	how := "make e2e RESULTS=docs/results/" + filepath.Base(file)
	if only := flag.Lookup("test.run").Value.String(); only != "" {
		how += "`, of its tests only `" + only
	}
	subject := strings.TrimSuffix(filepath.Base(file), ".md")
	if subject == "e2e" {
		subject = "moves"
	}
	fmt.Fprintf(&b, "# What the end-to-end tests measured: %s\n\n`%s`, at commit %s, Kubernetes %s, %d cores, %s.\n\n", subject, how, strings.TrimSpace(commit), version.GitVersion, runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly))
	b.WriteString("| scenario | ordinals | d | wall time | longest down | client gap | acknowledged | lost |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range suite.rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r.cells(), " | "))
	}
	b.WriteString("\n" +
		"- *Longest down*: the longest time for which an ordinal was ready on neither side, with the faults that the tests\n" +
		"  injected. A dash stands for a set that is a StatefulSetSlice on one side, which is not timed yet. Its client gap\n" +
		"  is comparable.\n" +
		"- *Client gap*: the longest time without an answer to any call of the client. For the application named data, which\n" +
		"  has a volume and one client per member, it is the longest time without an answer under one member's name.\n" +
		"- *Acknowledged*: writes of the client, or records on the volumes. All of them were looked for in the end. The\n" +
		"  histories of etcd's clients are linearizable.\n")
	for _, r := range suite.rows {
		if len(r.notes) > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n- %s\n", r.scenario, strings.Join(r.notes, "\n- "))
		}
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// clusters returns the bed. The first test that needs the bed creates it.
func clusters(t *testing.T) *bed.Bed {
	t.Helper()
	suite.up.Do(func() {
		var err error
		if dir := os.Getenv("E2E_BED"); dir != "" { // created by make kind, and not removed
			suite.suffix = fmt.Sprintf("-%x", time.Now().Unix()&0xfffff)
			if suite.bed, err = bed.Open(dir); err != nil {
				t.Fatal(err)
			}
			return
		}
		began := time.Now()
		if suite.bed, err = bed.Up(context.Background(), filepath.Join(suite.dir, "bed")); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("two kind clusters ready in %s\n", time.Since(began).Round(time.Second))
	})
	if suite.bed == nil {
		t.Fatal("there are no clusters")
	}
	return suite.bed
}

func summary() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SCENARIO\tORDINALS\tD\tWALL TIME\tLONGEST DOWN\tCLIENT GAP\tACKNOWLEDGED\tLOST")
	for _, r := range suite.rows {
		fmt.Fprintln(w, strings.Join(r.cells(), "\t"))
	}
	_ = w.Flush()
	return b.String()
}

// cells returns what a table says about a row.
func (r row) cells() []string {
	down := "-"
	if r.down > 0 {
		down = fmt.Sprintf("%.1f s", r.down.Seconds())
	}
	return []string{
		r.scenario, fmt.Sprint(r.ordinals), fmt.Sprint(r.d), fmt.Sprintf("%.1f s", r.wall.Seconds()), down,
		fmt.Sprintf("%.1f s", r.gap.Seconds()), fmt.Sprint(r.acknowledged), fmt.Sprint(r.lost),
	}
}

func command(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out.Bytes())
	}
	return out.String(), nil
}
