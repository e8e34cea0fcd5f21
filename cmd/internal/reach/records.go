package reach

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Journal reads the journal of the plan, or returns a new one for a plan of which nothing has been done. A
// crash between storing the plan and its journal leaves nothing begun: had the plan been under way, the marks
// on its sets would show it.
func (t *Target) Journal(ctx context.Context, fresh bool) (*journal.Journal, error) {
	if fresh {
		return journal.New(t.Plan), nil
	}
	j, err := t.Store.JournalOrNew(ctx, t.Plan)
	if none := (records.ErrNoJournal{}); errors.As(err, &none) && !none.Begun {
		return journal.New(t.Plan), nil
	}
	return j, err
}

// ToBegin is Journal for a command that begins the plan unless it has begun. A journal that is missing is lost if a set
// carries the mark of the plan.
func (t *Target) ToBegin(ctx context.Context, fresh bool) (*journal.Journal, error) {
	j, err := t.Journal(ctx, fresh)
	if err != nil || fresh || j.Epoch > 0 {
		return j, err
	}
	_, _, lost := t.Store.Journal(ctx, t.Plan)
	if !errors.As(lost, new(records.ErrNoJournal)) {
		return j, nil
	}
	for side := range t.On {
		set, err := clusters.Pair{Plan: t.Plan, On: t.On}.Set(ctx, side)
		if err != nil {
			return nil, err
		}
		if set == nil {
			continue
		}
		if by, marked := plans.Stamped(set); marked && by.Plan == t.Plan.ID {
			return nil, lost
		}
	}
	return j, nil
}

// elsewhere returns the same plan with the home that commands would use: the destination's namespace.
func (r *Flags) elsewhere(t *Target) *Target {
	there, home := *t, *t.Ends[plans.Destination]
	home.Namespace = t.Plan.Destination.Namespace
	there.Home = &home
	there.Store = records.NewStore(there.Home.Client, there.Home.Namespace, t.Plan.Name)
	there.Flags = r.found(t.Plan, there.Home)
	return &there
}

// NotEnded returns why the record of a plan must stay, or how that of a plan is deleted which no orchestrator has begun:
// its abort would need the consent that the plan may lack.
func (t *Target) NotEnded(j *journal.Journal) error {
	if j.Detached && j.Untouched() {
		return fmt.Errorf("plan %s was never begun, and has no end: `%s delete --ignore-not-found statefulsetmigration/%s configmap/%s` takes it back, and the orchestrator deletes what is left",
			t.Plan.Name, t.Home.Kubectl(t.Home.Namespace), t.Plan.Name, records.RecordName(t.Plan.Name))
	}
	return fmt.Errorf("plan %s has not ended: everything else depends on its record; first run %s or %s", t.Plan.Name, t.Command("finalize"), t.Command("abort"))
}

// HandBack lets a rebuilt journal say that an orchestrator carries the plan out: the user says so, or the object that
// approves the plan is there. What that object declares counts as observed.
func (t *Target) HandBack(ctx context.Context, j *journal.Journal, detached bool) error {
	d, err := records.ReadDeclared(ctx, t.Home.Client, t.Home.Namespace, t.Plan.Name)
	if j.Detached = detached || err == nil && d != nil && d.Spec != nil && d.Spec.ApprovedHash == t.Plan.Hash; !j.Detached {
		return nil
	}
	if err == nil && d != nil {
		requests.Observe(t.Plan, j, d.Spec)
	}
	return err
}

// NotOfCommands refuses to detach a plan that commands carry out: two records of it would not know of each
// other.
func (t *Target) NotOfCommands(ctx context.Context) error {
	have, err := t.Store.Plan(ctx)
	switch {
	case errors.As(err, new(records.ErrNoPlan)), apierrors.IsForbidden(err), err == nil && have.ID != t.Plan.ID:
		return nil // without the right to read there, the user has stored no plan there either
	case err != nil:
		return err
	}
	j, err := t.Store.JournalOrNew(ctx, t.Plan)
	if errors.As(err, new(records.ErrNoJournal)) { // nothing has begun
		return nil
	}
	if err != nil || j.Detached {
		return err
	}
	return fmt.Errorf("plan %s is stored in namespace %s, where it is carried out by commands, and not by an orchestrator: omit --detach and resume it with %s, or abort it with %s and make a new plan",
		t.Plan.Name, t.Home.Namespace, t.Command("apply"), t.Command("abort"))
}

// HandsOver refuses a plan that commands carry out, and a home where no request can be declared to an
// orchestrator.
func (r *Flags) HandsOver(ctx context.Context, t *Target) error {
	if err := r.elsewhere(t).NotOfCommands(ctx); err != nil {
		return err
	}
	_, err := records.ReadDeclared(ctx, t.Home.Client, t.Home.Namespace, t.Plan.Name)
	return err
}

// Declare changes the declaration of a plan, given its journal as it is at that moment.
func (t *Target) Declare(ctx context.Context, change func(*journal.Journal, *plans.Declaration) error) error {
	return records.Declare(ctx, t.Home.Client, t.Home.Namespace, t.Plan, func(d *plans.Declaration) error {
		j, err := t.Journal(ctx, false)
		if err != nil {
			return err
		}
		j.Detached = true
		if err := change(j, d); err != nil {
			return err
		}
		if asked := requests.Read(t.Plan, j, d); asked.Refuse != nil {
			return reasons.Because(asked.RefusedID, errors.New(asked.Refused))
		}
		return d.Validate()
	})
}
