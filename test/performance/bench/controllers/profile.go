package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/stsmigrate/stsmigrate/slicecontroller"
	"github.com/stsmigrate/stsmigrate/test/internal/slicerig"
	"github.com/stsmigrate/stsmigrate/test/performance/bench/traffic"
)

// serving is the first argument of a process of this program that is slicecontroller and writes a
// profile of its CPU time: slicecontroller has no flag for that.
const serving = "serve"

// profiled returns a contestant that runs in a process of this program. Its profiles are written to
// a folder; `go tool pprof` reads several of them together.
func (c contestant) profiled(dir, kubeconfig string) (contestant, error) {
	program, err := os.Executable()
	if err != nil {
		return c, err
	}
	manage := slicerig.Native
	if c.slices {
		manage = slicerig.Slice
	}
	c.program, c.args, c.profiles = program, []string{serving, "-manage", manage, "-kubeconfig", kubeconfig}, filepath.Join(dir, c.name)
	return c, nil
}

// serve is slicecontroller until ctx ends, and writes the profile of its CPU time.
func serve(ctx context.Context, args []string) (err error) {
	f := flag.NewFlagSet(serving, flag.ExitOnError)
	manage := f.String("manage", "", "the kind of sets")
	kubeconfig := f.String("kubeconfig", "", "the cluster")
	path := f.String("profile", "", "the file of the profile")
	if err := f.Parse(args); err != nil {
		return err
	}
	out, err := os.Create(*path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := pprof.StartCPUProfile(out); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = qps, burst
	o := slicecontroller.Options{Namespace: "default", MetricsAddress: "0", HealthAddress: "0", Workers: 5, Now: time.Now}
	if *manage == slicerig.Native {
		return slicecontroller.RunNative(ctx, config, o)
	}
	return slicecontroller.Run(ctx, config, o)
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
