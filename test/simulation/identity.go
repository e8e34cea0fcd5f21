package simulation

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// This file says which states of an exploration are one: nothing that a process or a controller looks at tells them apart.

// token is what stands for an object or a node in a text, or for a process: a UID, the name of one of the nodes of a
// cluster, which are alike, the epoch of a journal, or a stamp.
var token = regexp.MustCompile(`\b(?:one|two)-(?:[a-z]+-[0-9]+|node-[ab])\b|\bepoch\\*":[0-9]+|\b` + planName + `-1/[0-9]+/[0-9]+\b`)

// text is what there is to say about an object. It has the hash of its words, and its tokens in their order.
type text struct {
	words  [sha256.Size]byte
	tokens []string
}

func textOf(words string) *text {
	t, rest, last := &text{}, make([]byte, 0, len(words)), 0
	for _, at := range token.FindAllStringIndex(words, -1) {
		t.tokens = append(t.tokens, words[at[0]:at[1]])
		rest = append(append(rest, words[last:at[0]]...), 0)
		last = at[1]
	}
	t.words = sha256.Sum256(append(rest, words[last:]...))
	return t
}

// summary is what a state is known by. It numbers objects and nodes in the order in which they occur, and epochs from
// that of the journal backwards: which processes have died makes no difference to the next one.
type summary struct {
	bytes   []byte
	numbers map[string]int
	epoch   int64
	// oldest is the epoch of the first process that can still write, and last the step that has begun last. A stamp
	// that is no later than both bars nobody.
	oldest int64
	last   int
}

func (x *exploration) summary(s *state) *summary {
	j := s.w.journal
	b := &summary{x.bytes[:0], map[string]int{}, j.Epoch, j.Epoch, max(j.Begun, j.Done)}
	for _, p := range s.procs {
		b.oldest = min(b.oldest, p.epoch)
	}
	return b
}

func (s *summary) add(t *text) {
	s.bytes = append(s.bytes, t.words[:]...)
	for _, of := range t.tokens {
		_, epoch, journal := strings.Cut(of, ":")
		stamp := strings.Split(of, "/")
		switch {
		case journal:
			s.age(number(epoch))
		case len(stamp) == 3:
			s.stamp(number(stamp[1]), number(stamp[2]))
		default:
			s.token(of)
		}
	}
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	must(err)
	return n
}

func (s *summary) stamp(epoch, seq int64) {
	if epoch < s.oldest || epoch == s.oldest && seq <= int64(s.last) {
		s.say("past ")
		return
	}
	s.age(epoch)
	s.say("%d ", seq)
}

func (s *summary) age(epoch int64) {
	s.bytes = binary.AppendVarint(append(s.bytes, 'e'), s.epoch-epoch)
}

func (s *summary) token(name string) {
	n, known := s.numbers[name]
	if !known {
		n = len(s.numbers)
		s.numbers[name] = n
	}
	s.bytes = binary.AppendUvarint(append(s.bytes, 't'), uint64(n))
}

func (s *summary) say(format string, args ...any) { s.bytes = fmt.Appendf(s.bytes, format, args...) }

// identity returns the same for two states in which the same can happen, apart from what limits leave. Versions and times are left out, and which
// of two nodes is which.
func (x *exploration) identity(s *state) [sha256.Size]byte {
	b := x.summary(s)
	b.say("begun %t ", b.epoch > 0)
	alive := map[types.UID]bool{}
	for _, on := range s.w.stores {
		b.say("cluster %s ", on.name)
		var nodes []*corev1.Node
		for _, k := range on.order {
			o := on.objects[k]
			alive[o.GetUID()] = true
			if node, ok := o.(*corev1.Node); ok {
				nodes = append(nodes, node)
				continue
			}
			b.add(x.text(o))
		}
		slices.SortStableFunc(nodes, func(one, other *corev1.Node) int { return b.order(one.Name, other.Name) })
		for _, node := range nodes {
			b.add(x.text(node))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.w.seen)) {
		if alive[k] {
			b.say("seen ")
			b.token(string(k))
			b.add(x.text(s.w.seen[k]))
		}
	}
	for k, of := range []map[types.UID]bool{s.w.aged, s.w.granted} {
		for _, u := range slices.Sorted(maps.Keys(of)) {
			if alive[u] {
				b.say("memory %d ", k)
				b.token(string(u))
			}
		}
	}
	for _, handle := range slices.Sorted(maps.Keys(s.w.disks)) {
		b.say("%s %+v ", handle, s.w.disks[handle])
	}
	b.say("%d ", s.w.evictions)
	b.age(s.w.fenced)
	for _, p := range s.procs {
		b.say("process ")
		b.age(p.epoch)
		if p.knows != nil {
			b.add(p.knows.text)
			b.say("%s ", p.knows.outdated(s.w))
		}
		if p.pending != nil {
			b.say("%s %s %t ", p.pending.cluster, p.pending.verb, current(s.w, p.pending))
			b.add(x.text(p.pending.object))
		}
	}
	x.bytes = b.bytes
	return sha256.Sum256(b.bytes)
}

// order compares two nodes by where they were spoken of first. A node that was not comes last.
func (s *summary) order(one, other string) int {
	at := func(name string) int {
		if n, known := s.numbers[name]; known {
			return n
		}
		return math.MaxInt
	}
	return cmp.Compare(at(one), at(other))
}

// current reports whether the object of a delayed write is still the one that the process has read.
func current(w *world, p *request) bool {
	for _, s := range w.stores {
		if s.name == p.cluster {
			have, there := s.objects[keyOf(p.object)]
			return there && have.GetResourceVersion() == p.object.GetResourceVersion() || !there && p.verb == "create"
		}
	}
	return false
}

// uncount takes out of a journal how many writes were sent, and by which process a wave was seen to arrive. That depends
// on the way to a state, no decision depends on it, and every state would be there once for each count.
func uncount(raw []byte) []byte {
	var j journal.Journal
	if json.Unmarshal(raw, &j) != nil || j.Kind != plans.JournalKind {
		return raw
	}
	j.Timeline.Sent = 0
	for k := range j.Timeline.Waves {
		j.Timeline.Waves[k].Writes, j.Timeline.Waves[k].Epoch = 0, 0
	}
	raw, err := json.Marshal(j)
	must(err)
	return raw
}

// text returns an object without versions, times and counts of writes. Stored objects are never changed, so that the text of each is
// made once.
func (x *exploration) text(o client.Object) *text {
	if t, ok := x.texts[o]; ok {
		return t
	}
	c := clone(o)
	c.SetResourceVersion("")
	c.SetCreationTimestamp(metav1.Time{})
	if c.GetDeletionTimestamp() != nil {
		c.SetDeletionTimestamp(&metav1.Time{}) // null in JSON, and absent in that of an object that stays
	}
	behind := int64(0)
	switch c := c.(type) {
	case *corev1.ConfigMap:
		for key, text := range c.Data {
			c.Data[key] = string(uncount([]byte(text)))
		}
	case *corev1.Pod:
		for k := range c.Status.Conditions {
			c.Status.Conditions[k].LastTransitionTime = metav1.Time{}
		}
	case *appsv1.StatefulSet:
		behind, c.Status.ObservedGeneration = c.Generation-c.Status.ObservedGeneration, 0
	case *policyv1.PodDisruptionBudget:
		behind, c.Status.ObservedGeneration = c.Generation-c.Status.ObservedGeneration, 0
		for name := range c.Status.DisruptedPods {
			c.Status.DisruptedPods[name] = metav1.Time{}
		}
	}
	c.SetGeneration(0)
	raw, err := json.Marshal(c)
	must(err)
	t := textOf(kindOf(o) + " " + string(raw) + " " + strconv.FormatInt(behind, 10))
	x.texts[o] = t
	return t
}
