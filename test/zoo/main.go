package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/tally"
	"github.com/stsmigrate/stsmigrate/test/internal/today"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := zoo(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "zoo:", err)
		os.Exit(1) //nolint:gocritic // there is nothing left to stop
	}
}

type options struct {
	quick bool
	only  string
	share int
}

func zoo(ctx context.Context) error {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "leave out the variants that only the simulation or control planes find")
	flag.StringVar(&o.only, "only", "", "a regular expression for the ids of the variants to play")
	flag.IntVar(&o.share, "share", 1, "play one variant of this many, other ones every day (ZOO_DAY=N for those of that day)")
	flag.Parse()
	all, err := selected(o)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "stsmigrate-zoo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	user, err := userCache(ctx)
	if err != nil {
		return err
	}
	if err := baseline(ctx, user, all); err != nil {
		return err
	}
	began := time.Now()
	found, err := play(ctx, dir, user, all)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	escaped := slices.DeleteFunc(slices.Clone(found), func(r result) bool { return r.why == "" })
	fmt.Printf("%d variants in %s: %d caught, %d not\n", len(found), time.Since(began).Round(time.Second), len(found)-len(escaped), len(escaped))
	if len(escaped) > 0 {
		return fmt.Errorf("%d of %d variants are not caught, or cannot be played", len(escaped), len(found))
	}
	return nil
}

func selected(o options) ([]variant, error) {
	all, err := variants()
	if err != nil {
		return nil, err
	}
	of := map[string]int{}
	for _, v := range all {
		of[v.folder()]++
	}
	for folder, n := range of {
		tally.Add(tally.Line{Part: "zoo", World: folder, Of: n})
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, err
	}
	var out []variant
	for _, v := range all {
		if only.MatchString(v.ID) && (!o.quick || !v.slow()) {
			out = append(out, v)
		}
	}
	all, out = out, nil
	for k, v := range all {
		if (k+today.Day("ZOO_DAY"))%o.share == 0 {
			out = append(out, v)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no variant is selected")
	}
	return out, nil
}

// runs returns what to run for some tests: a folder and a pattern each. A test of which one case is named is run
// by itself, since a pattern with a case would select it in the others too.
func runs(tests []string) [][2]string {
	var out [][2]string
	whole := map[string][]string{}
	for _, t := range tests {
		folder, name, _ := strings.Cut(t, " ")
		if test, of, found := strings.Cut(name, "/"); found {
			out = append(out, [2]string{folder, "^" + test + "$/" + of})
		} else if !slices.Contains(whole[folder], name) {
			whole[folder] = append(whole[folder], name)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(whole)) {
		out = append(out, [2]string{folder, "^(" + strings.Join(whole[folder], "|") + ")$"})
	}
	return out
}

// baseline plays all tests on the product as it is: a test that fails there catches nothing.
func baseline(ctx context.Context, user string, all []variant) error {
	var tests []string
	for _, v := range all {
		tests = append(tests, v.Tests...)
	}
	slices.Sort(tests)
	for _, r := range runs(slices.Compact(tests)) {
		if out, err := test(ctx, user, "", r[0], r[1]); err != nil {
			return fmt.Errorf("the tests of %s fail on the product as it is: %w\n%s", r[0], err, out)
		}
	}
	return nil
}

// result is what became of a variant. why is empty for a variant that was caught.
type result struct {
	variant
	why  string
	took time.Duration
}

// play plays the variants, two at a time, and returns the results in the order of the variants.
func play(ctx context.Context, dir, user string, all []variant) ([]result, error) {
	var caches [2]*cache
	defer func() {
		for _, c := range caches {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	for k := range caches {
		var err error
		if caches[k], err = newCache(user); err != nil {
			return nil, err
		}
	}
	out := make([]result, len(all))
	next := make(chan int)
	var players sync.WaitGroup
	for _, c := range caches {
		players.Go(func() {
			for k := range next {
				began := time.Now()
				why := judge(ctx, dir, c.dir, all[k])
				if err := c.forget(); err != nil && why == "" {
					why = err.Error()
				}
				out[k] = result{all[k], why, time.Since(began)}
				if ctx.Err() != nil {
					continue // a test that was stopped shows nothing
				}
				word := "caught"
				if why != "" {
					word = "NOT CAUGHT"
				}
				tally.Add(tally.Line{Part: "zoo", World: all[k].folder(), Case: all[k].ID, Failed: why != "", Seconds: out[k].took.Seconds()})
				fmt.Printf("%-10s %-16s %5.1f s  %s%s\n", word, all[k].ID, out[k].took.Seconds(), all[k].What, indented(why))
			}
		})
	}
	for k := range all {
		next <- k
	}
	close(next)
	players.Wait()
	return out, nil
}

func indented(why string) string {
	if why == "" {
		return ""
	}
	return "\n    " + strings.ReplaceAll(strings.TrimSpace(why), "\n", "\n    ")
}

// judge returns why a variant was not caught by its tests, or "".
func judge(ctx context.Context, dir, cache string, v variant) string {
	root, err := os.Getwd()
	if err != nil {
		return err.Error()
	}
	path, text, err := newProduct(root).broken(v)
	if err != nil {
		return err.Error()
	}
	file := filepath.Join(dir, v.ID+".go")
	overlay := filepath.Join(dir, v.ID+".json")
	raw, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, path): file}})
	if err != nil {
		return err.Error()
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err.Error()
	}
	if err := os.WriteFile(overlay, raw, 0o600); err != nil {
		return err.Error()
	}
	for _, r := range runs(v.Tests) {
		folder, pattern := r[0], r[1]
		out, err := test(ctx, cache, overlay, folder, pattern)
		switch {
		case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
			return "it does not compile:\n" + string(out)
		case err == nil:
			return fmt.Sprintf("the tests of %s pass: %s", folder, pattern)
		}
		if missing := notFailed(out, pattern); missing != "" {
			return fmt.Sprintf("%s passes in %s", missing, folder)
		}
	}
	return ""
}

// notFailed returns the first test of the pattern that has not failed. A test binary that has died failed whole.
func notFailed(out []byte, pattern string) string {
	if bytes.Contains(out, []byte("\npanic: ")) || bytes.HasPrefix(out, []byte("panic: ")) || bytes.Contains(out, []byte("fatal error: ")) {
		return ""
	}
	whole, _, _ := strings.Cut(pattern, "/")
	for _, name := range strings.Split(strings.Trim(whole, "^()$"), "|") {
		if !bytes.Contains(out, []byte("--- FAIL: "+name+" (")) {
			return name
		}
	}
	return ""
}

// limit is how long the tests of a variant may take. A variant that makes them wait for ever is caught by it.
const limit = "5m"

func test(ctx context.Context, cache, overlay, folder, pattern string) ([]byte, error) {
	args := []string{"test", "-vet=off", "-count=1", "-timeout", limit, "-run", pattern}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+folder)...)
	// The same share of the simulation every day, and what a variant breaks is no result of the product.
	cmd.Env = append(os.Environ(), "GOCACHE="+cache, "SIM_DAY=1", tally.File+"=")
	return cmd.CombinedOutput()
}
