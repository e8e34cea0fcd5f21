// Command upstream runs the integration tests that Kubernetes has for its StatefulSet
// controller, as they are, with slicecontroller --manage=apps/v1 in the place of that
// controller: the source of the pinned version, in which the lines that start the
// controller start ours instead.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/stsmigrate/stsmigrate/test/cluster"
	"github.com/stsmigrate/stsmigrate/test/demo/stage"
)

func main() {
	tests := flag.String("run", ".", "which tests, as for go test")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *tests)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "upstream: "+err.Error())
		os.Exit(1)
	}
}

// suite is the package of the tests.
const suite = "k8s.io/kubernetes/test/integration/statefulset"

// substitution is a line of the suite, and what stands there instead.
type substitution struct{ file, was, is string }

func substitutions() []substitution {
	return []substitution{
		{"util.go", "	config := restclient.CopyConfig(server.ClientConfig)\n", "	config := restclient.CopyConfig(server.ClientConfig)\n	ours = config\n"},
		{"util.go", "	go sc.Run(ctx, 5)\n", "	go runOurs(ctx)\n"},
		{"statefulset_test.go", "	go ssc.Run(tCtx, 5)\n", "	_, ours = ssc, config\n	go runOurs(tCtx)\n"},
	}
}

// starter is a file that the suite has besides.
//
//go:embed starter.go.txt
var starter []byte

func run(ctx context.Context, tests string) (err error) {
	dir, err := os.MkdirTemp("", "stsmigrate-upstream-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := stage.Build(ctx, dir, "slicecontroller")
	if err != nil {
		return err
	}
	etcd, err := cluster.Program(ctx, "etcd")
	if err != nil {
		return err
	}
	module, err := cluster.BinariesModule(ctx)
	if err != nil {
		return err
	}
	// The tests need more modules than the binaries: these are noted in a copy.
	for _, name := range []string{"go.mod", "go.sum"} {
		raw, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o644); err != nil {
			return err
		}
	}
	overlay, err := substitute(ctx, module, dir)
	if err != nil {
		return err
	}
	fmt.Println("Building the API server into the tests; the first time that takes minutes ...")
	cmd := exec.CommandContext(ctx, "go", "test", "-modfile", filepath.Join(dir, "go.mod"), "-mod=mod", "-overlay", overlay, "-count=1", "-timeout=20m", "-v", "-run", tests, suite)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "SLICECONTROLLER="+program, "PATH="+filepath.Dir(etcd)+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = &verdicts{to: os.Stdout}, os.Stderr
	return cmd.Run()
}

// substitute writes the changed files into a folder, and gives the file that tells the
// compiler of them.
func substitute(ctx context.Context, module, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	cmd.Dir = module
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("looking for the source of Kubernetes: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(out)), strings.TrimPrefix(suite, "k8s.io/kubernetes/"))
	text := map[string]string{}
	for _, s := range substitutions() {
		if text[s.file] == "" {
			raw, err := os.ReadFile(filepath.Join(source, s.file))
			if err != nil {
				return "", err
			}
			text[s.file] = string(raw)
		}
		if strings.Count(text[s.file], s.was) != 1 {
			return "", fmt.Errorf("%s has changed: expected the line %q once", s.file, strings.TrimSpace(s.was))
		}
		text[s.file] = strings.Replace(text[s.file], s.was, s.is, 1)
	}
	text["starter.go"] = string(starter)
	replace := map[string]string{}
	for name, content := range text {
		replace[filepath.Join(source, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return "", err
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, raw, 0o644)
}
