package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Try sends what Create would write as dry runs, and stores nothing. It deletes nothing either: for an earlier plan of the
// name it only returns the error that Create would return.
func (s *Store) Try(ctx context.Context, p *plans.Plan, first *journal.Journal) error {
	if err := plans.RefuseStoredName(p.Name); err != nil {
		return err
	}
	switch have, err := s.Plan(ctx); {
	case errors.As(err, new(ErrNoPlan)):
	case err != nil:
		return err
	case have.ID == p.ID:
		return nil
	default:
		if why := s.Needed(ctx, have); why != nil {
			return fmt.Errorf("namespace %s has another plan named %s (%s), %w: finish it, or give this one another --name", s.name.Namespace, s.name.Name, have.ID, why)
		}
		return nil // Create deletes the old one first
	}
	raw, err := json.Marshal(first)
	if err != nil {
		return err
	}
	dry := &Store{home: client.NewDryRunClient(s.home), name: s.name}
	if err := dry.putPlan(ctx, p); err != nil {
		return err
	}
	return dry.put(ctx, &corev1.ConfigMap{ObjectMeta: s.meta(s.journalMap()), Data: map[string]string{journalKey: string(raw)}})
}
