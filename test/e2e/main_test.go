//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stsmigrate/stsmigrate/test/e2e/bed"
)

// suite is what the tests share.
var suite struct {
	dir    string
	binary string // stsmigrate
	bed    *bed.Bed
	up     sync.Once
	rows   []row
	suffix string // of namespaces, on a bed that has had other runs
}

// row is a line of the summary.
type row struct {
	scenario     string
	ordinals, d  int
	wall         time.Duration
	down         time.Duration // longest of one ordinal
	gap          time.Duration // longest that a client was without an answer
	acknowledged int           // writes, every one of which was looked for
	lost         int
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
	table := summary()
	fmt.Print(table)
	if file := os.Getenv("E2E_RESULTS"); file != "" && code == 0 {
		err = os.WriteFile(file, []byte(table), 0o644)
	}
	return code, err
}

// clusters are made with the first test that needs them.
func clusters(t *testing.T) *bed.Bed {
	t.Helper()
	suite.up.Do(func() {
		var err error
		if dir := os.Getenv("E2E_BED"); dir != "" { // of make kind, and left as it is
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
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f s\t%.1f s\t%.1f s\t%d\t%d\n", r.scenario, r.ordinals, r.d, r.wall.Seconds(), r.down.Seconds(), r.gap.Seconds(), r.acknowledged, r.lost)
	}
	_ = w.Flush()
	return b.String()
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
