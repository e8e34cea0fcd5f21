package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
	"github.com/stsmigrate/stsmigrate/test/performance/bench/traffic"
)

// profiler is a source file of slicecontroller, which has no flag for profiles: it writes one of the CPU
// time from its start to SIGTERM.
//
//go:embed profiler.go.txt
var profiler []byte

// build builds slicecontroller, with the profiler if profiled is true.
func build(ctx context.Context, dir string, profiled bool) (string, error) {
	if !profiled {
		return fixture.Build(ctx, dir, "slicecontroller")
	}
	folder, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/stsmigrate/stsmigrate/cmd/slicecontroller").Output()
	if err != nil {
		return "", fmt.Errorf("looking for the sources of slicecontroller: %w", err)
	}
	source, overlay := filepath.Join(dir, "profiler.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(strings.TrimSpace(string(folder)), "profiler.go"): source}})
	if err != nil {
		return "", err
	}
	for path, text := range map[string][]byte{source: profiler, overlay: replace} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return "", err
		}
	}
	path := filepath.Join(dir, "slicecontroller")
	out, err := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", path, "github.com/stsmigrate/stsmigrate/cmd/slicecontroller").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building slicecontroller with a profiler: %w\n%s", err, out)
	}
	return path, nil
}

// profile returns the environment of a contestant that writes a profile of its work in a namespace.
func (c contestant) profile(namespace string) ([]string, error) {
	return append(os.Environ(), "CPU_PROFILE="+filepath.Join(c.profiles, namespace+".pprof")), os.MkdirAll(c.profiles, 0o755)
}

// kinds returns how many requests there were of each kind, the most frequent first.
func kinds(calls []traffic.Call) string {
	count := map[string]int{}
	for _, c := range calls {
		count[c.Verb+" "+c.Resource]++
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	var out []string
	for _, n := range names {
		out = append(out, fmt.Sprintf("%d %s", count[n], n))
	}
	return strings.Join(out, ", ")
}
