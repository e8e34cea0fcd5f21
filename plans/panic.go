package plans

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

// Panic is a panic of this program while it works on a plan. It is a bug of the program, whatever
// the plan contains, and one plan must not stop the work on the others.
type Panic struct {
	What  string // the first line of the panic
	Where string // the function and line of its origin
}

func (m Panic) Error() string {
	return fmt.Sprintf("stsmigrate has panicked while it worked on this plan, which is a bug of stsmigrate: %s, in %s", m.What, m.Where)
}

// ReasonID implements reasons.Reasoned.
func (m Panic) ReasonID() reasons.ID { return reasons.ProgramFailed }

// RecoverPanic is deferred by a function that works on one plan: it turns a panic into the function's error.
func RecoverPanic(err *error) {
	if what := recover(); what != nil {
		line, _, _ := strings.Cut(fmt.Sprint(what), "\n")
		*err = Panic{What: line, Where: origin()}
	}
}

// origin returns the first function below the runtime's handling of a panic.
func origin() string {
	var at [64]uintptr
	frames := runtime.CallersFrames(at[:runtime.Callers(1, at[:])])
	for panicked, more := false, true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		ofRuntime := strings.HasPrefix(f.Function, "runtime.")
		if panicked && !ofRuntime {
			return fmt.Sprintf("%s (line %d)", f.Function[strings.LastIndex(f.Function, "/")+1:], f.Line)
		}
		panicked = panicked || f.Function == "runtime.gopanic"
	}
	return "an unknown place"
}
