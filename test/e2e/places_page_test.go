//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/e2e/bed"
	"github.com/stsmigrate/stsmigrate/test/performance/bench/traffic"
)

const placesIntro = `Sets whose image is %d MiB of what nothing compresses move between two kind clusters. The nodes of the
destination pull it from a registry that gives each connection %d MiB in a second, and a node pulls three layers
at once. A move begins when no node of the destination has the image. The destination has a control plane that
takes no pods, and three workers, all on the machine of the tests. Volumes are those of the test bed, whose driver
mounts and does not attach. The image of the program that waits in the placeholders is on the nodes.

- *late*: each of three pods needs a node of its own, and the third node joins only %.0f s after a pod has waited for
  it: it is cordoned, and a goroutine of the test frees it, as an autoscaler would. The check nodes-fit is ignored.
- *alike*: six pods go where they like, and the three nodes are alike.

`

const placesWords = `
- *away*: from when the pod is told to end until its successor is Ready, as watches of the test see it.
- *schedule*: from when the pod is there until it has a node.
- *mount*: until its volumes are mounted and it has its sandbox and network, or its image is asked for.
- *image*: until it is pulled, or found on the node.
- *start*: until the container runs; *ready*: until the pod is Ready.
- *elsewhere*: ordinals that went to another node than their placeholder.
- *reads, writes*: requests of apply per ordinal, without those for its Lease. Checks that are made again since a wave
  takes longer, and their dry runs, are among the reads.
`

// writePlaces writes the page.
func writePlaces(file, commit string, b *bed.Bed, all []*journey) error {
	version, err := b.East.Set.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	var w strings.Builder
	fmt.Fprintf(&w, "# What the place of an ordinal is worth\n\n`make places RESULTS=docs/results/%s`, at commit %s, Kubernetes %s, %d cores, %s.\n\n",
		filepath.Base(file), commit, version.GitVersion, runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly))
	fmt.Fprintf(&w, placesIntro, imageSize>>20, pullRate>>20, lateness.Seconds())
	w.WriteString(placesGoals(all))
	w.WriteString("\n## By how the places are taken\n\nSeconds: median / worst of the ordinals of a move.\n\n")
	fmt.Fprintf(&w, "| scene | --placeholder | away | %s | elsewhere | reads | writes |\n|%s\n", strings.Join(spans(), " | "), strings.Repeat(" --- |", len(spans())+6))
	for _, j := range all {
		fmt.Fprintf(&w, "| %s | %s | %s", j.name, j.proof, j.spread((*stretch).away))
		for k := range spans() {
			fmt.Fprintf(&w, " | %s", j.spread(func(s *stretch) time.Duration { return s.span(k) }))
		}
		elsewhere := "-"
		if j.proof != plans.NoProof {
			elsewhere = fmt.Sprintf("%d of %d", j.elsewhere(), len(j.ordinals))
		}
		fmt.Fprintf(&w, " | %s | %.0f | %.0f |\n", elsewhere, j.each(traffic.Read)+j.each(traffic.Trial), j.each(traffic.Write))
	}
	w.WriteString(placesWords)
	w.WriteString("\n## Each ordinal\n\n")
	fmt.Fprintf(&w, "| scene | --placeholder | ordinal | away | %s | its place | its node |\n|%s\n", strings.Join(spans(), " | "), strings.Repeat(" --- |", len(spans())+6))
	for _, j := range all {
		for _, name := range j.order() {
			s := j.ordinals[name]
			fmt.Fprintf(&w, "| %s | %s | %s | %s", j.name, j.proof, name, seconds(s.away()))
			for k := range spans() {
				fmt.Fprintf(&w, " | %s", seconds(s.span(k)))
			}
			fmt.Fprintf(&w, " | %s | %s |\n", cmp.Or(short(s.place), "-"), short(s.node))
		}
	}
	w.WriteString(placesRequests(all))
	return os.WriteFile(file, []byte(w.String()), 0o644)
}

// pairs calls what with each move whose places are warm, and the same one without places.
func pairs(all []*journey, what func(off, warm *journey)) {
	for _, off := range all {
		for _, warm := range all {
			if off.name == warm.name && off.proof == plans.NoProof && warm.proof == plans.Warm {
				what(off, warm)
			}
		}
	}
}

// placesGoals compares what was measured with what is wanted.
func placesGoals(all []*journey) string {
	var b strings.Builder
	b.WriteString("## Goals\n\n| with warm places | at most | here | |\n| --- | --- | --- | --- |\n")
	row := func(name string, most, is float64) {
		met := "met"
		if is > most {
			met = "MISSED"
		}
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %s |\n", name, most, is, met)
	}
	pairs(all, func(off, warm *journey) {
		times := warm.sorted(func(s *stretch) time.Duration { return s.at[pulled].Sub(s.at[created]) })
		unmounted := warm.sorted(func(s *stretch) time.Duration { return s.at[pulled].Sub(s.at[created]) - s.span(int(scheduled)) })
		row(warm.name+": schedule, mount and image, median in seconds", 0.5, times[len(times)/2].Seconds())
		row(warm.name+": schedule, mount and image, worst in seconds", 0.5, times[len(times)-1].Seconds())
		row(warm.name+": schedule and image alone, worst in seconds", 0.5, unmounted[len(unmounted)-1].Seconds())
		row(warm.name+": ordinals elsewhere", 0, float64(warm.elsewhere()))
		row(warm.name+": writes per ordinal, more than without", 4, warm.each(traffic.Write)-off.each(traffic.Write))
		row(warm.name+": reads per ordinal, more than without", 4, warm.each(traffic.Read)-off.each(traffic.Read))
	})
	return b.String()
}

// placesRequests returns what is requested more often with warm places, at least once for two ordinals.
func placesRequests(all []*journey) string {
	var b strings.Builder
	b.WriteString("\n## Requests per ordinal\n\nThose that differ by a half or more.\n\n| scene | kind | of | off | warm |\n| --- | --- | --- | --- | --- |\n")
	pairs(all, func(off, warm *journey) {
		for kind, name := range []string{"read", "write", "review", "dry run"} {
			of := map[string]int{}
			maps.Copy(of, warm.requests[traffic.Kind(kind)])
			maps.Copy(of, off.requests[traffic.Kind(kind)])
			for _, resource := range slices.Sorted(maps.Keys(of)) {
				without := float64(off.requests[traffic.Kind(kind)][resource]) / float64(len(off.ordinals))
				with := float64(warm.requests[traffic.Kind(kind)][resource]) / float64(len(warm.ordinals))
				if with-without >= 0.5 || without-with >= 0.5 {
					fmt.Fprintf(&b, "| %s | %s | %s | %.1f | %.1f |\n", off.name, name, resource, without, with)
				}
			}
		}
	})
	return b.String()
}

// each returns how many requests of a kind there were for each ordinal.
func (j *journey) each(kind traffic.Kind) float64 {
	return float64(j.requests.number(kind)) / float64(len(j.ordinals))
}

// short returns the name of a node without that of its cluster.
func short(node string) string { return node[strings.LastIndex(node, "-")+1:] }

// order returns the ordinals as they moved: the highest first.
func (j *journey) order() []string {
	return slices.SortedFunc(maps.Keys(j.ordinals), func(a, b string) int { return cmp.Compare(b, a) })
}

// sorted returns a time of all ordinals, the shortest first.
func (j *journey) sorted(of func(*stretch) time.Duration) (all []time.Duration) {
	for _, s := range j.ordinals {
		all = append(all, of(s))
	}
	slices.Sort(all)
	return all
}

// spread returns the median and the worst of a time.
func (j *journey) spread(of func(*stretch) time.Duration) string {
	all := j.sorted(of)
	return fmt.Sprintf("%s / %s", seconds(all[len(all)/2]), seconds(all[len(all)-1]))
}
