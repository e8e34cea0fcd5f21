package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Lost returns nil if the record of a plan may be recovered: its journal does not exist, and the stored
// plan is this one or does not exist either. Otherwise it returns the reason.
func (s *Store) Lost(ctx context.Context, p *plans.Plan) error {
	var cm corev1.ConfigMap
	err := s.home.Get(ctx, s.journalMap(), &cm)
	if err == nil {
		return fmt.Errorf("the journal of plan %s exists (ConfigMap %s), and only a lost journal is recovered; if it cannot be read, keep a copy, delete it, and repeat the command", p.Name, s.journalMap())
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading ConfigMap %s: %w", s.journalMap(), err)
	}
	have, err := s.Plan(ctx)
	switch {
	case errors.As(err, new(ErrNoPlan)):
		return nil
	case err != nil:
		return err
	case have.ID != p.ID || have.Hash != p.Hash:
		return fmt.Errorf("ConfigMap %s holds another plan named %s (ID %s, hash %s; the one to be recovered has ID %s, hash %s): give the file of the plan that was under way", s.planMap(), p.Name, have.ID, have.Hash, p.ID, p.Hash)
	}
	return nil
}

// Orphaned reports whether the ConfigMap of a plan is gone, and the journal of exactly this plan is there. The journal has all
// that a recovery could only rebuild in part.
func (s *Store) Orphaned(ctx context.Context, p *plans.Plan) (bool, error) {
	if _, err := s.Plan(ctx); !errors.As(err, new(ErrNoPlan)) {
		return false, err
	}
	_, _, err := s.Journal(ctx, p)
	if errors.As(err, new(ErrNoJournal)) {
		return false, nil
	}
	return err == nil, err
}

// PutBack stores a plan beside its journal (Orphaned).
func (s *Store) PutBack(ctx context.Context, p *plans.Plan) error { return s.putPlan(ctx, p) }

// Restore stores a recovered record, the plan first: if the process dies between the two writes, Restore
// can start again. It never replaces a journal.
func (s *Store) Restore(ctx context.Context, p *plans.Plan, j *journal.Journal) error {
	if err := s.Lost(ctx, p); err != nil {
		return err
	}
	raw, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if _, err := journal.Decode(raw, p); err != nil {
		return err
	}
	if err := s.putPlan(ctx, p); err != nil {
		return err
	}
	if err := s.Lost(ctx, p); err != nil { // the stored plan of that name must be this one
		return err
	}
	err = s.home.Create(ctx, &corev1.ConfigMap{ObjectMeta: s.meta(s.journalMap()), Data: map[string]string{journalKey: string(raw)}})
	if err != nil {
		return fmt.Errorf("storing the journal of plan %s: %w", s.name, err)
	}
	return nil
}
