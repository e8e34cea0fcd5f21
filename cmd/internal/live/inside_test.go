package live

import (
	"errors"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// What the run of this process says it waits for goes before what can be seen from outside, and nobody is sent to the
// output that he looks at.
func TestARunKnowsBestWhatItWaitsFor(t *testing.T) {
	guess := func() Status {
		return Status{View: &engine.View{ReasonID: reasons.WriteNotTaken, Reason: "the output of vm/1 says"}}
	}
	s := Show{Plan: planstest.Named(t, "abc"), Mode: JSON, Out: new(discard), Now: planstest.Noon}
	if got := s.fromInside(guess()).View; got.Reason != "" || got.ReasonID != "" {
		t.Errorf("before it has said anything: %+v", got)
	}
	s.Progress(nil, engine.Progress{Kind: engine.Waiting, ID: reasons.DrainFirst, Reason: "nodes are being drained"}, nil)
	outside := guess()
	if got := s.fromInside(outside).View; got.Reason != "nodes are being drained" || got.ReasonID != reasons.DrainFirst || outside.View.ReasonID != reasons.WriteNotTaken {
		t.Errorf("while it waits: %+v", got)
	}
	s.Progress(nil, engine.Progress{}, errors.New("no answer"))
	if got := s.fromInside(guess()).View; got.Reason != "will try again: no answer" || got.ReasonID != "" {
		t.Errorf("while it tries again: %+v", got)
	}
	s.Progress(nil, engine.Progress{Kind: engine.Advanced}, nil)
	seen := Status{View: &engine.View{ReasonID: reasons.PodNotReady, Reason: "pod web-2 is not Ready"}}
	if got := s.fromInside(seen).View; got.Reason != seen.View.Reason {
		t.Errorf("when it says nothing: %+v", got)
	}
}

type discard struct{}

func (*discard) Write(p []byte) (int, error) { return len(p), nil }
