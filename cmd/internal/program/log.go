package program

import (
	"flag"
	"strconv"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// mostVerbose is how much is logged at most: the level above it has the bodies of requests and answers, which may be
// those of Secrets.
const mostVerbose = 7

// Verbose lets the client libraries log as much, and returns the level that a logger for them is to have.
func Verbose(level int) int {
	level = min(max(level, 0), mostVerbose)
	var own flag.FlagSet
	klog.InitFlags(&own)
	_ = own.Set("v", strconv.Itoa(level)) // a number; it is asked beside the logger's own level
	return level
}

// Log sends what the program and its libraries log to stderr, as JSON.
func Log(level int) error {
	c := zap.NewProductionConfig()
	c.Level = zap.NewAtomicLevelAt(zapcore.Level(-Verbose(level))) //nolint:gosec // no more than mostVerbose
	base, err := c.Build()
	if err != nil {
		return err
	}
	log.SetLogger(zapr.NewLogger(base))
	klog.SetLoggerWithOptions(zapr.NewLogger(base), klog.ContextualLogger(true))
	return nil
}
