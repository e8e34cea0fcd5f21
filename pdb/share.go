package pdb

import (
	"context"
	"errors"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Needs returns the side that needs the last unit of the budget, or "" if neither does. It is called AFTER
// the budgets are read: evictions that they granted before that are then visible at the pods.
type Needs func(context.Context) (plans.Side, error)

// goal is the state that the budgets are brought to.
type goal struct {
	// allowance is what both budgets may allow together.
	allowance int32
	// before is true while the ordinals are still on the side that they leave.
	before bool
	// needs, if not nil, returns the side that gets a unit which cannot be divided. If it is nil, the side
	// with more ordinals gets the unit.
	needs Needs
	// settled means that either side may keep such a unit: needs is called only if neither side has it.
	settled bool
}

// want is the spec that a budget gets, and the number of pods it applies to.
type want struct {
	spec policyv1.PodDisruptionBudgetSpec
	pods int32
}

// wanted returns the specs that the budgets get.
func (k budgets) wanted(ctx context.Context, m plans.StepContext, g goal, found map[plans.Side]*policyv1.PodDisruptionBudget) (map[plans.Side]want, error) {
	if g.settled {
		for _, side := range plans.Sides() {
			if w := k.wants(m, g, side); k.holds(m, g, found, w) {
				return w, nil
			}
		}
	}
	needy := plans.Side("")
	if g.needs != nil && k.contested(m, g) {
		var err error
		if needy, err = g.needs(ctx); err != nil {
			return nil, err
		}
	}
	return k.wants(m, g, needy), nil
}

// holds reports whether there is only one unit, and both budgets are as wanted.
func (k budgets) holds(m plans.StepContext, g goal, found map[plans.Side]*policyv1.PodDisruptionBudget, w map[plans.Side]want) bool {
	for _, side := range plans.Sides() {
		if b := found[side]; b == nil || !matches(b.Spec, w[side]) {
			return false
		}
	}
	return k.contested(m, g)
}

// contested reports whether both sides have ordinals and only one unit is left for them.
func (k budgets) contested(m plans.StepContext, g goal) bool {
	has := k.has(m, g)
	return g.allowance == 1 && has[plans.Source] > 0 && has[plans.Destination] > 0
}

// has counts the ordinals of both sides. Those in flight belong to neither.
func (k budgets) has(m plans.StepContext, g goal) map[plans.Side]int32 {
	flying := g.allowance < k.Plan.MaxUnavailable
	return map[plans.Side]int32{
		m.From: k.Plan.Slice(m.From, m.Ordinals, g.before && !flying).Replicas,
		m.To(): k.Plan.Slice(m.To(), m.Ordinals, !g.before).Replicas,
	}
}

// wants returns the specs that the budgets get if side needy needs the last unit.
func (k budgets) wants(m plans.StepContext, g goal, needy plans.Side) map[plans.Side]want {
	has, share := k.has(m, g), map[plans.Side]int32{}
	share[plans.Source], share[plans.Destination] = Split(g.allowance, has[plans.Source], has[plans.Destination])
	if needy != "" && k.contested(m, g) {
		share[needy], share[needy.Other()] = 1, 0
	}
	from, to := want{pods: k.Plan.Slice(m.From, m.Ordinals, g.before).Replicas}, want{pods: has[m.To()]}
	departing(&from.spec, from.pods, share[m.From])
	arriving(&to.spec, share[m.To()])
	return map[plans.Side]want{m.From: from, m.To(): to}
}

// During returns the numbers of both budgets while a wave of a Move is away.
func During(p *plans.Plan, wave plans.Slice) map[plans.Side]policyv1.PodDisruptionBudgetSpec {
	out := map[plans.Side]policyv1.PodDisruptionBudgetSpec{}
	for side, w := range during(p, wave) {
		out[side] = w.spec
	}
	return out
}

// Allowed returns how many evictions the budget of each side allows while a wave of a Move is away.
func Allowed(p *plans.Plan, wave plans.Slice) map[plans.Side]int32 {
	out := map[plans.Side]int32{}
	for side, w := range during(p, wave) {
		out[side] = allows(w.spec, w.pods)
	}
	return out
}

func during(p *plans.Plan, wave plans.Slice) map[plans.Side]want {
	m := plans.StepContext{Step: plans.Step{Op: plans.Tighten, Ordinals: wave, From: plans.Source}}
	return budgets{Pair: clusters.Pair{Plan: p}}.wants(m, away(p, m), "")
}

// matches compares the numbers; selector and eviction policy stay the user's. A minAvailable from a time
// with more pods does not match, although it allows as little: not even a broken pod could be evicted under
// it.
func matches(have policyv1.PodDisruptionBudgetSpec, w want) bool {
	return equality.Semantic.DeepEqual(have.MinAvailable, w.spec.MinAvailable) &&
		equality.Semantic.DeepEqual(have.MaxUnavailable, w.spec.MaxUnavailable)
}

// kept reports whether a budget may stay as the wave before has left it: that wave has just arrived, and neither spec
// allows anything. What stays is stricter, as it is from a time with one wave more. The next Relax brings the numbers of
// the ordinals that are there.
func kept(m plans.StepContext, have policyv1.PodDisruptionBudgetSpec, w want) bool {
	same := (have.MinAvailable == nil) == (w.spec.MinAvailable == nil)
	return m.Follows && same && allows(w.spec, w.pods) == 0 && allows(have, w.pods) == 0
}

// granted returns the reason why no budget may rise yet: more evictions than its share are outstanding on
// the other side. They were granted before that budget was lowered.
func (k budgets) granted(found map[plans.Side]*policyv1.PodDisruptionBudget, wants map[plans.Side]want, rising plans.Side) string {
	side := rising.Other()
	b, w := found[side], wants[side]
	if b == nil || len(b.Status.DisruptedPods) <= int(allows(w.spec, w.pods)) {
		return ""
	}
	return k.pending(side, b)
}

// pending names a pod whose eviction was granted and has not happened yet, or returns "".
func (k budgets) pending(side plans.Side, b *policyv1.PodDisruptionBudget) string {
	for pod := range b.Status.DisruptedPods {
		return fmt.Sprintf("PodDisruptionBudget %s of %s: an eviction of pod %s was granted and has not happened yet", b.Name, k.Plan.On(side), pod)
	}
	return ""
}

// Contested reports whether the budget is one unit, both sides have ordinals, and the wave of the step has
// arrived or has not left. Then only one of the sides can be drained at a time.
func Contested(p *plans.Plan, s plans.Step) bool {
	return s.Moves() && budgets{Pair: clusters.Pair{Plan: p}}.contested(plans.StepContext{Step: s}, resting(p, s, nil))
}

// HandOver returns the look that brings the last unit of the budget to the side that needs it. Its step
// context is that of the Relax of a wave that has arrived, or of the Tighten of a wave that has not left.
func HandOver(p *plans.Plan, on map[plans.Side]client.Client, needs Needs) plans.Look {
	k := budgets{Pair: clusters.Pair{Plan: p, On: on}}
	return func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		if m.Unsure() {
			if why, err := k.leaving(ctx, m); err != nil || why != "" {
				return plans.Wait(reasons.PodLeaving, why), err
			}
		}
		s, _, err := k.bring(ctx, m, resting(p, m.Step, needs))
		return s, err
	}
}

func resting(p *plans.Plan, s plans.Step, needs Needs) goal {
	return goal{allowance: p.MaxUnavailable, before: s.Op == plans.Tighten, needs: needs}
}

// Holder returns the side whose budget allows the last unit, or "" if neither does. What it allows decides, and not its
// words: a wave that follows another one leaves budgets as strict as for the pods that were there before. The step is
// that of HandOver. It is an error if a budget is missing, or if both allow evictions.
func Holder(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client, s plans.Step) (plans.Side, error) {
	k, m, g := budgets{Pair: clusters.Pair{Plan: p, On: on}}, plans.StepContext{Step: s}, resting(p, s, nil)
	found, err := k.both(ctx)
	if err != nil {
		return "", err
	}
	has := k.has(m, g)
	var open []plans.Side
	for _, side := range plans.Sides() {
		if found[side] == nil {
			return "", fmt.Errorf("%s has no PodDisruptionBudget: nothing bounds its evictions", p.On(side))
		}
		if allows(found[side].Spec, has[side]) > 0 {
			open = append(open, side)
		}
	}
	switch {
	case !k.contested(m, g) || len(open) == 0:
		return "", nil
	case len(open) == 1:
		return open[0], nil
	}
	return "", errors.New("the budgets of both sides allow evictions: another writer has changed one")
}
