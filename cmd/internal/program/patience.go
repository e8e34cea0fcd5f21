package program

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Patience tells a user who waits that the program is at work.
type Patience struct {
	To io.Writer
	// After is time.After.
	After func(time.Duration) <-chan time.Time
}

// Busy says what the program does, if it is not done after a second. A terminal shows for how long, and nothing of it
// once it is done; what is no terminal gets one line. done must be called, BEFORE anything else is written.
func (p Patience) Busy(what string) (done func()) {
	if f := terminal(p.To); f != nil {
		return p.begin(func(seconds int) { fmt.Fprintf(f, "\r\x1b[K%s: %d s", what, seconds) }, func() { fmt.Fprint(f, "\r\x1b[K") })
	}
	return p.begin(func(seconds int) {
		if seconds == 1 {
			fmt.Fprintf(p.To, "%s ...\n", what)
		}
	}, func() {})
}

// begin calls show after every second until done is called, and then clean if it was shown.
func (p Patience) begin(show func(seconds int), clean func()) (done func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for seconds := 1; ; seconds++ {
			select {
			case <-stop:
				if seconds > 1 {
					clean()
				}
				return
			case <-p.After(time.Second):
				show(seconds)
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-ended
	})
}
