package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/stsmigrate/stsmigrate/test/internal/tally"
)

// results is what was played so far: one line for each series of cases.
type results []tally.Line

func compare(a, b tally.Line) int {
	return cmp.Or(cmp.Compare(a.Part, b.Part), cmp.Compare(a.World, b.World), cmp.Compare(a.Case, b.Case))
}

// with adds a line. Lines of one commit about the same cases are one line; a line of another commit takes the place
// of what is known of an earlier one.
func (r results) with(l tally.Line) results {
	i, found := slices.BinarySearchFunc(r, l, compare)
	switch {
	case !found:
		return slices.Insert(slices.Clone(r), i, l)
	case r[i].Commit == l.Commit:
		l = both(r[i], l)
	}
	out := slices.Clone(r)
	out[i] = l
	return out
}

// both returns one line for two about the same cases.
func both(a, b tally.Line) tally.Line {
	out := b
	// On real control planes a course may have a write more, which a wait has noted.
	played := []byte(a.Played + strings.Repeat(string(tally.Left), max(len(b.Played)-len(a.Played), 0)))
	for k, c := range []byte(b.Played) {
		if c == tally.Broken || played[k] == tally.Left {
			played[k] = c
		}
	}
	out.Played = string(played)
	out.Seeds = joined(slices.Concat(a.Seeds, b.Seeds))
	out.Number, out.Of = max(a.Number, b.Number), max(a.Of, b.Of)
	if a.Part == fuzzing {
		out.Number = a.Number + b.Number
	}
	out.Whole, out.Failed = a.Whole || b.Whole, a.Failed || b.Failed
	out.Seconds = a.Seconds + b.Seconds
	return out
}

// joined returns the same seeds in as few ranges as possible.
func joined(all []tally.Seeds) (out []tally.Seeds) {
	slices.SortFunc(all, func(a, b tally.Seeds) int { return cmp.Compare(a.First, b.First) })
	for _, s := range all {
		if n := len(out); n > 0 && s.First <= out[n-1].Last+1 {
			out[n-1].Last = max(out[n-1].Last, s.Last)
			continue
		}
		out = append(out, s)
	}
	return out
}

// read returns the stored results, or none if there are none yet.
func read(file string) (results, error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out results
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	slices.SortFunc(out, compare)
	return out, nil
}

// write stores results, a line each, so that a diff of them can be read.
func (r results) write(file string) error {
	var b bytes.Buffer
	for k, l := range r {
		raw, err := json.Marshal(l)
		if err != nil {
			return err
		}
		b.WriteString(map[bool]string{true: "[\n", false: ",\n"}[k == 0])
		b.Write(raw)
	}
	b.WriteString("\n]\n")
	return os.WriteFile(file, b.Bytes(), 0o644)
}

// collect adds the lines of a file that a part has written, about a commit.
func (r results) collect(file, commit string) (results, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil // the part has played nothing
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l tally.Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		l.Commit = commit
		r = r.with(l)
	}
	return r, lines.Err()
}
