package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/tally"
)

const fuzzing = "fuzz"

// recipe is the target of the Makefile that fuzzes: its lines name each test and its folder.
var recipe = regexp.MustCompile(`(?m)^\tgo test (\./\S+) -run '\^\$\$' -fuzz '\^(\w+)\$\$'`)

// targets returns the folder and the name of each fuzz test of `make fuzz`.
func targets() ([][2]string, error) {
	raw, err := os.ReadFile("Makefile")
	if err != nil {
		return nil, err
	}
	var out [][2]string
	for _, m := range recipe.FindAllStringSubmatch(string(raw), -1) {
		out = append(out, [2]string{m[1], m[2]})
	}
	if len(out) == 0 {
		return nil, errors.New("the Makefile fuzzes nothing: expected lines such as those of its target fuzz")
	}
	return out, nil
}

// tried is the number in the last line of progress.
var tried = regexp.MustCompile(`execs: (\d+)`)

// fuzz lets each fuzz test try 40,000 inputs, about half a minute. A number and no time: at the end of a time the
// go command may report a failure that is none (https://go.dev/issue/75804).
func fuzz(ctx context.Context) error {
	all, err := targets()
	if err != nil {
		return err
	}
	var failed []error
	for _, t := range all {
		cmd := exec.CommandContext(ctx, "go", "test", t[0], "-run", "^$", "-fuzz", "^"+t[1]+"$", "-fuzztime", "40000x", "-fuzzminimizetime", "100x")
		began := time.Now()
		out, err := cmd.CombinedOutput()
		bad := err != nil
		if bad {
			failed = append(failed, fmt.Errorf("%s: %w\n%s", t[1], err, out))
		}
		n := 0
		if all := tried.FindAllStringSubmatch(string(out), -1); len(all) > 0 {
			if n, err = strconv.Atoi(all[len(all)-1][1]); err != nil {
				return err
			}
		}
		tally.Add(tally.Line{Part: fuzzing, World: strings.TrimPrefix(t[0], "./"), Case: t[1], Number: n, Failed: bad, Seconds: time.Since(began).Seconds()})
	}
	return errors.Join(failed...)
}
