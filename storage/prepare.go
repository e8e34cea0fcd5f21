package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/reasons"
	"github.com/stsmigrate/stsmigrate/writes"
)

// Prepare returns the look that makes the volumes and claims of a wave in the other cluster while the wave is still
// up: each volume object first, with Retain and for the one claim, then the claim (S4, S5). It writes nothing unless
// everything that the wave will require is as it must be (Departing). The claim that leaves is saved BEFORE, as it is
// now: it may have changed since it was protected, and the new claim is made of what is saved. No pod may mount these
// claims before the wave has left: Departing looks at that again, and Vacate and Grow at what is attached (S1).
func Prepare(p *plans.Plan, on map[plans.Side]client.Client) plans.Look {
	v := mover{clusters.Pair{Plan: p, On: on}}
	return func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		ctx = clusters.Unmade(ctx) // volumes and claims alike are created, and nothing else is concluded
		var parts []plans.Observation
		for o := range m.Ordinals.All() {
			for _, c := range p.Moved() {
				made, err := v.Claim(ctx, m.To(), p.ClaimName(c.Template, o))
				if err != nil {
					return plans.Observation{}, err
				}
				if made != nil && m.Stamp.Mine(made) && pending(made) { // all else is looked at again when it is bound
					wait := v.unbound(made, m.To())
					wait.Again = max(bindingGrace-time.Since(made.CreationTimestamp.Time), time.Millisecond)
					parts = append(parts, wait)
					continue
				}
				vol, s, err := v.departing(ctx, m, c.Template, o)
				switch {
				case err != nil || s.Standing == plans.Conflict:
					return s, err
				case s.Standing != plans.After: // Shrink waits for it too, or writes what the user has vouched for
					return plans.Wait(s.ID, s.Reason), nil
				}
				for _, look := range []one{v.current, v.alike, v.reserve, v.take} {
					if s, err = look(ctx, m, vol); err != nil || s.Standing != plans.After {
						break
					}
				}
				if err != nil {
					return plans.Observation{}, err
				}
				parts = append(parts, s)
			}
		}
		return plans.Together(parts), nil
	}
}

// current saves the claim that leaves on its volume again, if it has changed since it was saved.
func (v mover) current(ctx context.Context, m plans.StepContext, vol plans.Volume) (plans.Observation, error) {
	claim, pv, why, err := v.bound(ctx, m.From, vol.Template, vol.Ordinal)
	if err != nil || why != "" {
		return plans.Stop(reasons.BindingBroken, why), err
	}
	return v.retain(ctx, m, claim, pv)
}

// alike gives a claim that was prepared the labels and annotations that the claim that leaves got later. What became of
// these is the difference between the two saved claims, so the new one is saved on this side too right AFTER it (learn).
// It is tried once: admission may take a label off again. What others wrote to the prepared claim stays. Its size and its
// class are not changed: inTheWay stops there.
func (v mover) alike(ctx context.Context, m plans.StepContext, vol plans.Volume) (plans.Observation, error) {
	made, err := v.claimOf(ctx, m.To(), vol)
	if err != nil || made == nil {
		return plans.Done(), err
	}
	was, err := v.saved(ctx, m.To(), vol)
	is, err2 := v.saved(ctx, m.From, vol)
	if err = errors.Join(err, err2); err != nil || was == nil || is == nil {
		return plans.Done(), err // reserve stops there
	}
	next := made.DeepCopy()
	next.Labels, next.Annotations = since(was.Labels, is.Labels, made.Labels), since(was.Annotations, is.Annotations, made.Annotations)
	if maps.Equal(next.Labels, made.Labels) && maps.Equal(next.Annotations, made.Annotations) {
		return plans.Done(), nil
	}
	if why := m.Stamp.Barred(made); why != "" {
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("claim %s %s", made.Name, why)), nil
	}
	pv, err := v.volumeOf(ctx, m.To(), vol.Name)
	if err != nil || pv == nil {
		return plans.Done(), err
	}
	learned, err := v.learn(ctx, m, vol, pv)
	if err != nil || learned.Standing != plans.Before {
		return learned, err
	}
	m.Stamp.Put(next)
	return plans.Write(fmt.Sprintf("%s: claim %s gets the labels and annotations that changed on the %s", m.To(), made.Name, m.From), plans.Undo{},
		func(ctx context.Context) error {
			if err := writes.Change(ctx, v.On[m.To()], made, next); err != nil {
				return err
			}
			return learned.Write(ctx)
		}), nil
}

// saved returns the claim that is saved on the volume of a side, or nil if there is none.
func (v mover) saved(ctx context.Context, side plans.Side, vol plans.Volume) (*corev1.PersistentVolumeClaim, error) {
	pv, err := v.volumeOf(ctx, side, vol.Name)
	if err != nil || pv == nil || !isClaim(pv.Annotations[plans.ClaimAnnotation]) {
		return nil, err
	}
	return ClaimFrom(pv, v.Plan.On(side).Namespace)
}

// since returns values with what changed from was to is.
func since(was, is, values map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, values)
	for k := range was {
		if _, still := is[k]; !still {
			delete(out, k)
		}
	}
	for k, value := range is {
		if old, had := was[k]; !had || old != value {
			out[k] = value
		}
	}
	return out
}
