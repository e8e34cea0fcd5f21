package engine

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/gates"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/storage"
)

// fencing keeps what an earlier process sends late from taking effect: its stamp is on every object that such a write may
// reach (S9).
type fencing struct {
	*memory

	on clusters.Clusters
}

// all stamps every object that a late write may still reach.
func (fe *fencing) all(ctx context.Context, j *journal.Journal) error {
	stamp := plans.Stamp{Plan: fe.plan.ID, Epoch: j.Epoch, Seq: j.Done}
	exposed, err := fe.exposed(ctx, j)
	if err != nil {
		return err
	}
	for _, x := range exposed {
		if err := fe.fence(ctx, stamp, j, x); err != nil {
			return err
		}
	}
	return nil
}

// rewound returns an error if a set shows that the journal has gone back. A cluster that cannot be reached shows
// nothing: its objects are fenced before anything else is written, which fails as well.
func (fe *fencing) rewound(ctx context.Context, j *journal.Journal) error {
	for _, side := range plans.Sides() {
		ref := fe.plan.On(side)
		set, err := clusters.ReadSet(ctx, fe.on[side], ref)
		if err != nil || set == nil {
			continue
		}
		have, _ := plans.Stamped(set)
		if have.Plan != fe.plan.ID || j.Behind(have) == "" {
			continue
		}
		// Another process may have taken the plan over since the journal was read. It writes the journal first.
		now, _, err := fe.store.Journal(ctx, fe.plan)
		if err != nil {
			return err
		}
		if why := now.Behind(have); why != "" {
			return &Rewound{fe.plan.Name, ref.Set() + ": " + why}
		}
	}
	return nil
}

// exposed is an object that a late write may still reach.
type exposed struct {
	side   plans.Side
	object client.Object // only its name is set
	// known reports whether an object without our stamp is nevertheless the one the plan means. Other objects
	// are left unchanged: a stamp would make them ours.
	known func(client.Object) bool
}

// exposed lists the objects that any step may write, and those of the ordinals whose steps may have begun and
// are not known to be finished.
func (fe *fencing) exposed(ctx context.Context, j *journal.Journal) ([]exposed, error) {
	p := fe.plan
	uids := map[plans.Side][]types.UID{plans.Source: {j.Saved.Source(p)}, plans.Destination: {p.Seen.DestinationUID}}
	// Once every ordinal is in its final place, the last flight is over: no step would remove a stamp
	// from its objects again (S15).
	next, more := p.Step(j.Leg, j.Done+1)
	closing := !more || next.Op.Closes()
	var out []exposed
	for _, side := range plans.Sides() {
		ref := p.On(side)
		budget, existed := p.BudgetOn(side)
		out = append(out,
			exposed{side, &appsv1.StatefulSet{ObjectMeta: named(ref.Namespace, ref.Name)}, oneOf(uids[side])},
			exposed{side, &policyv1.PodDisruptionBudget{ObjectMeta: named(ref.Namespace, budget)}, func(client.Object) bool { return existed }})
		if j.Flight != nil && !closing {
			out = append(out, fe.inFlight(j.Flight, side)...)
		}
	}
	if more && next.Op != plans.Thaw { // Unshare removes the stamp
		for _, s := range p.Shared {
			out = append(out, exposed{plans.Source, &corev1.PersistentVolume{ObjectMeta: named("", s.Volume)}, holds(s.Handle)})
		}
	}
	jobs, err := fe.jobs(ctx)
	if err != nil {
		return nil, err
	}
	out = append(out, jobs...)
	for _, o := range j.Touched {
		vols, _, err := storage.Volumes(ctx, p, fe.on, plans.Source, o)
		if err != nil {
			return nil, err
		}
		for _, v := range vols {
			out = append(out, exposed{plans.Source, &corev1.PersistentVolume{ObjectMeta: named("", v.Name)}, holds(v.Handle)})
		}
	}
	return out, nil
}

// jobs lists the Jobs of the gates on both sides.
func (fe *fencing) jobs(ctx context.Context) ([]exposed, error) {
	var out []exposed
	for _, side := range plans.Sides() {
		all, err := gates.Jobs(ctx, fe.plan, fe.on[side], side)
		if err != nil {
			return nil, err
		}
		for _, j := range all {
			out = append(out, exposed{side, &batchv1.Job{ObjectMeta: named(j.Namespace, j.Name)}, func(client.Object) bool { return false }})
		}
	}
	return out, nil
}

// inFlight lists the claims and volumes of the current wave on one side.
func (fe *fencing) inFlight(f *plans.Flight, side plans.Side) []exposed {
	var out []exposed
	for _, v := range f.Volumes {
		known := func(client.Object) bool { return false }
		if side == f.From || fe.plan.OneCluster() {
			known = holds(v.Handle)
		}
		out = append(out,
			exposed{side, &corev1.PersistentVolumeClaim{ObjectMeta: named(fe.plan.On(side).Namespace, fe.plan.ClaimName(side, v.Template, v.Ordinal))}, oneOf([]types.UID{v.Claim})},
			exposed{side, &corev1.PersistentVolume{ObjectMeta: named("", v.Name)}, known})
	}
	return out
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func oneOf(uids []types.UID) func(client.Object) bool {
	return func(o client.Object) bool { return slices.Contains(uids, o.GetUID()) }
}

func holds(handle string) func(client.Object) bool {
	return func(o client.Object) bool {
		pv, ok := o.(*corev1.PersistentVolume)
		return ok && storage.Means(pv, handle)
	}
}

// touched lists the ordinals whose steps may have begun and are not known to be finished, and those that an
// earlier process had to fence.
func (fe *fencing) touched(j *journal.Journal) []int32 {
	out := slices.Clone(j.Touched)
	for seq := j.Done + 1; seq <= j.Begun; seq++ {
		s, _ := fe.plan.Step(j.Leg, seq)
		for o := range s.Ordinals.All() {
			if !slices.Contains(out, o) {
				out = append(out, o)
			}
		}
	}
	return out
}

// fence stamps one object. An absent object needs no fence: an object that is created later has a
// fixed name and content. It returns an error if the object is stamped by another plan, or if
// another process takes over.
func (fe *fencing) fence(ctx context.Context, stamp plans.Stamp, j *journal.Journal, x exposed) error {
	key := client.ObjectKeyFromObject(x.object)
	for {
		err := fe.on[x.side].Get(ctx, key, x.object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s on the %s: %w", key, x.side, err)
		}
		have, marked := plans.Stamped(x.object)
		now, _, err := fe.store.Journal(ctx, fe.plan)
		if err != nil {
			return err
		}
		switch {
		case !marked && !x.known(x.object):
			return nil
		case marked && have.Plan != stamp.Plan:
			return fmt.Errorf("%s on the %s %s", key, x.side, stamp.Barred(x.object))
		case now.Epoch != stamp.Epoch, marked && have.Epoch > stamp.Epoch:
			return fmt.Errorf("another process took plan %s over at the same moment", stamp.Plan)
		}
		next, _ := x.object.DeepCopyObject().(client.Object)
		stamp.Put(next)
		if set, ok := next.(*appsv1.StatefulSet); ok {
			plans.MarkSet(set, fe.plan, x.side, j.Leg.Direction, j.Saved)
		}
		err = writes.Change(ctx, fe.on[x.side], x.object, next)
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("stamping %s on the %s: %w", key, x.side, err)
		}
		return nil
	}
}
