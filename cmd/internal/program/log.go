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

// mostVerbose is the highest log level. The level above it logs the bodies of requests and responses, which
// may be those of Secrets.
const mostVerbose = 7

// Verbose sets the log level of the client libraries, limited to 0..mostVerbose, and returns the level for
// their logger.
func Verbose(level int) int {
	level = min(max(level, 0), mostVerbose)
	var own flag.FlagSet
	klog.InitFlags(&own)
	_ = own.Set("v", strconv.Itoa(level)) // a number is valid; klog has this level beside the logger's own
	return level
}

// Log sends the log of the program and of its libraries to stderr, as JSON.
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
