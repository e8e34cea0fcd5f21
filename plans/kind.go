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
	// SliceKind is that of the slice controller.
	SliceKind = "StatefulSetSlice"
)

// KindOf is the kind of set that a person means: its kind, its resource or a short name,
// in upper or lower case; empty for a StatefulSet, as in a Ref.
func KindOf(word string) (string, error) {
	switch strings.ToLower(word) {
	case "", "sts", "statefulset", "statefulsets":
		return "", nil
	case "stss", "statefulsetslice", "statefulsetslices":
		return SliceKind, nil
	}
	return "", fmt.Errorf("%q is no kind of set: expected StatefulSet (sts) or StatefulSetSlice (stss)", word)
}

// SetOf splits NAME or KIND/NAME, as a person types it; KindOf knows the words for kinds.
func SetOf(typed string) (kind, name string) {
	if kind, name, found := strings.Cut(typed, "/"); found {
		return kind, name
	}
	return "", typed
}

// IsSet says whether a kind, as owners and autoscalers name it, is one of sets.
func IsSet(kind string) bool { return kind == NativeKind || kind == SliceKind }

// IsSlice says whether the set is a StatefulSetSlice.
func (r Ref) IsSlice() bool { return r.Kind == SliceKind }

// SetKind is the kind of the set, also of a StatefulSet.
func (r Ref) SetKind() string { return cmp.Or(r.Kind, NativeKind) }

// Set gives the reference with the kind in front, the form messages about the set use.
func (r Ref) Set() string { return r.SetKind() + " " + r.String() }

// Typed gives the set as SetOf reads it.
func (r Ref) Typed() string {
	if r.IsSlice() {
		return "stss/" + r.Name
	}
	return r.Name
}

// OfOtherKind names the set of that name of the other kind.
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

// Strategy gives the update strategy of another set as this one can have it.
func (r Ref) Strategy(s appsv1.StatefulSetUpdateStrategy) appsv1.StatefulSetUpdateStrategy {
	if s.Type == enforcedRollingUpdate && !r.IsSlice() {
		s.Type = appsv1.RollingUpdateStatefulSetStrategyType // a StatefulSet has nothing nearer
	}
	return *s.DeepCopy()
}
