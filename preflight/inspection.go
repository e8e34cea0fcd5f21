package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/sets"
	"github.com/stsmigrate/stsmigrate/storage"
)

// inspection is what the checks look at.
type inspection struct {
	survey
	// now is what the plan would be made from today. Between two waves the sets are
	// all there is of it.
	now plans.Inputs
	// ordinals are those that the checks of single ordinals are about.
	ordinals plans.Slice
	// midway says that the plan is under way, and from which side the ordinals go.
	midway bool
	from   plans.Side
	// taken says that a process of this very plan has marked the sets already.
	taken        bool
	orchestrated Orchestrated
	notes        *notes
}

// Orchestrated is the clock of a plan that an orchestrator carries out: the rights are not those of who asks, and what
// a namespace agrees to has an end. It is nil where a person's command does.
type Orchestrated func() time.Time

// notes is what several checks of one inspection need to know, read once.
type notes struct {
	trials   once[struct{}, trial]
	podTrial once[struct{}, podTrial]
	nodes    once[struct{}, []corev1.Node]
	claims   once[struct{}, []corev1.PersistentVolumeClaim]
	drivers  once[string, *storagev1.CSIDriver]
	shelves  once[plans.Side, shelf]
	volumes  once[int32, bindings]
	appliers once[struct{}, []applier]
	rules    once[place, listing]
}

// once keeps what was read. Who asks for what is being read waits for it.
type once[K comparable, V any] struct {
	lock  sync.Mutex
	known map[K]V
}

func (o *once[K, V]) get(key K, read func() (V, error)) (V, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	v, known := o.known[key]
	if known {
		return v, nil
	}
	v, err := read()
	if err == nil {
		if o.known == nil {
			o.known = map[K]V{}
		}
		o.known[key] = v
	}
	return v, err
}

// bindings are the volumes of an ordinal, or why they cannot be named.
type bindings struct {
	volumes []plans.Volume
	why     string
}

func inspect(p *plans.Plan, on clusters.Clusters) inspection {
	return inspection{
		survey: survey{clusters.Pair{Plan: p, On: on}}, ordinals: p.Ordinals(), from: plans.Source, notes: &notes{},
	}
}

// name gives the set of a side in the words of a finding.
func (i inspection) name(s plans.Side) string { return i.Plan.On(s).Set() }

// ours says whether an object carries the mark of this very plan.
func (i inspection) ours(o client.Object) bool {
	s, ok := plans.Stamped(o)
	return ok && i.taken && s.Plan == i.Plan.ID
}

// arriving is the pod template as the destination is to have it.
func (i inspection) arriving() (corev1.PodTemplateSpec, error) {
	set, err := sets.Twin(i.now.Set, i.Plan)
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	return set.Spec.Template, nil
}

// sets goes through the sets that exist.
func (i inspection) sets(yield func(plans.Side, *appsv1.StatefulSet) bool) {
	for _, side := range plans.Sides() {
		set := i.now.Set
		if side == plans.Destination {
			set = i.now.Existing
		}
		if set != nil && !yield(side, set) {
			return
		}
	}
}

// volumes reads which volumes the claims of an ordinal are bound to on the side that it goes from.
func (i inspection) volumes(ctx context.Context, ordinal int32) (bindings, error) {
	return i.notes.volumes.get(ordinal, func() (bindings, error) {
		vols, why, err := storage.Volumes(ctx, i.Plan, i.On, i.from, ordinal)
		return bindings{vols, why}, err
	})
}

// Check runs the whole catalogue and reports everything that it finds (not only the
// first). Nothing has been written when it returns. j is the journal of a stored plan of
// which nothing has been begun, or nil.
func Check(ctx context.Context, p *plans.Plan, on clusters.Clusters, j *plans.Journal, orchestrated Orchestrated) (*Report, error) {
	r := &Report{APIVersion: plans.APIVersion, Kind: "CheckReport", Plan: p.Name, Source: p.Source, Destination: p.Destination}
	i := inspect(p, on)
	i.taken, i.orchestrated = j != nil && j.Epoch > 0, orchestrated
	access, others := accessChecks(), lookingChecks()
	var err error
	if r.Checks, err = i.results(ctx, access); err != nil {
		return nil, err
	}
	if len(r.Failed()) > 0 {
		r.NotRun = len(others)
		return r, nil
	}
	if i.now, err = Survey(ctx, on, p.Source, p.Destination, p.MaxUnavailable, "", p.Patches); err != nil && !errors.As(err, new(errClash)) { // a check finds that
		return nil, err
	}
	more, err := i.results(ctx, others)
	if err != nil {
		return nil, err
	}
	r.Checks = append(r.Checks, more...)
	r.Backends, err = i.backends(ctx)
	return r, err
}

// CheckWave asks again, before the given ordinals move, what can have changed since Check
// and would not be found, or be found too late, by the looks of the engine. on must be
// clients that may be used side by side, such as those of Connect. It gives
// what must be mended before they move: warnings have been given before the first
// write, and what the plan ignores is ignored here too. Of a plan that is being walked back only what would stop
// it anyway is asked, with the ordinals down (S17): the way out is never barred by more.
func CheckWave(ctx context.Context, p *plans.Plan, on clusters.Clusters, j *plans.Journal, ordinals plans.Slice, orchestrated Orchestrated) ([]Finding, error) {
	if j.Leg.Course == plans.Clean {
		return nil, nil
	}
	i := inspect(p, on)
	i.ordinals, i.midway, i.taken, i.orchestrated = ordinals, true, true, orchestrated
	if j.Leg.Course == plans.Return {
		i.from = plans.Destination
	}
	var err error
	if i.now.Set, err = i.Set(ctx, plans.Source); err != nil {
		return nil, err
	}
	if i.now.Existing, err = i.Set(ctx, plans.Destination); err != nil {
		return nil, err
	}
	if i.now.Set == nil || i.now.Existing == nil {
		return nil, nil // the next look says which of them is gone
	}
	again := slices.DeleteFunc(catalogue(), func(c check) bool { return !c.wave || j.Leg.Course == plans.Return && !c.back })
	results, err := i.results(ctx, again)
	if err != nil {
		return nil, err
	}
	return (&Report{Checks: results}).Failed(), nil
}

// atOnce is how many requests the checks send side by side, so that a distant API server
// does not make them long.
const atOnce = 8

// results runs checks side by side, and gives what they found in their order.
func (i inspection) results(ctx context.Context, checks []check) ([]Result, error) {
	out := make([]Result, len(checks))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for k, c := range checks {
		g.Go(func() (err error) {
			defer plans.Caught(&err)
			found, err := c.run(ctx, i)
			if err != nil {
				return fmt.Errorf("check %s: %w", c.name, err)
			}
			out[k] = c.result(found, slices.Contains(i.Plan.Ignored, c.name))
			return nil
		})
	}
	return out, g.Wait()
}

func (c check) result(found []Finding, ignored bool) Result {
	r := Result{Group: c.group, Name: c.name, About: c.about, Level: Pass}
	for _, f := range found {
		f.Check = c.name
		if f.Level == "" {
			f.Level = Fail
		}
		if ignored && c.ignorable {
			f.Level, f.Ignored = Warn, true
		}
		if r.Level != Fail {
			r.Level = f.Level
		}
		r.Findings = append(r.Findings, f)
	}
	return r
}
