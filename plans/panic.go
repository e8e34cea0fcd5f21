package plans

import (
	"fmt"
	"runtime"
	"strings"
)

// Panic is a panic of this program over a plan. It is a mistake of the program, whatever is in the plan, and one plan
// must not end what is done for the others.
type Panic struct {
	What  string // the first line of the panic
	Where string // the function and the line that it came from
}

func (m Panic) Error() string {
	return fmt.Sprintf("the program itself has failed over this plan, which is a mistake of the program: %s, in %s", m.What, m.Where)
}

// RecoverPanic is deferred by a function that works on one plan: a panic becomes its error.
func RecoverPanic(err *error) {
	if what := recover(); what != nil {
		line, _, _ := strings.Cut(fmt.Sprint(what), "\n")
		*err = Panic{What: line, Where: origin()}
	}
}

// origin gives the first function below the runtime's handling of a panic.
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
