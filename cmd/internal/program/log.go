package program

import (
	"flag"
	"io"
	"strconv"
	"sync/atomic"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
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

// silent reports that the log of the client libraries is discarded already.
var silent atomic.Bool //nolint:gochecknoglobals // the log of these libraries is one for the process

// LogText sends the log of the client libraries to a writer, as text for the user. Below verbosity 1 they are silent:
// a failure that they cannot handle is an error of the command. The log is not set again to what it is: a request of
// a former command of this process may still be on its way, and reads it.
func LogText(verbosity int, to io.Writer) {
	level := Verbose(verbosity)
	if was := silent.Swap(level == 0); was && level == 0 {
		return
	}
	var logger klog.Logger // the zero logger discards
	if level > 0 {
		logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(level), textlogger.Output(to)))
	}
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
}
