package stage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Main runs a program until it ends or is interrupted, and ends the process. Whatever it has made, run
// takes away again, also when its context ends; a second Ctrl-C does not wait for that.
func Main(name string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx)
	if err != nil && ctx.Err() != nil {
		err = errors.New("interrupted; everything has been cleaned up")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, name+": "+err.Error())
		os.Exit(1)
	}
}

// Tests is the process around the tests of a package, so many of them side by side: run, which is
// given a folder of its own, makes what they share, runs them, and takes it away again.
func Tests(name string, parallel int, run func(ctx context.Context, dir string) (code int, err error)) {
	flag.Parse()
	log.SetLogger(zapr.NewLogger(zap.NewNop())) // or the client library complains that nobody has set one
	if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
		panic(err)
	}
	code, err := inFolder(name, run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func inFolder(name string, run func(ctx context.Context, dir string) (code int, err error)) (code int, err error) {
	dir, err := os.MkdirTemp("", "stsmigrate-"+name+"-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return run(context.Background(), dir)
}
