package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
	"github.com/stsmigrate/stsmigrate/test/performance/bench/traffic"
)

// counts holds the requests of a whole move, and how long apply took.
type counts struct {
	apply, finalize []traffic.Call
	watched         int64 // bytes that the watches of apply delivered
	took            time.Duration
}

// count moves a set through counting proxies, up to and including finalize.
func (b *bench) count(ctx context.Context, w way) (_ *counts, lines []line, err error) {
	proxies, kubeconfig, err := b.proxies(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, proxies.Close()) }()
	if err := b.plan(ctx, kubeconfig, w); err != nil {
		return nil, nil, err
	}
	proxies.Take() // drop the requests of plan: it writes nothing that stays
	proxies.TakeWatched()
	var out counts
	start := time.Now()
	if lines, err = timed(b.apply(ctx, kubeconfig, w)); err != nil {
		return nil, nil, err
	}
	out.took, out.apply, out.watched = time.Since(start), proxies.Take(), proxies.TakeWatched()
	_, err = timed(fixture.Command(ctx, kubeconfig, b.dir, b.stsmigrate, "finalize", fixture.Name, "-n", w.arrived().Namespace, "--context", b.destination(w).Name, "--yes"))
	out.finalize = proxies.Take()
	return &out, lines, err
}

func (b *bench) proxies(ctx context.Context) (*traffic.Counter, string, error) {
	kubeconfig := filepath.Join(b.dir, "counting")
	c, err := traffic.Listen(ctx, kubeconfig, b.bed.East, b.bed.West)
	return c, kubeconfig, err
}

// planned is the size of the set that is planned and not moved.
const planned = 60

// planned counts the requests of a plan that is not carried out.
func (b *bench) planned(ctx context.Context) (_ int, err error) {
	w := way{ordinals: planned, window: 1}
	fmt.Printf("A plan of %d ordinals ...\n", w.ordinals)
	if err := b.install(ctx, w); err != nil {
		return 0, err
	}
	proxies, kubeconfig, err := b.proxies(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, proxies.Close()) }()
	err = b.plan(ctx, kubeconfig, w)
	return len(proxies.Take()), err
}

// bytes returns the bytes of all answers of apply, watches included.
func (c *counts) bytes() int64 {
	sum := c.watched
	for _, k := range c.apply {
		sum += k.Bytes
	}
	return sum
}

// number counts the calls of a kind, by resource.
func number(calls []traffic.Call, kind traffic.Kind) map[string]int {
	out := map[string]int{}
	for _, c := range calls {
		if c.Kind == kind {
			out[c.Resource]++
		}
	}
	return out
}

func sum(m map[string]int) int {
	total := 0
	for _, n := range m {
		total += n
	}
	return total
}

// writeTable returns a table of the writes, by resource, and separately of the requests that only
// look like writes, and the reads.
func writeTable(c *counts, ordinals int32) string {
	apply, finalize := number(c.apply, traffic.Write), number(c.finalize, traffic.Write)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "API WRITES\tAPPLY\tPER ORDINAL\tFINALIZE\tPER ORDINAL")
	kinds := maps.Clone(apply)
	maps.Copy(kinds, finalize)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		writeRow(w, kind, apply[kind], finalize[kind], ordinals)
	}
	writeRow(w, "all", sum(apply), sum(finalize), ordinals)
	for _, besides := range []struct {
		name string
		kind traffic.Kind
	}{{"not writes: access reviews", traffic.Review}, {"not writes: dry runs", traffic.Trial}, {"not writes: reads", traffic.Read}} {
		writeRow(w, besides.name, sum(number(c.apply, besides.kind)), sum(number(c.finalize, besides.kind)), ordinals)
	}
	_ = w.Flush() // into memory
	return b.String()
}

func writeRow(w *tabwriter.Writer, name string, apply, finalize int, ordinals int32) {
	n := float64(ordinals)
	fmt.Fprintf(w, "%s\t%d\t%.1f\t%d\t%.1f\n", name, apply, float64(apply)/n, finalize, float64(finalize)/n)
}

// requestTable returns a table of the requests in which apply spent its time. The requests follow
// one another, except those for the Lease, so the rest of the time is waiting and computing.
// Requests that occur less than once per two ordinals share one row.
func requestTable(c *counts, ordinals int32) string {
	took := map[string][]time.Duration{}
	for _, k := range c.apply {
		took[k.Verb+" "+k.Resource] = append(took[k.Verb+" "+k.Resource], k.Took)
	}
	const rest = "others, once per move"
	for _, name := range slices.Sorted(maps.Keys(took)) {
		if 2*len(took[name]) < int(ordinals) {
			took[rest] = append(took[rest], took[name]...)
			delete(took, name)
		}
	}
	rows := slices.SortedFunc(maps.Keys(took), func(a, b string) int {
		return cmp.Or(cmp.Compare(total(took[b]), total(took[a])), cmp.Compare(a, b))
	})
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "REQUESTS OF APPLY\tPER ORDINAL\tMEDIAN\tP90\tTIME PER ORDINAL\tSHARE OF APPLY")
	row := func(name string, took []time.Duration) {
		s := summarize(took)
		fmt.Fprintf(w, "%s\t%.1f\t%s\t%s\t%s\t%s\n", name, float64(len(took))/float64(ordinals), milliseconds(s.median), milliseconds(s.p90),
			milliseconds(total(took)/time.Duration(ordinals)), percent(total(took), c.took))
	}
	var all []time.Duration
	for _, name := range rows {
		row(name, took[name])
		all = append(all, took[name]...)
	}
	row("all", all)
	_ = w.Flush() // into memory
	return b.String()
}

func total(values []time.Duration) time.Duration {
	var sum time.Duration
	for _, v := range values {
		sum += v
	}
	return sum
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
