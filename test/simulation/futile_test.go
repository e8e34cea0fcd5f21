package simulation

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavelimit"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A write that succeeds or is refused without any effect is not repeated forever. The pauses grow, the errors
// are reported, and after a few attempts the plan is blocked. A single 409 is a response like any other.
func TestAWriteThatChangesNothingIsNotSentForEver(t *testing.T) {
	for name, c := range map[string]struct {
		kind string
		f    fault
		held string
	}{
		"a webhook answers 409":         {"StatefulSet", refused409, "somebody was faster"},
		"a webhook sets it back":        {"StatefulSet", setBack, "StatefulSet web"},
		"a volume's policy is set back": {"PersistentVolume", setBack, "volume pvc-disk-1"},
		"the journal answers 409":       {"ConfigMap", refused409, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(threeOrdinals(plans.Rebind))
				w.foreign = true
				r, e := w.begin(t, plans.Move)
				sent := 0
				r.at = func(int) fault {
					if r.now.kind == c.kind && r.now.namespace != green == (c.kind != "ConfigMap") {
						sent++
						return c.f
					}
					return ""
				}
				p := carried(t, w, r, e)
				got, over := p.after(time.Minute)
				for n := 0; !over && n < 10; n++ {
					w.rest()
					got, over = p.after(time.Minute)
				}
				if sent > 80 || p.errs == 0 {
					t.Errorf("sent %d times, and told %d times", sent, p.errs)
				}
				switch {
				case c.held == "":
					if over {
						t.Errorf("%+v", got)
					}
					close(p.stop)
					<-p.over
				case !over || got.err != nil || got.Kind != engine.Blocked || !strings.Contains(got.Reason, c.held) || w.journal.Blocked != got.Reason:
					t.Errorf("%+v; the journal says %q", got, w.journal.Blocked)
				}
			})
		})
	}
}

// A process that loses one conflict continues at once.
func TestASingle409TakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(threeOrdinals(plans.Rebind))
		r, e := w.begin(t, plans.Move)
		refused := map[key]bool{}
		r.at = func(int) fault {
			if !refused[r.now] {
				refused[r.now] = true
				return refused409
			}
			return ""
		}
		began := time.Now()
		p := carried(t, w, r, e)
		synctest.Wait()
		if len(refused) < 3 || time.Since(began) > 0 || p.errs > 0 {
			t.Errorf("refused %v, %s, %d errors", refused, time.Since(began), p.errs)
		}
		if got := p.rests(t); got.Outcome != plans.Moved {
			t.Errorf("%+v", got)
		}
		unbroken(t, w)
	})
}

// A wave that cannot begin releases its slot, and does not mistake its own release for news.
func TestAWaveThatCannotBeginDoesNotAskAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(apart(threeOrdinals(plans.Rebind)))
		r, e := w.begin(t, plans.Move)
		w.until(t, r, e, plans.Relax)
		w.rest()
		w.sick(plans.Source, 0)
		looks := 0
		r.away = func(*store) bool {
			if looks++; looks > 10_000 {
				panic("it asks all the time")
			}
			return false
		}
		e.Permit = wavelimit.New(1).Of(w.plan)
		stop := make(chan struct{})
		over := make(chan error, 1)
		go func() {
			_, err := e.Run(t.Context(), engine.Options{Wake: clusters.NewChangeSignal(), Stop: stop, StepTimeout: stepTimeout, Report: func(engine.Progress, error) {}})
			over <- err
		}()
		<-time.After(time.Minute)
		if synctest.Wait(); looks > 200 {
			t.Errorf("%d requests in a minute", looks)
		}
		close(stop)
		if err := <-over; !errors.Is(err, engine.ErrStopped) {
			t.Error(err)
		}
	})
}
