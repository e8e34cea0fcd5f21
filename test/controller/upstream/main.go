// Command upstream runs the integration tests of Kubernetes' StatefulSet controller with
// slicecontroller --manage=apps/v1 in place of that controller. It copies the tests from the source
// of the pinned version. They are unchanged, except that the lines that start the built-in
// controller start slicecontroller.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

func main() {
	tests := flag.String("run", ".", "which tests, as for go test")
	flag.Parse()
	fixture.Main("upstream", func(ctx context.Context) error { return run(ctx, *tests) })
}

// suite is the folder of the tests in the source of Kubernetes.
const suite = "test/integration/statefulset"

// substitution is a line of the suite and its replacement.
type substitution struct{ file, was, is string }

func substitutions() []substitution {
	return []substitution{
		{"main_test.go", "	framework.EtcdMain(m.Run)\n", "	_ = framework.EtcdMain\n	exit(m.Run)\n"},
		{"util.go", "	config := restclient.CopyConfig(server.ClientConfig)\n", "	config := restclient.CopyConfig(server.ClientConfig)\n	ours = config\n"},
		{"util.go", "	go sc.Run(ctx, 5)\n", "	go runOurs(ctx)\n"},
		{"statefulset_test.go", "	go ssc.Run(tCtx, 5)\n", "	_, ours = ssc, config\n	go runOurs(tCtx)\n"},
	}
}

// starter is a file that is added to the suite.
//
//go:embed starter.go.txt
var starter []byte

func run(ctx context.Context, tests string) (err error) {
	dir, err := os.MkdirTemp("", "stsmigrate-upstream-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := fixture.Build(ctx, dir, "slicecontroller")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	url, err := store(ctx, dir)
	if err != nil {
		return err
	}
	module, err := cluster.BinariesModule(ctx)
	if err != nil {
		return err
	}
	// The tests need more modules than the binaries. go test adds these to a copy of the module
	// files.
	for _, name := range []string{"go.mod", "go.sum"} {
		raw, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o644); err != nil {
			return err
		}
	}
	if err := substitute(ctx, module, filepath.Join(dir, "suite")); err != nil {
		return err
	}
	fmt.Println("Building the tests with the API server; the first build takes minutes ...")
	cmd := exec.CommandContext(ctx, "go", "test", "-mod=mod", "-count=1", "-timeout=20m", "-v", "-run", tests, "./suite")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SLICECONTROLLER="+program, "KUBE_INTEGRATION_ETCD_URL="+url)
	cmd.Stdout, cmd.Stderr = &verdicts{to: os.Stdout}, os.Stderr
	return cmd.Run()
}

// store starts etcd with its data below dir, until ctx ends, and returns its URL.
func store(ctx context.Context, dir string) (url string, err error) {
	etcd, err := cluster.Program(ctx, "etcd")
	if err != nil {
		return "", err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	url = "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, etcd, "--data-dir", filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", "http://127.0.0.1:0", "--log-level", "fatal")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return url, cmd.Start()
}

// substitute copies the suite into a folder, with the substitutions. It fails if a line to be
// replaced does not occur exactly once in its file.
func substitute(ctx context.Context, module, to string) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	cmd.Dir = module
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("looking for the source of Kubernetes: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), suite, "*.go"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s has no %s (%w)", strings.TrimSpace(string(out)), suite, err)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text, name := string(raw), filepath.Base(file)
		for _, s := range substitutions() {
			if s.file != name {
				continue
			}
			if strings.Count(text, s.was) != 1 {
				return fmt.Errorf("%s has changed: expected the line %q once", file, strings.TrimSpace(s.was))
			}
			text = strings.Replace(text, s.was, s.is, 1)
		}
		if err := os.WriteFile(filepath.Join(to, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(to, "starter.go"), starter, 0o644)
}
