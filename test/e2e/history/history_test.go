package history

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

func call(worker int, kind, value string, begun, ended int64) Call {
	return Call{Worker: worker, Kind: kind, Key: "k", Value: value, Begun: begun, Ended: ended}
}

func TestALostWriteIsNotLinearizable(t *testing.T) {
	for _, c := range []struct {
		name  string
		calls []Call
		want  porcupine.CheckResult
	}{
		{"read what was written", []Call{call(0, Write, "a", 1, 2), call(1, Read, "a", 3, 4)}, porcupine.Ok},
		{"an acknowledged write is gone", []Call{call(0, Write, "a", 1, 2), call(1, Read, "", 3, 4)}, porcupine.Illegal},
		{"an old value comes back", []Call{call(0, Write, "a", 1, 2), call(0, Write, "b", 3, 4), call(1, Read, "b", 5, 6), call(1, Read, "a", 7, 8)}, porcupine.Illegal},
		{"a write without an answer may have happened", []Call{call(0, Write, "a", 1, 0), call(1, Read, "a", 3, 4)}, porcupine.Ok},
		{"or not yet", []Call{call(0, Write, "a", 1, 0), call(1, Read, "", 3, 4)}, porcupine.Ok},
		{"but not both", []Call{call(0, Write, "a", 1, 0), call(1, Read, "a", 3, 4), call(1, Read, "", 5, 6)}, porcupine.Illegal},
		{"a read without an answer says nothing", []Call{call(0, Write, "a", 1, 2), call(1, Read, "", 3, 0)}, porcupine.Ok},
	} {
		if got := Linearizable(c.calls, time.Minute); got != c.want {
			t.Errorf("%s: %s, expected %s", c.name, got, c.want)
		}
	}
}

func TestGapIsWithoutAnyAnswer(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	end := func(s int64) Call { return Call{Ended: at(s).UnixNano()} }
	calls := []Call{end(1), end(9), end(2), {}, end(4), end(20)}
	for _, c := range []struct{ from, to, want int64 }{{1, 4, 2}, {0, 10, 5}, {5, 8, 3}, {9, 15, 6}, {20, 30, 10}, {4, 9, 5}} {
		if got := Gap(calls, at(c.from), at(c.to)); got != time.Duration(c.want)*time.Second {
			t.Errorf("from %d to %d: %s, expected %d s", c.from, c.to, got, c.want)
		}
	}
}

func TestTheFirstWrongAnswerStays(t *testing.T) {
	var n Name
	n.Note(time.Unix(1, 0), nil)
	n.Note(time.Unix(2, 0), fmt.Errorf("%w: b at 1", ErrWrong))
	n.Note(time.Unix(3, 0), fmt.Errorf("%w: b at 2", ErrWrong))
	n.Note(time.Unix(4, 0), errors.New("no answer"))
	n.Note(time.Unix(6, 0), nil)
	if n.Wrong != "00:00:02.000 the wrong member answers: b at 1" || n.Gap != 5*time.Second || n.Answers != 2 || n.Failures != 3 {
		t.Errorf("%+v", n)
	}
}
