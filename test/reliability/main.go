package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/tally"
)

// Where the results and the pages are, below the root of the repository.
const (
	stored = "test/reliability/results.json"
	tables = "test/reliability/tables"
	page   = "docs/reliability.md"
	beside = "docs/development/reliability-tables.md"
	matrix = "docs/images/reliability.svg"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := reliability(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "reliability:", err)
		os.Exit(1) //nolint:gocritic // there is nothing left to stop
	}
}

type options struct {
	long   time.Duration
	only   string
	add    string
	commit string
}

func reliability(ctx context.Context) error {
	var o options
	flag.DurationVar(&o.long, "for", 12*time.Hour, "begin no more rounds after this time, such as 30m")
	flag.StringVar(&o.only, "only", "", "a regular expression for the parts to play")
	flag.StringVar(&o.add, "add", "", "play nothing: add the lines of this file, which a part wrote to the file that TALLY names")
	flag.StringVar(&o.commit, "commit", "", "the commit that those lines are about (default: the one that is checked out)")
	flag.Parse()
	if o.commit == "" {
		out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude", "*").Output()
		if err != nil {
			return fmt.Errorf("which commit is this: %w", err)
		}
		o.commit = strings.TrimSpace(string(out))
	}
	all, err := read(stored)
	if err != nil {
		return err
	}
	if o.add != "" {
		if all, err = all.collect(o.add, o.commit); err != nil {
			return err
		}
		return publish(all)
	}
	return play(ctx, o, all)
}

// play plays rounds of the parts until all was played or the time is over, and writes the pages after each round.
func play(ctx context.Context, o options, all results) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "stsmigrate-reliability-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	began, failed := time.Now(), []string{}
	for round, more := 0, true; more; round++ {
		more = false
		for _, p := range parts() {
			if !only.MatchString(p.name) || round >= p.share {
				continue
			}
			if time.Since(began) > o.long {
				more = false
				break
			}
			more = true
			fmt.Printf("%s  %s, %d of %d\n", time.Since(began).Round(time.Second), p.name, round+1, p.share)
			file := filepath.Join(dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(p.name, " ", "-"), round))
			if err := p.play(ctx, round, file); err != nil {
				failed = append(failed, fmt.Sprintf("%s, round %d: %v", p.name, round+1, err))
			}
			if all, err = all.collect(file, o.commit); err != nil {
				return err
			}
			if err := errors.Join(publish(all), ctx.Err()); err != nil {
				return err
			}
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d rounds failed:\n%s", len(failed), strings.Join(failed, "\n"))
	}
	return nil
}

// publish stores results, and writes the page and its picture.
func publish(all results) error {
	known, err := readTables(tables)
	if err != nil {
		return err
	}
	if err := all.write(stored); err != nil {
		return err
	}
	users, long := write(all, known)
	return errors.Join(
		os.WriteFile(page, []byte(users), 0o644),
		os.WriteFile(beside, []byte(long), 0o644),
		os.WriteFile(matrix, []byte(draw(all).String()), 0o644),
	)
}

// part is one part of the proof. A round of it plays one share of that many.
type part struct {
	name  string
	share int
	// run returns the arguments of go and the environment of a round; nil for the fuzz tests.
	run func(share, round int) (args, env []string)
}

func parts() []part {
	day := func(name string, round int) string { return fmt.Sprintf("%s=%d", name, round) }
	of := func(name string, share int) string { return fmt.Sprintf("%s=%d", name, share) }
	test := func(folder, pattern string) []string {
		args := []string{"test", "-count=1", "-timeout", "24h", "./" + folder}
		if pattern != "" {
			args = append(args, "-run", pattern)
		}
		return args
	}
	return []part{
		{"simulation", 40, func(share, round int) ([]string, []string) {
			return test("test/simulation", ""), []string{of("SIM_LONG", share), day("SIM_DAY", round)}
		}},
		{"zoo", 60, func(share, round int) ([]string, []string) {
			return []string{"run", "./test/zoo", "-share", fmt.Sprint(share)}, []string{day("ZOO_DAY", round)}
		}},
		{"control planes", 90, func(share, round int) ([]string, []string) {
			return test("test/acceptance/move", "TestAFaultAtAnyWrite"), []string{of("FAULTS", share), day("MOVE_DAY", round), "MOVE_ALL=1"}
		}},
		{"upgrade and restore", 1, func(int, int) ([]string, []string) {
			return test("test/acceptance/move", "TestTheControlPlanesAreUpgraded|TestABackupThatIsRestored"), []string{"MOVE_ALL=1", "UPGRADE=1"}
		}},
		{name: fuzzing, share: 10},
	}
}

// play plays one round. What it has played is in the file afterwards, also if it has failed.
func (p part) play(ctx context.Context, round int, file string) error {
	if err := os.Setenv(tally.File, file); err != nil {
		return err
	}
	if p.run == nil {
		return fuzz(ctx)
	}
	args, env := p.run(p.share, round)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		fmt.Printf("%s\n", out)
	}
	return err
}
