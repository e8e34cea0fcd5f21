package sets

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/sets/copies"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Copies makes and removes the copies of what the pods of a set name.
type Copies struct{ clusters.Pair }

// copies returns the writes that copy the dependencies to the destination.
func (w Copies) copies(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	for _, d := range w.Plan.Dependencies {
		if d.Required != "" {
			continue // not copied: it must already exist there
		}
		from, err := w.Dependency(ctx, plans.Source, d)
		if err != nil {
			return plans.Observation{}, err
		}
		if from == nil {
			continue // named but absent: the pods run without it on either side
		}
		have, err := w.Dependency(ctx, plans.Destination, d)
		if err != nil {
			return plans.Observation{}, err
		}
		if have == nil {
			next := copies.Replica(w.Plan, from)
			if account, ok := next.(*corev1.ServiceAccount); ok {
				account.Secrets = w.mountable(from)
			}
			m.Stamp.Put(next)
			return plans.Write(fmt.Sprintf("destination: create %s", d), plans.Undo{},
				func(ctx context.Context) error {
					return writes.Copy(ctx, w.On[plans.Source], from, w.On[plans.Destination], next)
				}), nil
		}
		if d.Twin == nil && !m.Stamp.Mine(have) && !copies.Same(w.Plan, from, have) {
			return plans.Stop(reasons.DependencyDiffers, fmt.Sprintf("%s in namespace %s differs from that of the source; make them equal", d, w.Plan.Destination.Namespace)), nil
		}
	}
	return plans.Done(), nil
}

// mountable returns the Secrets that an account lists and that are copied: pods of some accounts may mount no
// others. A token that the account lists stays in the cluster where it is valid.
func (w Copies) mountable(account client.Object) (out []corev1.ObjectReference) {
	for _, s := range account.(*corev1.ServiceAccount).Secrets { //nolint:forcetypeassert // copies asks only for these
		if slices.ContainsFunc(w.Plan.Dependencies, func(d plans.Dependency) bool { return d.Kind == "Secret" && d.Name == s.Name }) {
			out = append(out, corev1.ObjectReference{Name: s.Name})
		}
	}
	return out
}

// Uncopy removes our stamps from the copies, or deletes the copies after an abort, except for those that another
// workload uses, and those that are not like their original, or have none any more: their content would be lost, such as
// a password that was rotated meanwhile. It leaves unchanged what we did not create.
func (w Copies) Uncopy(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	for _, d := range slices.Backward(w.Plan.Dependencies) {
		have, err := w.Dependency(ctx, plans.Destination, d)
		if err != nil {
			return plans.Observation{}, err
		}
		if have == nil || !m.Stamp.Mine(have) || have.GetDeletionTimestamp() != nil {
			continue
		}
		if why := m.Stamp.Barred(have); why != "" {
			return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("%s %s", d, why)), nil
		}
		what := fmt.Sprintf("destination: take our mark off %s", d)
		if m.To() == plans.Source {
			used, err := w.usedElsewhere(ctx)
			if err != nil {
				return plans.Observation{}, err
			}
			original, err := w.Live().Dependency(ctx, plans.Source, d)
			if err != nil {
				return plans.Observation{}, err
			}
			why := w.keeps(d, original.Object(), have, used[bare(d)])
			if what = fmt.Sprintf("destination: keep %s, %s, and take our mark off", d, why); why == "" {
				return plans.Write(fmt.Sprintf("destination: delete %s, which the migration copied", d), plans.Undo{},
					func(ctx context.Context) error {
						return writes.DeleteCopy(ctx, w.On[plans.Destination], have, original)
					}), nil
			}
		}
		next, _ := have.DeepCopyObject().(client.Object)
		plans.Unmark(next)
		return plans.Write(what, plans.Undo{},
			func(ctx context.Context) error { return writes.Change(ctx, w.On[plans.Destination], have, next) }), nil
	}
	return plans.Done(), nil
}

// keeps returns why a copy stays after an abort, or "". by is another workload that uses it.
func (w Copies) keeps(d plans.Dependency, from, have client.Object, by string) string {
	switch {
	case from == nil: // another writer has deleted the original
		return "which does not exist on the source any more"
	case by != "":
		return fmt.Sprintf("which %s uses too", by)
	case d.Twin == nil && !copies.Same(w.Plan, from, have):
		return fmt.Sprintf("whose content is not that of the source (last written by %s)", author(have))
	case d.Twin != nil && copies.Touched(w.Plan, from, have) != "":
		return fmt.Sprintf("which %s has changed since the migration made it", copies.Touched(w.Plan, from, have))
	}
	return ""
}

// author returns who has last written the content of a copy.
func author(o client.Object) string {
	switch o.(type) {
	case *corev1.ConfigMap, *corev1.Secret:
		return plans.Writer(o, "data")
	case *corev1.Service:
		return plans.Writer(o, "spec")
	}
	return plans.Writer(o, "imagePullSecrets")
}
