package reach

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Sides is a plan from a file, and the clusters of its sides as far as they could be reached. The output
// for one namespace is for a user who can see that namespace alone.
type Sides struct {
	Plan *plans.Plan
	On   clusters.Clusters
	Lost map[plans.Side]error
}

// Either connects to the clusters of a plan from a file, as far as they can be reached.
func (r *Flags) Either(ctx context.Context, p *plans.Plan) (*Sides, error) {
	r.oneFile()
	ends, lost, err := r.sides(ctx, p)
	if err != nil {
		return nil, err
	}
	on := clusters.Clusters{}
	for side, e := range ends {
		on[side] = e.Client
	}
	return &Sides{p, on.InTheWordsOf(map[plans.Side]plans.Ref{plans.Source: p.Source, plans.Destination: p.Destination}), lost}, nil
}

// Disks reads which volumes the account of a side has to access. Those of the destination are the source's
// volumes until they have moved.
func (r *Sides) Disks(ctx context.Context, side plans.Side) ([]access.Disk, error) {
	if !r.Plan.HasVolumes() {
		return nil, nil
	}
	j, err := r.journal(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.Lost[plans.Source]; err != nil && side == plans.Destination && (j == nil || !j.Assurances.SourceGone) {
		return nil, fmt.Errorf("which volumes the destination gets is known in the source's cluster: %w", err)
	}
	disks, err := access.Disks(ctx, r.Plan, r.On, j)
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("the moved volumes of plan %s cannot be read, and Roles without their names would take rights away: %w; get the right to list PersistentVolumes, or let a user with that right run this command", r.Plan.Name, err)
	}
	return disks, err
}

// journal reads the journal of the plan where commands keep it. It returns nil if there is none, or if it may
// not be read. The journal of a detached plan is elsewhere, and adds nothing here to the marks on the
// volumes.
func (r *Sides) journal(ctx context.Context) (*journal.Journal, error) {
	if r.On[plans.Destination] == nil {
		return nil, nil
	}
	store := records.NewStore(r.On[plans.Destination], r.Plan.Destination.Namespace, r.Plan.Name)
	have, err := store.Plan(ctx)
	if errors.As(err, new(records.ErrNoPlan)) || apierrors.IsForbidden(err) || err == nil && have.ID != r.Plan.ID {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j, _, err := store.Journal(ctx, r.Plan)
	if errors.As(err, new(records.ErrNoJournal)) {
		return nil, nil
	}
	return j, err
}
