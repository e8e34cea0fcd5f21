package plans

import (
	"cmp"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// The kinds of sets. A Ref to a StatefulSet leaves its Kind empty.
const (
	NativeKind = "StatefulSet"
	// SliceKind is the kind that the slice controller reconciles.
	SliceKind = "StatefulSetSlice"
)

// KindOf returns the kind of set for a word of the user: a kind, a resource or a short name, in upper
// or lower case. It is empty for a StatefulSet, as in a Ref.
func KindOf(word string) (string, error) {
	switch strings.ToLower(word) {
	case "", "sts", "statefulset", "statefulsets":
		return "", nil
	case "stss", "statefulsetslice", "statefulsetslices":
		return SliceKind, nil
	}
	return "", fmt.Errorf("%q is no kind of set: expected StatefulSet (sts) or StatefulSetSlice (stss)", word)
}

// SetOf splits NAME or KIND/NAME, as the user types it. KindOf translates the kind.
func SetOf(typed string) (kind, name string) {
	if kind, name, found := strings.Cut(typed, "/"); found {
		return kind, name
	}
	return "", typed
}

// IsSet reports whether a kind, as owner references and autoscalers name it, is a kind of set.
func IsSet(kind string) bool { return kind == NativeKind || kind == SliceKind }

// IsSlice reports whether the set is a StatefulSetSlice.
func (r Ref) IsSlice() bool { return r.Kind == SliceKind }

// SetKind returns the kind of the set, also for a StatefulSet.
func (r Ref) SetKind() string { return cmp.Or(r.Kind, NativeKind) }

// Set returns the reference with the kind in front, the form used in messages about the set.
func (r Ref) Set() string { return r.SetKind() + " " + r.String() }

// Typed returns the set in the form that SetOf reads.
func (r Ref) Typed() string {
	if r.IsSlice() {
		return "stss/" + r.Name
	}
	return r.Name
}

// OfOtherKind returns the reference to the set of the same name and the other kind.
func (r Ref) OfOtherKind() Ref {
	if r.IsSlice() {
		r.Kind = ""
	} else {
		r.Kind = SliceKind
	}
	return r
}

// enforcedRollingUpdate is the update strategy that only slices have.
const enforcedRollingUpdate = "EnforcedRollingUpdate"

// Strategy returns the update strategy of another set in a form that this set supports.
func (r Ref) Strategy(s appsv1.StatefulSetUpdateStrategy) appsv1.StatefulSetUpdateStrategy {
	if s.Type == enforcedRollingUpdate && !r.IsSlice() {
		s.Type = appsv1.RollingUpdateStatefulSetStrategyType // the nearest that a StatefulSet has
	}
	return *s.DeepCopy()
}
