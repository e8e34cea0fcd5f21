package witness

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// The annotations of a move, as its documentation defines them.
const (
	stamp = "stsmigrate.dev/stamp"
	// held is on a volume from the write that protects it to the write that restores it. The stamp alone may
	// also be on a volume before and after that.
	held = "stsmigrate.dev/reclaim-policy"
)

// place is the cluster and namespace of a side.
type place struct {
	cluster   int
	namespace string
}

// span is the range of ordinals of a set: [start, end).
type span struct{ start, end int32 }

func (s span) has(o int32) bool { return o >= s.start && o < s.end }

func (s span) String() string { return fmt.Sprintf("[%d,%d)", s.start, s.end) }

type volumeKey struct {
	cluster int
	name    string
}

// record is the state at one moment and the violations so far. Index 0 is the source, 1 the destination.
type record struct {
	set     string
	window  int
	places  [2]place
	pods    [2]map[int32]*corev1.Pod
	sets    [2]*span
	budgets [2]map[string]*policyv1.PodDisruptionBudget
	volumes map[volumeKey]*corev1.PersistentVolume

	// read is nil if the events of both sides have one order.
	read reader

	// unsettled is true while some watches have resumed after an outage and others have not yet.
	unsettled bool

	started  bool
	whole    span    // the ordinals of both sets at the start
	counted  []int32 // the ordinals that were Ready at the start
	spans    map[int32]Span
	lost     map[int32]time.Time     // since when an ordinal has been down
	longest  map[int32]time.Duration // the longest time that it was down
	down     int                     // now
	worst    int
	sum      int         // of the ordinals that are down now, and the evictions that are allowed besides
	risks    []time.Time // since when the sum is 1, 2, ... or more
	atRisk   int
	broken   []string
	reported map[string]bool
}

func newRecord(set string, window int, places [2]place) *record {
	r := &record{
		set: set, window: window, places: places, volumes: map[volumeKey]*corev1.PersistentVolume{},
		spans: map[int32]Span{}, lost: map[int32]time.Time{}, longest: map[int32]time.Duration{}, reported: map[string]bool{},
	}
	for i := range places {
		r.pods[i] = map[int32]*corev1.Pod{}
		r.budgets[i] = map[string]*policyv1.PodDisruptionBudget{}
	}
	return r
}

func (r *record) violate(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !r.reported[text] {
		r.reported[text] = true
		r.broken = append(r.broken, text)
	}
}

// begin ends the recording of the initial state.
func (r *record) begin() {
	r.started = true
	for i := range r.pods {
		for o, p := range r.pods[i] {
			if ready(p) && !slices.Contains(r.counted, o) {
				r.counted = append(r.counted, o)
			}
		}
		if s := r.sets[i]; s != nil && s.end > s.start {
			if r.whole == (span{}) {
				r.whole = *s
			}
			r.whole = span{min(r.whole.start, s.start), max(r.whole.end, s.end)}
		}
	}
}

func (r *record) report() *Report {
	return &Report{
		Violations: slices.Clone(r.broken), MaxUnavailable: r.worst, MaxAtRisk: r.atRisk, Down: maps.Clone(r.longest), Spans: maps.Clone(r.spans),
	}
}

// settle compares everything, after an outage.
func (r *record) settle(at time.Time) {
	r.unsettled, r.risks = false, nil
	for o := range r.pods[0] {
		r.twice(o)
	}
	r.ranges()
	r.measure(at)
}

// sideOf returns the side of a namespace, or -1.
func (r *record) sideOf(cluster int, namespace string) int {
	return slices.Index(r.places[:], place{cluster, namespace})
}

func (r *record) take(e event) {
	switch o := e.object.(type) {
	case *corev1.Pod:
		if side := r.sideOf(e.cluster, o.Namespace); side >= 0 {
			r.pod(side, o, e)
		}
	case *appsv1.StatefulSet:
		if side := r.sideOf(e.cluster, o.Namespace); side >= 0 && o.Name == r.set {
			r.slice(side, o, e.gone)
		}
	case *policyv1.PodDisruptionBudget:
		if side := r.sideOf(e.cluster, o.Namespace); side >= 0 {
			r.budgets[side][o.Name] = o
			if e.gone {
				delete(r.budgets[side], o.Name)
			}
		}
	case *corev1.PersistentVolume:
		r.volume(e.cluster, o, e.gone)
	}
	r.measure(e.at)
}

// pod checks that no ordinal has pods on both sides (S1).
func (r *record) pod(side int, p *corev1.Pod, e event) {
	number, ours := strings.CutPrefix(p.Name, r.set+"-")
	n, err := strconv.ParseInt(number, 10, 32)
	if !ours || err != nil {
		return
	}
	o := int32(n)
	if e.gone {
		delete(r.pods[side], o)
	} else {
		r.pods[side][o] = p
	}
	r.twice(o)
	if r.started {
		r.time(side, o, p, e)
	}
}

func (r *record) twice(o int32) {
	here, there := r.pods[0][o], r.pods[1][o]
	if !alive(here) || !alive(there) || r.unsettled {
		return
	}
	if r.proven(func(s sight) bool { return same(s.pods[0], here) && same(s.pods[1], there) }) {
		r.violate("S1: pod %s exists on both sides (terminating: %s)", here.Name, terminating(here, there))
	}
}

func (r *record) time(side int, o int32, p *corev1.Pod, e event) {
	s := r.spans[o]
	if side == 0 {
		s.leaves(p, e)
	} else if !e.gone {
		s.arrives(p, e)
	}
	r.spans[o] = s
}

// leaves records an event of the pod on the source.
func (s *Span) leaves(p *corev1.Pod, e event) {
	if e.gone {
		first(&s.SourceGone, e.at)
	} else if p.DeletionTimestamp != nil {
		first(&s.SourceDeleting, e.at)
	}
}

// arrives records an event of the pod on the destination.
func (s *Span) arrives(p *corev1.Pod, e event) {
	first(&s.DestinationCreated, e.at)
	if p.Status.Phase == corev1.PodRunning {
		first(&s.DestinationRunning, e.at)
	}
	if ready(p) {
		first(&s.DestinationReady, e.at)
	}
}

// first records a time unless there is one.
func first(t *time.Time, at time.Time) {
	if t.IsZero() {
		*t = at
	}
}

// slice checks that no ordinal is in both ranges, and that no more of the initial ordinals than one wave has
// are in neither range (S7).
func (r *record) slice(side int, set *appsv1.StatefulSet, gone bool) {
	s := rangeOf(set)
	r.sets[side] = &s
	if gone {
		r.sets[side] = &span{}
	}
	r.ranges()
}

func (r *record) ranges() {
	a, b := r.sets[0], r.sets[1]
	if a == nil || b == nil || r.unsettled {
		return
	}
	seem := func(s sight) bool { return *s.sets[0] == *a && *s.sets[1] == *b }
	if low, high := max(a.start, b.start), min(a.end, b.end); low < high && r.proven(seem) {
		r.violate("S7: ordinals %s are in the ranges of both sets (%s and %s)", span{low, high}, a, b)
	}
	homeless := 0
	for o := r.whole.start; o < r.whole.end; o++ {
		if !a.has(o) && !b.has(o) {
			homeless++
		}
	}
	if homeless > r.window && r.proven(seem) {
		r.violate("S7: %d ordinals are in the range of neither set (%s and %s)", homeless, a, b)
	}
}

// volume checks that a volume of the move always names a claim of the move, always means the same disk, and
// is Retain while it is protected (S4, S5).
func (r *record) volume(cluster int, pv *corev1.PersistentVolume, gone bool) {
	k := volumeKey{cluster, pv.Name}
	before := r.volumes[k]
	if before == nil && !r.claims(cluster, pv.Spec.ClaimRef) {
		return
	}
	switch {
	case pv.Spec.ClaimRef == nil:
		r.violate("S5: volume %s has an empty claimRef", pv.Name)
	case !r.claims(cluster, pv.Spec.ClaimRef):
		r.violate("S5: volume %s is promised to claim %s/%s", pv.Name, pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name)
	}
	if _, isHeld := pv.Annotations[held]; isHeld {
		r.heldVolume(pv, gone)
	}
	if before != nil && disk(before) != disk(pv) {
		r.violate("S4: volume %s meant disk %s and means %s", pv.Name, disk(before), disk(pv))
	}
	r.volumes[k] = pv
	if gone {
		delete(r.volumes, k)
		return
	}
	r.twins(k)
}

func (r *record) heldVolume(pv *corev1.PersistentVolume, gone bool) {
	switch {
	case pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		r.violate("S4: volume %s is protected and its reclaim policy is %s", pv.Name, pv.Spec.PersistentVolumeReclaimPolicy)
	case gone && pv.Status.Phase == corev1.VolumeBound:
		r.violate("S4: volume %s was deleted while it was protected and Bound", pv.Name)
	}
}

// twins reports other volumes of the same cluster that mean the same disk.
func (r *record) twins(k volumeKey) {
	for other, twin := range r.volumes {
		if other != k && other.cluster == k.cluster && disk(twin) == disk(r.volumes[k]) {
			r.violate("S5: volumes %s and %s of one cluster mean the same disk %s", min(other.name, k.name), max(other.name, k.name), disk(twin))
		}
	}
}

// claims reports whether a claimRef names a namespace of this move.
func (r *record) claims(cluster int, ref *corev1.ObjectReference) bool {
	return ref != nil && r.sideOf(cluster, ref.Namespace) >= 0
}

func disk(pv *corev1.PersistentVolume) string {
	if pv.Spec.CSI == nil {
		return pv.Name
	}
	return pv.Spec.CSI.Driver + "/" + pv.Spec.CSI.VolumeHandle
}

// measure counts the ordinals that are down, and the evictions that are allowed besides.
func (r *record) measure(at time.Time) {
	if !r.started || r.unsettled {
		return
	}
	down := 0
	for _, o := range r.counted {
		since, was := r.lost[o]
		switch up := ready(r.pods[0][o]) || ready(r.pods[1][o]); {
		case !up:
			down++
			if !was {
				r.lost[o] = at
			}
		case was:
			r.longest[o] = max(r.longest[o], at.Sub(since))
			delete(r.lost, o)
		}
	}
	if down <= max(r.worst, r.window) || r.proven(func(s sight) bool { return r.downIn(s) >= down }) {
		r.worst = max(r.worst, down)
	}
	r.down = down
	here, marked := allowed(r.budgets[0])
	there, markedToo := allowed(r.budgets[1])
	if !marked || !markedToo {
		here, there, down = 0, 0, 0
	}
	r.sum = here + there + down
	r.risk(r.sum, at)
}

// downIn counts the ordinals that are Ready on neither side.
func (r *record) downIn(s sight) (n int) {
	for _, o := range r.counted {
		name := fmt.Sprintf("%s-%d", r.set, o)
		if !ready(s.pods[0][name]) && !ready(s.pods[1][name]) {
			n++
		}
	}
	return n
}

// lag is the longest delay between two watches on a busy machine. A wave takes longer.
const lag = 300 * time.Millisecond

// risk records the sum of the ordinals that are down and the allowed evictions; the final sum is 0. The two
// arrive through different watches, so only a sum that has lasted counts.
func (r *record) risk(sum int, at time.Time) {
	for n := len(r.risks); n > sum; n-- {
		if at.Sub(r.risks[n-1]) >= lag {
			r.atRisk = max(r.atRisk, n)
		}
		r.risks = r.risks[:n-1]
	}
	for len(r.risks) < sum {
		r.risks = append(r.risks, at)
	}
}

// allowed returns how many evictions a side's budgets of the move would grant now. The eviction API refuses
// all evictions until the controller has observed the spec.
func allowed(budgets map[string]*policyv1.PodDisruptionBudget) (n int, marked bool) {
	for _, b := range budgets {
		if _, ok := b.Annotations[stamp]; !ok {
			continue
		}
		marked = true
		if b.Status.ObservedGeneration >= b.Generation {
			n += int(b.Status.DisruptionsAllowed)
		}
	}
	return n, marked
}

func alive(p *corev1.Pod) bool {
	return p != nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

func terminating(source, destination *corev1.Pod) string {
	var sides []string
	if source.DeletionTimestamp != nil {
		sides = append(sides, "source")
	}
	if destination.DeletionTimestamp != nil {
		sides = append(sides, "destination")
	}
	return cmp.Or(strings.Join(sides, " and "), "neither")
}

func ready(p *corev1.Pod) bool {
	if p == nil || p.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
