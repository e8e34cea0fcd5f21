package cluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// program is a binary of a cluster and the package it is built from.
type program struct{ name, pkg string }

// programs returns the programs of a cluster, the small ones first, so that progress shows early.
func programs() []program {
	return []program{
		{"kwokctl", "sigs.k8s.io/kwok/cmd/kwokctl"},
		{"kwok", "sigs.k8s.io/kwok/cmd/kwok"},
		{"etcd", "go.etcd.io/etcd/server/v3"},
		{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
		{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
		{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
		{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
	}
}

var kubernetesVersion = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)$`)

// CacheDir returns the folder for files that outlive a run: the binaries and detached clusters. It
// is $STSMIGRATE_CACHE, or stsmigrate in the user's cache folder.
func CacheDir() (string, error) {
	if dir := os.Getenv("STSMIGRATE_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache folder (or set STSMIGRATE_CACHE): %w", err)
	}
	return filepath.Join(dir, "stsmigrate"), nil
}

// link makes the programs that a folder has already known in dir, so that only the others are built.
func link(dir, folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	linked := 0
	for _, p := range programs() {
		from, to := filepath.Join(folder, p.name), filepath.Join(dir, p.name)
		info, err := os.Stat(from)
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			continue
		}
		linked++
		if old, err := os.Readlink(to); err == nil && old == from {
			continue
		}
		partial := to + ".partial"
		if err := errors.Join(os.RemoveAll(partial), os.Symlink(from, partial), os.Rename(partial, to)); err != nil {
			return err
		}
	}
	if linked == 0 {
		return fmt.Errorf("%s has none of the programs of a cluster (etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok, kwokctl)", folder)
	}
	return nil
}

// Build compiles the named binaries of a cluster, or all of them if no name is given, unless the
// cache already contains them, or the folder that STSMIGRATE_BINARIES names does. It returns their folder. The first build takes minutes and reports
// its progress on stderr. An interrupted build resumes where it stopped. Processes that build at
// the same time wait for one another.
func Build(ctx context.Context, names ...string) (string, error) {
	module, err := BinariesModule(ctx)
	if err != nil {
		return "", err
	}
	return build(ctx, module, names)
}

// BuildFor is Build for one of the other Kubernetes versions that are tested, such as "1.37".
func BuildFor(ctx context.Context, version string, names ...string) (string, error) {
	module, err := binariesModule(ctx, version)
	if err != nil {
		return "", err
	}
	return build(ctx, module, names)
}

func build(ctx context.Context, module string, names []string) (string, error) {
	mod, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return "", err
	}
	sum, err := os.ReadFile(filepath.Join(module, "go.sum"))
	if err != nil {
		return "", err
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	key, folder := sha256.New(), os.Getenv("STSMIGRATE_BINARIES")
	fmt.Fprintf(key, "%s\n%s\n%s%s", mod, sum, runtime.Version(), folder)
	dir := filepath.Join(cache, fmt.Sprintf("%x", key.Sum(nil))[:16])
	if folder == "" && len(missing(dir, names)) == 0 {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if folder != "" {
		if err := link(dir, folder); err != nil {
			return "", fmt.Errorf("STSMIGRATE_BINARIES: %w", err)
		}
	}
	flags, err := linkerFlags(mod)
	if err != nil {
		return "", err
	}
	return dir, buildMissing(ctx, module, dir, flags, names)
}

// Program returns the path of one of the binaries, for example etcd or kubectl. It builds the
// binary if the cache does not contain it.
func Program(ctx context.Context, name string) (string, error) {
	dir, err := Build(ctx, name)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, name), nil
}

func missing(dir string, wanted []string) []program {
	return slices.DeleteFunc(programs(), func(p program) bool {
		_, err := os.Stat(filepath.Join(dir, p.name))
		return err == nil || len(wanted) > 0 && !slices.Contains(wanted, p.name)
	})
}

func buildMissing(ctx context.Context, module, dir, flags string, names []string) error {
	absent := missing(dir, names)
	for i, p := range absent {
		start := time.Now()
		fmt.Fprintf(os.Stderr, "test bed: building %s (%d of %d) ...", p.name, i+1, len(absent))
		if err := buildOne(ctx, module, filepath.Join(dir, p.name), p.pkg, flags); err != nil {
			fmt.Fprintln(os.Stderr)
			return fmt.Errorf("build %s: %w", p.name, err)
		}
		fmt.Fprintf(os.Stderr, " %s\n", time.Since(start).Round(time.Second))
	}
	return nil
}

// buildOne leaves path either absent or complete: it builds to a file beside path and renames it.
func buildOne(ctx context.Context, module, path, pkg, flags string) error {
	partial := path + ".partial"
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", flags, "-o", partial, pkg)
	cmd.Dir = module
	cmd.Env = buildEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return os.Rename(partial, path)
}

// buildEnv returns the environment without the variables that would make the build target another
// machine, another module or another mode.
func buildEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "GOOS", "GOARCH", "GOFLAGS", "GOWORK", "CGO_ENABLED":
		default:
			env = append(env, kv)
		}
	}
	return append(env, "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly -buildvcs=false")
}

// linkerFlags returns the flags that set the version of a release build: clients cannot parse the
// placeholder that a plain build reports.
func linkerFlags(mod []byte) (string, error) {
	v := kubernetesVersion.FindSubmatch(mod)
	if v == nil {
		return "", errors.New("binaries/go.mod does not require k8s.io/kubernetes")
	}
	const pkg = "k8s.io/component-base/version"
	return fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s", pkg, v[1], v[2], v[3]), nil
}

// BinariesModule returns the folder of the nested module that pins the binaries. KUBERNETES names another Kubernetes version
// than the one that the tests use otherwise: one of the folders in binaries, such as 1.33. Its programs are built first, which
// takes twenty minutes on two cores.
func BinariesModule(ctx context.Context) (string, error) {
	module, err := binariesModule(ctx, "")
	version := os.Getenv("KUBERNETES")
	if err != nil || version == "" {
		return module, err
	}
	mod, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return "", err
	}
	usual := ""
	if v := kubernetesVersion.FindStringSubmatch(string(mod)); v != nil {
		usual = v[2] + "." + v[3]
	}
	others, err := filepath.Glob(filepath.Join(module, "*", "go.mod"))
	for k, o := range others {
		others[k] = filepath.Base(filepath.Dir(o))
	}
	switch {
	case err != nil || version == usual:
		return module, err
	case !slices.Contains(others, version):
		return "", fmt.Errorf("KUBERNETES is %q: expected %s, %s, or nothing", version, usual, strings.Join(others, " or "))
	}
	return filepath.Join(module, version), nil
}

func binariesModule(ctx context.Context, version string) (string, error) {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(file), "binaries", version)
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); filepath.IsAbs(file) && err == nil {
		return dir, nil
	}
	// The program was built with -trimpath, or the sources were moved since: use the go command.
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/stsmigrate/stsmigrate/test/internal/cluster").Output()
	if err != nil {
		return "", fmt.Errorf("find the sources of the test bed: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "binaries", version), nil
}

// lock takes an exclusive lock on a file. The kernel releases the lock if the process dies.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(context.Context) (bool, error) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		_ = f.Close() // the file was opened only for its lock
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}
