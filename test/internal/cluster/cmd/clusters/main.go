// Command clusters starts and stops the local test bed for interactive use: the clusters east and
// west with one storage behind both. They stay until they are stopped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

const usage = `usage: clusters [flags] build | up | down

  build  compile the binaries of the test bed, unless the cache contains them
  up     start the clusters east and west, unless they are up
  down   stop them and delete all their files

`

func names() []string { return []string{"east", "west"} }

func main() {
	var o cluster.Options
	flag.StringVar(&o.Dir, "dir", "", "work folder; each folder has its own pair of clusters (default: clusters in the cache folder)")
	flag.DurationVar(&o.PodStart, "pod-start", 2*time.Second, "how long a pod takes to become ready")
	flag.DurationVar(&o.PodStop, "pod-stop", time.Second, "how long a pod takes to stop")
	flag.DurationVar(&o.DetachDelay, "detach", time.Second, "how long a volume takes to leave a node")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Arg(0), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command string, o cluster.Options) error {
	dir, err := workDir(o.Dir)
	if err != nil {
		return err
	}
	switch command {
	case "build":
		_, err := cluster.Build(ctx)
		return err
	case "up":
		return up(ctx, dir, o)
	case "down":
		return down(ctx, dir)
	case "serve": // the process that up leaves running
		return serve(ctx, dir, o)
	}
	flag.Usage()
	return fmt.Errorf("unknown command %q", command)
}

func workDir(dir string) (string, error) {
	if dir != "" {
		return filepath.Abs(dir)
	}
	cache, err := cluster.CacheDir()
	return filepath.Join(cache, "clusters"), err
}

func up(ctx context.Context, dir string, o cluster.Options) error {
	if running(ctx, dir) {
		fmt.Println("east and west are up already.")
		return explain(ctx, dir)
	}
	// Anything that exists here is left from an interrupted start, or is half of a bed.
	if err := down(ctx, dir); err != nil {
		return err
	}
	o.Dir, o.Detached = dir, true
	start := time.Now()
	east, west, err := cluster.StartPair(ctx, "east", "west", o)
	if err != nil {
		return err
	}
	for _, c := range []*cluster.Cluster{east, west} {
		err := cluster.InstallStorage(ctx, c.Config())
		if err == nil {
			err = cluster.MakeDefault(ctx, c.Config()) // the tutorials need one
		}
		if err != nil {
			return errors.Join(err, down(context.WithoutCancel(ctx), dir))
		}
	}
	if err := startServing(dir, o); err != nil {
		return errors.Join(err, down(context.WithoutCancel(ctx), dir))
	}
	fmt.Printf("east and west are up after %s.\n", time.Since(start).Round(100*time.Millisecond))
	return explain(ctx, dir)
}

func down(ctx context.Context, dir string) error {
	var err error
	for _, name := range names() {
		err = errors.Join(err, cluster.Remove(ctx, filepath.Join(dir, name)))
	}
	// Delete by name: the folder may contain other files.
	for _, file := range []string{"backend.jsonl", "storage.log"} {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, file)))
	}
	return err
}

// running reports whether both clusters respond.
func running(ctx context.Context, dir string) bool {
	for _, name := range names() {
		c, err := cluster.Open(name, filepath.Join(dir, name))
		if err != nil || c.Ping(ctx) != nil {
			return false
		}
	}
	return true
}

// startServing starts a process that serves the storage of both clusters and outlives this process.
// It runs from the work folder of the first cluster, like the components, and so ends with that
// cluster.
func startServing(dir string, o cluster.Options) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, names()[0], "bin", "clusters")
	// Run a copy: go run deletes its binary when up returns.
	if err := os.WriteFile(path, program, 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "storage.log"))
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the child has its own descriptor
	cmd := exec.Command(path, "-dir", dir, "-detach", o.DetachDelay.String(), "serve")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

func serve(ctx context.Context, dir string, o cluster.Options) error {
	backend, err := cluster.OpenBackend(filepath.Join(dir, "backend.jsonl"))
	if err != nil {
		return err
	}
	var served []*cluster.Cluster
	for _, name := range names() {
		c, err := cluster.Open(name, filepath.Join(dir, name))
		if err != nil {
			return err
		}
		served = append(served, c)
	}
	return cluster.Serve(ctx, backend, o.DetachDelay, served...)
}

// explain prints how to reach the clusters.
func explain(ctx context.Context, dir string) error {
	kubectl, err := cluster.Program(ctx, "kubectl")
	if err != nil {
		return err
	}
	var files []string
	for _, name := range names() {
		files = append(files, filepath.Join(dir, name, "kubeconfig"))
	}
	fmt.Printf(`
  east      %s
  west      %s
  volumes   %s

  export KUBECONFIG=%s
  alias kubectl=%s
  kubectl --context east get nodes
`, files[0], files[1], filepath.Join(dir, "backend.jsonl"), strings.Join(files, ":"), kubectl)
	return nil
}
