package trials

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// maxSizes is how many sizes of a set are tried: of a larger set the first and the last ones. A rule about the number of
// replicas has a limit at one end.
const maxSizes = 64

// SizesAccepted tries every range that the plan has yet to write to the sets: the source at every size down to none, and the
// destination, if it is there, at every size up to all. A floor of replicas would stop the plan in the middle. So would a rule
// that keeps the controller of the set from deleting a pod.
func SizesAccepted(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	t := trier{i, &seen{}}
	var out []check.Finding
	for side, set := range i.Sets {
		if _, gone := i.On[side].(clusters.Gone); gone || !t.written(ask{Write: part.Write{Side: side, Kind: i.Plan.On(side).SetKind()}}, kind{}, set) {
			continue
		}
		found, err := t.sizes(ctx, side, set)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	leaving, err := t.departures(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Concat(out, leaving, t.unheard()), nil
}

// sizes tries the ranges of one set, and reports the first that is refused.
func (t trier) sizes(ctx context.Context, side plans.Side, set *appsv1.StatefulSet) ([]check.Finding, error) {
	all := t.ranges(side, set)
	found := make([][]check.Finding, len(all))
	err := eachOf(ctx, len(all), func(ctx context.Context, k int) error {
		next, slice := set.DeepCopy(), all[k]
		if next.Spec.Replicas = &slice.Replicas; slice.Start != 0 || next.Spec.Ordinals != nil {
			next.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: slice.Start}
		}
		a := ask{Write: part.On(t.Plan, side).Write(part.Patch, t.Plan.On(side).SetKind(), set.Name, "")}
		f, err := t.judged(a, set.Name, writes.Change(ctx, t.On[side], set, next, client.DryRunAll))
		if len(f) > 0 {
			f[0].Saw = fmt.Sprintf("%d replicas: %s", slice.Replicas, f[0].Saw)
		}
		found[k] = f
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		if len(f) > 0 {
			f[0].Want = "it to be let through: the plan gives the set this size on its way"
			return f[:1], nil
		}
	}
	return nil, nil
}

// ranges returns those that the waves give a set from now on, in their order.
func (t trier) ranges(side plans.Side, set *appsv1.StatefulSet) (out []plans.Slice) {
	l, now := there(t.Plan), plans.SliceOf(set)
	if t.From == plans.Destination {
		l = back(t.Plan)
	}
	for wave := range t.Plan.Waves(l) {
		next := t.Plan.Slice(side, wave, side != t.From)
		if side == t.From && next.Replicas < now.Replicas || side != t.From && next.Replicas > now.Replicas {
			out = append(out, next)
		}
	}
	if len(out) > maxSizes {
		out = append(out[:maxSizes/2:maxSizes/2], out[len(out)-maxSizes/2:]...)
	}
	return out
}
