package check

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Inspection is the input of the checks.
type Inspection struct {
	clusters.Pair
	// Now is what the plan would be made from today. Between two waves it has only the sets.
	Now build.Inputs
	// Ordinals are the ordinals that the checks of single ordinals inspect.
	Ordinals plans.Slice
	// Midway reports whether the plan is in progress. From is the side that the ordinals leave.
	Midway bool
	From   plans.Side
	// Taken reports whether a process of this plan has stamped the sets already. Draft reports whether it is open
	// who will carry the plan out: the user who makes it, or an orchestrator.
	Taken, Draft bool
	// Ignored are the checks of which the user accepts what they find.
	Ignored []string
	// Coming are the waves that have not left yet, that of Ordinals first. Nil means those of a plan that has not begun.
	Coming []plans.Slice
	Caller
	memo *memo
	// kept outlasts this inspection.
	kept *Memory
}

// Caller is who asks for an inspection.
type Caller struct {
	Orchestrated Orchestrated
	// Account is the account of the orchestrator that is to carry the plan out, if that is settled while it is made.
	Account string
	// Flags are those with which the caller's own tools reach the cluster of a side, each with a space before it. The
	// context that the plan records may mean another cluster where a command is typed. An orchestrator has none.
	Flags map[plans.Side]string
}

// Kubectl returns the beginning of a command line for the cluster of a side.
func (c Caller) Kubectl(side plans.Side) string { return "kubectl" + c.Flags[side] }

// Orchestrated is the clock of a plan that an orchestrator carries out. The rights are then not those of the
// requesting user, and the consent of a namespace expires. It is nil where the user's own command carries the
// plan out.
type Orchestrated func() time.Time

// memo keeps what several checks of one inspection read, so that it is read once.
type memo struct {
	lock  sync.Mutex
	known map[any]*memory
}

// memory is the value read for one key. A caller that needs a value which is being read waits for it.
type memory struct {
	lock  sync.Mutex
	there bool
	value any
}

// Once returns the value read for a key, and reads it on the first call. Each kind of value has a key type of
// its own. A failed read is repeated by the next caller.
func Once[K comparable, V any](i Inspection, key K, read func() (V, error)) (V, error) {
	i.memo.lock.Lock()
	e, ok := i.memo.known[key]
	if !ok {
		e = &memory{}
		i.memo.known[key] = e
	}
	i.memo.lock.Unlock()
	e.lock.Lock()
	defer e.lock.Unlock()
	if e.there {
		v, _ := e.value.(V)
		return v, nil
	}
	v, err := read()
	e.value, e.there = v, err == nil
	return v, err
}

// bindings are the volumes of an ordinal, or the reason why they cannot be named.
type bindings struct {
	Volumes []plans.Volume
	Why     string
}

// Inspect starts an inspection of all ordinals of a plan.
func Inspect(p *plans.Plan, on clusters.Clusters) Inspection {
	return Inspection{
		Pair: clusters.Pair{Plan: p, On: on}, Ordinals: p.Ordinals(), From: plans.Source, Ignored: p.Ignored, memo: &memo{known: map[any]*memory{}}, kept: &Memory{},
	}
}

// Of returns an inspection of other ordinals of the same state, which shares no reads with this one.
func (i Inspection) Of(ordinals plans.Slice) Inspection {
	i.Ordinals, i.memo = ordinals, &memo{known: map[any]*memory{}}
	return i
}

// Waves returns the ordinals that have not left yet, as they will.
func (i Inspection) Waves() []plans.Slice {
	if i.Coming != nil {
		return i.Coming
	}
	var out []plans.Slice
	for wave := range i.Plan.Waves(i.Plan.FirstLeg()) {
		start, end := max(wave.Start, i.Ordinals.Start), min(wave.End(), i.Ordinals.End())
		if start < end {
			out = append(out, plans.Slice{Start: start, Replicas: end - start})
		}
	}
	return out
}

// Name returns the name of a side's set, as a finding prints it.
func (i Inspection) Name(s plans.Side) string { return i.Plan.On(s).Set() }

// Ours reports whether an object carries the stamp of this plan. It is always false unless i.Taken is true.
func (i Inspection) Ours(o client.Object) bool {
	s, ok := plans.Stamped(o)
	return ok && i.Taken && s.Plan == i.Plan.ID
}

// To returns the side that the ordinals come to.
func (i Inspection) To() plans.Side { return i.From.Other() }

// Receives returns the set that the ordinals come to: what the plan makes of the source's, or on the way back the source's.
func (i Inspection) Receives() (*appsv1.StatefulSet, error) {
	if i.From == plans.Destination {
		return i.Now.Set, nil
	}
	return sets.DestinationSet(i.Now.Set, i.Plan)
}

// Leaves returns the set that the ordinals leave.
func (i Inspection) Leaves() *appsv1.StatefulSet {
	if i.From == plans.Destination {
		return i.Now.Existing
	}
	return i.Now.Set
}

// Arriving returns the template of the pods that come.
func (i Inspection) Arriving() (corev1.PodTemplateSpec, error) {
	set, err := i.Receives()
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	return set.Spec.Template, nil
}

// Sets iterates over the sets that exist.
func (i Inspection) Sets(yield func(plans.Side, *appsv1.StatefulSet) bool) {
	for _, side := range plans.Sides() {
		set := i.Now.Set
		if side == plans.Destination {
			set = i.Now.Existing
		}
		if set != nil && !yield(side, set) {
			return
		}
	}
}

// Volumes reads which volumes the claims of an ordinal are bound to, on the side that the ordinal leaves.
func (i Inspection) Volumes(ctx context.Context, ordinal int32) (bindings, error) {
	return Once(i, bindingsOf(ordinal), func() (bindings, error) {
		vols, why, err := storage.Volumes(ctx, i.Plan, i.On, i.From, ordinal)
		return bindings{vols, why}, err
	})
}

// bindingsOf is the key of check.Once for the bindings of an ordinal.
type bindingsOf int32

// MaxConcurrentRequests is how many requests the checks send concurrently, so that they stay short where an
// API server is distant.
const MaxConcurrentRequests = 8
