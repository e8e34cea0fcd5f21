package program

import (
	"bytes"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"
)

// One request to stop often arrives as several signals. Only one that comes later, or from a key, asks for more.
func TestOneRequestToStopCountsOnce(t *testing.T) {
	type heard struct {
		after time.Duration
		from  origin
	}
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		heard []heard
		want  []bool
	}{
		"a signal and its copy":                {[]heard{{0, process}, {ms, process}}, []bool{true, false}},
		"a person who insists":                 {[]heard{{0, process}, {1500 * ms, process}, {1500 * ms, process}}, []bool{true, true, true}},
		"copies do not put off the next":       {[]heard{{0, process}, {900 * ms, process}, {200 * ms, process}}, []bool{true, false, true}},
		"SIGTERM and SIGHUP of one stop":       {[]heard{{0, process}, {0, hangUp}}, []bool{true, false}},
		"SIGHUP and SIGTERM of one stop":       {[]heard{{0, hangUp}, {ms, process}}, []bool{true, false}},
		"a terminal that is closed":            {[]heard{{0, hangUp}, {2000 * ms, hangUp}, {time.Hour, hangUp}}, []bool{true, false, false}},
		"a terminal that is closed after that": {[]heard{{0, process}, {time.Minute, hangUp}}, []bool{true, false}},
		"and later a person":                   {[]heard{{0, hangUp}, {time.Minute, process}}, []bool{true, true}},
		"two keys":                             {[]heard{{0, key}, {300 * ms, key}, {300 * ms, key}}, []bool{true, true, true}},
		"a key that is held":                   {[]heard{{0, key}, {30 * ms, key}, {180 * ms, key}, {190 * ms, key}}, []bool{true, false, false, false}},
		"a signal, then a key":                 {[]heard{{0, process}, {300 * ms, key}}, []bool{true, true}},
		"a key, then a signal":                 {[]heard{{0, key}, {300 * ms, process}}, []bool{true, false}},
	} {
		var h hearing
		var got []bool
		at := time.Unix(1000, 0)
		for _, one := range c.heard {
			at = at.Add(one.after)
			got = append(got, h.counts(one.from, at))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, expected %v", name, got, c.want)
		}
	}
}

// What moves ordinals first finishes the wave, then the write, and then ends at once. What only writes has no first stage.
func TestEachSignalThatCountsAsksForMore(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(*Signals)
		want  []string
	}{
		"what moves ordinals": {func(s *Signals) {
			s.CarriesWaves(func(at Stage) string {
				return map[Stage]string{Finishes: "the wave first", Stops: "the write first"}[at]
			})
		}, []string{"finish", "finish, stop", "finish, stop, over, exit"}},
		"what writes":     {func(s *Signals) { s.Carries() }, []string{"stop", "stop, over, exit", "stop, over, exit"}},
		"what only reads": {func(*Signals) {}, []string{"over", "over, exit", "over, exit"}},
	} {
		var said bytes.Buffer
		over, exits := false, false
		s := &Signals{To: &said, Exit: func() { exits = true }, finish: make(chan struct{}), stop: make(chan struct{}), raised: make(chan os.Signal, 1), unread: make(chan os.Signal, 1)}
		c.begin(s)
		stage := Stage(0)
		for i, want := range c.want {
			if stage != ended {
				stage = s.after(stage, func() { over = true })
			}
			got := ""
			for _, is := range []struct {
				name string
				so   bool
			}{{"finish", closed(s.Finish())}, {"stop", closed(s.Stop())}, {"over", over}, {"exit", exits}} {
				if is.so && got != "" {
					got += ", "
				}
				if is.so {
					got += is.name
				}
			}
			if got != want {
				t.Errorf("%s, after %d: %s, expected %s", name, i+1, got, want)
			}
		}
		signal.Stop(s.raised)
		signal.Stop(s.unread)
		if name == "what moves ordinals" && said.String() != "the wave first\nthe write first\n" {
			t.Errorf("it says %q", said.String())
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A terminal that is closed ends what is carried out in order.
func TestAClosedTerminalIsAsked(t *testing.T) {
	// Under nohup a hang-up is ignored, and what is started there ignores it too.
	unheard := make(chan os.Signal, 1)
	signal.Notify(unheard, syscall.SIGHUP)
	defer signal.Stop(unheard)
	var said bytes.Buffer
	s := &Signals{To: &said, Exit: func() { t.Error("it exits") }}
	end := s.Listen(func() { t.Error("it is cancelled") })
	defer end()
	s.CarriesWaves(func(Stage) string { return "" })
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-s.Finish()
}
