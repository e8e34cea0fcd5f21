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

// Main runs a program until it ends or is interrupted. If run fails, Main exits with code 1. run
// removes everything that it created, even when its context ends. A second Ctrl-C does not wait for
// that.
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

// Tests runs the tests of a package, parallel of them at a time, and exits the process. run gets a
// temporary folder; it creates the fixture that the tests share, runs them and removes the fixture.
func Tests(name string, parallel int, run func(ctx context.Context, dir string) (code int, err error)) {
	flag.Parse()
	log.SetLogger(zapr.NewLogger(zap.NewNop())) // otherwise the client library warns that no logger is set
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
