package witness

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Move is what a judge has to know of a move: its set, how many ordinals move at once and may be down, the namespace
// of each side, and the claim templates whose volumes go along.
type Move struct {
	Set       string
	Window    int
	Down      int
	Source    string
	Dest      string
	OneServer bool // both sides are in one cluster
	Templates []string
}

// Judge judges a history in which every version of every object comes in its order, of both clusters together. It is
// the judge of a Witness without its watches. In such a history no violation is too short to be seen.
type Judge struct {
	move  Move
	r     *record
	disks map[string]string // which disk has the data of a claim of that name
	ticks int64             // the time: one second for each version
}

// NewJudge returns the judge of a move. What it sees before Begin is how things were at the start.
func NewJudge(m Move) *Judge {
	places := [2]place{{0, m.Source}, {1, m.Dest}}
	if m.OneServer {
		places[1].cluster = 0
	}
	return &Judge{move: m, r: newRecord(m.Set, m.Window, places), disks: map[string]string{}}
}

// Clone returns a judge that has seen the same so far.
func (j *Judge) Clone() *Judge {
	next, r := *j, *j.r
	next.r, next.disks = &r, maps.Clone(j.disks)
	for side := range r.pods {
		r.pods[side], r.budgets[side] = maps.Clone(r.pods[side]), maps.Clone(r.budgets[side])
	}
	r.volumes, r.spans, r.lost = maps.Clone(r.volumes), maps.Clone(r.spans), maps.Clone(r.lost)
	r.longest, r.reported = maps.Clone(r.longest), maps.Clone(r.reported)
	r.counted, r.risks, r.broken = slices.Clone(r.counted), slices.Clone(r.risks), slices.Clone(r.broken)
	return &next
}

// Begin ends the description of the start.
func (j *Judge) Begin() {
	for _, pv := range j.r.volumes {
		if ref := pv.Spec.ClaimRef; ref != nil && j.moves(ref.Name) {
			j.disks[ref.Name] = disk(pv)
		}
	}
	j.r.begin()
}

// moves reports whether a claim is one of a template whose volumes go along.
func (j *Judge) moves(claim string) bool {
	return slices.ContainsFunc(j.move.Templates, func(t string) bool { return strings.HasPrefix(claim, t+"-"+j.move.Set+"-") })
}

// See takes the next version of an object, or its end, and returns the promises that are broken by it.
func (j *Judge) See(cluster int, o runtime.Object, gone bool) []string {
	j.ticks++
	before := len(j.r.broken)
	down, sum := j.r.down, j.r.sum
	j.r.take(event{cluster: cluster, object: o, gone: gone, at: time.Unix(j.ticks, 0)})
	if !j.r.started {
		return nil
	}
	found := slices.Clone(j.r.broken[before:])
	if pod, ok := o.(*corev1.Pod); ok && !gone {
		found = append(found, j.mounts(cluster, pod)...)
	}
	if j.r.down > max(j.move.Down, down) {
		found = append(found, fmt.Sprintf("S2: %d ordinals are down, at most %d may be", j.r.down, j.move.Down))
	}
	if j.r.sum > max(j.move.Down, sum) {
		found = append(found, fmt.Sprintf("S3: the budgets allow %d evictions while %d ordinals are down, together at most %d", j.r.sum-j.r.down, j.r.down, j.move.Down))
	}
	return found
}

// mounts reports the disks on which a pod runs and which are not those of its ordinal (S5).
func (j *Judge) mounts(cluster int, pod *corev1.Pod) (found []string) {
	if !ready(pod) || j.r.sideOf(cluster, pod.Namespace) < 0 {
		return nil
	}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		name := v.PersistentVolumeClaim.ClaimName
		for k, pv := range j.r.volumes {
			ref := pv.Spec.ClaimRef
			its := k.cluster == cluster && ref != nil && ref.Namespace == pod.Namespace && ref.Name == name
			want, known := j.disks[name]
			switch {
			case !its || !known:
			case disk(pv) != want:
				found = append(found, fmt.Sprintf("S5: pod %s of %s runs on disk %s, and its data is on %s", pod.Name, pod.Namespace, disk(pv), want))
			case j.upElsewhere(cluster, pod, name):
				found = append(found, fmt.Sprintf("S20: pod %s of %s runs on the disk of claim %s, whose ordinal is up on the other side", pod.Name, pod.Namespace, name))
			}
		}
	}
	return found
}

// upElsewhere reports whether the ordinal of a claim is Ready on the side that a pod is not on.
func (j *Judge) upElsewhere(cluster int, pod *corev1.Pod, claim string) bool {
	n, err := strconv.ParseInt(claim[strings.LastIndex(claim, "-")+1:], 10, 32)
	other := 1 - j.r.sideOf(cluster, pod.Namespace)
	return err == nil && ready(j.r.pods[other][int32(n)])
}
