package check

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/sets"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Inspection is what the checks look at.
type Inspection struct {
	clusters.Pair
	// Now is what the plan would be made from today. Between two waves the sets are
	// all there is of it.
	Now plans.Inputs
	// Ordinals are those that the checks of single ordinals are about.
	Ordinals plans.Slice
	// Midway says that the plan is under way, and from which side the ordinals go.
	Midway bool
	From   plans.Side
	// Taken says that a process of this very plan has marked the sets already.
	Taken        bool
	Orchestrated Orchestrated
	memo         *memo
}

// Orchestrated is the clock of a plan that an orchestrator carries out: the rights are not those of who asks, and what
// a namespace agrees to has an end. It is nil where a person's command does.
type Orchestrated func() time.Time

// memo keeps what several checks of one inspection need to know, read once.
type memo struct {
	lock  sync.Mutex
	known map[any]*memory
}

// memory is what was read for one key. Whoever asks for what is being read waits for it.
type memory struct {
	lock  sync.Mutex
	there bool
	value any
}

// Once returns what was read for a key, and reads it the first time. The type of a key says what it is a key of. What could
// not be read is read again for the next check.
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

// bindings are the volumes of an ordinal, or why they cannot be named.
type bindings struct {
	Volumes []plans.Volume
	Why     string
}

// Inspect begins an inspection of all ordinals of a plan.
func Inspect(p *plans.Plan, on clusters.Clusters) Inspection {
	return Inspection{
		Pair: clusters.Pair{Plan: p, On: on}, Ordinals: p.Ordinals(), From: plans.Source, memo: &memo{known: map[any]*memory{}},
	}
}

// Name gives the set of a side in the words of a finding.
func (i Inspection) Name(s plans.Side) string { return i.Plan.On(s).Set() }

// Ours says whether an object carries the mark of this very plan.
func (i Inspection) Ours(o client.Object) bool {
	s, ok := plans.Stamped(o)
	return ok && i.Taken && s.Plan == i.Plan.ID
}

// Arriving is the pod template as the destination is to have it.
func (i Inspection) Arriving() (corev1.PodTemplateSpec, error) {
	set, err := sets.DestinationSet(i.Now.Set, i.Plan)
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	return set.Spec.Template, nil
}

// Sets goes through the sets that exist.
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

// Volumes reads which volumes the claims of an ordinal are bound to on the side that it goes from.
func (i Inspection) Volumes(ctx context.Context, ordinal int32) (bindings, error) {
	return Once(i, bindingsOf(ordinal), func() (bindings, error) {
		vols, why, err := storage.Volumes(ctx, i.Plan, i.On, i.From, ordinal)
		return bindings{vols, why}, err
	})
}

// bindingsOf is a key of what is read once.
type bindingsOf int32

// MaxConcurrentRequests is how many requests the checks send side by side, so that a distant API server
// does not make them long.
const MaxConcurrentRequests = 8
