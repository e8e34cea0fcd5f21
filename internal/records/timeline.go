package records

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

const timelineKey = "timeline.json"

// storedTimeline is the content of the ConfigMap that has the entries which the journal no longer has.
type storedTimeline struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Plan is the ID of the plan.
	Plan string `json:"plan"`
	journal.Timeline
}

func (s *Store) timelineMap() types.NamespacedName {
	return types.NamespacedName{Namespace: s.name.Namespace, Name: RecordName(s.name.Name) + "-timeline"}
}

// labelled reports whether only this program can have created a ConfigMap of that name.
func (s *Store) labelled(cm *corev1.ConfigMap) bool {
	_, has := cm.Data[timelineKey]
	return has && cm.Labels[plans.PlanLabel] == s.name.Name
}

// holdsTimeline reports whether a ConfigMap is the timeline of a plan, or one of this program that names
// no plan.
func (s *Store) holdsTimeline(cm *corev1.ConfigMap, plan string) bool {
	var t storedTimeline
	_ = weight.Unmarshal([]byte(cm.Data[timelineKey]), &t)
	return s.labelled(cm) && (t.Plan == "" || t.Plan == plan)
}

// Offload adds entries to the stored timeline of a plan. Entries that it has already are not added again. It leaves
// alone, with an error, what it cannot read; the timeline of an earlier plan of the same name is replaced.
func (s *Store) Offload(ctx context.Context, p *plans.Plan, t journal.Timeline) error {
	have, cm, err := s.stored(ctx, p)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(storedTimeline{plans.APIVersion, plans.TimelineKind, p.ID, have.Merge(t)})
	if err != nil {
		return err
	}
	next := &corev1.ConfigMap{ObjectMeta: s.meta(s.timelineMap()), Data: map[string]string{timelineKey: string(raw)}}
	if cm == nil {
		err = s.home.Create(ctx, next)
	} else {
		next.UID, next.ResourceVersion = cm.UID, cm.ResourceVersion
		err = s.home.Update(ctx, next)
	}
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s: %w", s.timelineMap(), err)
	}
	return nil
}

// Timeline returns the whole timeline of a plan: the stored entries, and those of its journal. If the stored entries
// cannot be read, it returns those of the journal, and an error.
func (s *Store) Timeline(ctx context.Context, p *plans.Plan, j *journal.Journal) (journal.Timeline, error) {
	if !j.Timeline.Stored {
		return j.Timeline, nil
	}
	have, _, err := s.stored(ctx, p)
	if err != nil {
		return j.Timeline, err
	}
	return have.Merge(j.Timeline), nil
}

// stored reads the stored entries of a plan, and the ConfigMap that has them; nil if there is none. The ConfigMap of
// an earlier plan of the same name has none of them.
func (s *Store) stored(ctx context.Context, p *plans.Plan) (t journal.Timeline, cm *corev1.ConfigMap, err error) {
	cm = &corev1.ConfigMap{}
	if err := s.home.Get(ctx, s.timelineMap(), cm); err != nil {
		if apierrors.IsNotFound(err) {
			return t, nil, nil
		}
		return t, nil, fmt.Errorf("reading ConfigMap %s: %w", s.timelineMap(), err)
	}
	var have storedTimeline
	err = weight.Unmarshal([]byte(cm.Data[timelineKey]), &have)
	switch {
	case err != nil:
	case have.Kind != plans.TimelineKind || have.APIVersion != plans.APIVersion || !s.labelled(cm):
		err = fmt.Errorf("it is no %s of version %s with the label %s=%s", plans.TimelineKind, plans.APIVersion, plans.PlanLabel, s.name.Name)
	case have.Plan != p.ID:
		return t, cm, nil
	default:
		err = have.Validate(p)
	}
	if err != nil {
		return t, nil, ErrUnreadable{s.timelineMap(), fmt.Errorf("%w; the plan does not need it: delete it, or restore it from a backup", err)}
	}
	return have.Timeline, cm, nil
}
