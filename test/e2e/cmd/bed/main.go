// Command bed creates the two kind clusters of the end-to-end tests for interactive use, and
// removes them.
//
//	bed up         create them, and print the KUBECONFIG to set
//	bed down       remove them
//	bed image      print the name of kind's own node image
//	bed programs   build the programs of a control plane, and print their folder
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/kind/pkg/apis/config/defaults"

	"github.com/stsmigrate/stsmigrate/test/e2e/bed"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bed: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("expected up, down, image or programs")
	}
	cache, err := cluster.CacheDir()
	if err != nil {
		return err
	}
	dir := filepath.Join(cache, "kind")
	switch args[0] {
	case "up":
		b, err := bed.Up(ctx, dir)
		if err != nil {
			return err
		}
		fmt.Printf("export KUBECONFIG=%s:%s # contexts %s and %s\n", b.East.Kubeconfig, b.West.Kubeconfig, b.East.Context(), b.West.Context())
		return nil
	case "down":
		return bed.Down(dir)
	case "image":
		fmt.Println(defaults.Image)
		return nil
	case "programs":
		path, err := cluster.Build(ctx)
		fmt.Println(path)
		return err
	}
	return fmt.Errorf("unknown argument %q: expected up, down, image or programs", args[0])
}
