// Package tally keeps what a run has played: every part of the proof adds a line for what it has tried and what came
// of it. The page about reliability is made of these lines (test/reliability), so that it says no more than was run.
package tally

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// File names the environment variable with the file that lines are added to. Without it nothing is kept.
const File = "TALLY"

// Line is what one part of the proof has tried, and what came of it.
type Line struct {
	// Part is the part of the proof, such as zoo.
	Part string `json:"part"`
	// World is what it was tried in: a shape of the simulation, a mode on control planes, a package of the zoo.
	World string `json:"world"`
	// Case is what was tried there, such as the id of a variant or a kind of fault.
	Case string `json:"case,omitempty"`
	// Played has a letter for each of the cases of a series, such as the writes of a move: Held, Broken, or Left.
	Played string `json:"played,omitempty"`
	// Seeds are those that were played, if the cases are drawn from seeds.
	Seeds []Seeds `json:"seeds,omitempty"`
	// Of is how many cases there are, if they are not told one by one.
	Of int `json:"of,omitempty"`
	// Number is how many states were seen, of an exploration, or how many inputs were tried.
	Number int `json:"number,omitempty"`
	// Whole reports whether there was nothing more to try.
	Whole bool `json:"whole,omitempty"`
	// Failed reports that a promise was broken, or that a variant was not caught.
	Failed  bool    `json:"failed,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	// Commit is what was tried. It is set by whoever collects the lines.
	Commit string `json:"commit,omitempty"`
}

// Seeds are all seeds from First to Last.
type Seeds struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// The letters of Line.Played.
const (
	Held   = 'o'
	Broken = 'X'
	Left   = '.' // not played
)

var writing sync.Mutex //nolint:gochecknoglobals // of the one file of a process

// Add adds a line to the file. A line that cannot be kept ends the run: the page would say less than was run, and
// nobody would learn why.
func Add(l Line) {
	name := os.Getenv(File)
	if name == "" {
		return
	}
	writing.Lock()
	defer writing.Unlock()
	if err := add(name, l); err != nil {
		panic(fmt.Errorf("what was played cannot be kept in %s: %w", name, err))
	}
}

func add(name string, l Line) error {
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(raw, '\n')); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
