package records

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Listed is one plan of a list, in the namespace that stores it: the destination's namespace, or that of
// the orchestrator.
type Listed struct {
	APIVersion  string      `json:"apiVersion"`
	Kind        string      `json:"kind"`
	Name        string      `json:"name"`
	Namespace   string      `json:"namespace"`
	State       plans.State `json:"state"`
	Source      *plans.Ref  `json:"source,omitempty"`
	Destination *plans.Ref  `json:"destination,omitempty"`
	// Reason is why a plan is Unreadable.
	Reason string `json:"reason,omitempty"`
	// ReasonID names why a plan is blocked or waits, or why it is Unreadable.
	ReasonID reasons.ID `json:"reasonID,omitempty"`
	// Holder is the process that carries the plan out now.
	Holder string `json:"holder,omitempty"`
	// Moved is how many of the Ordinals are on the destination, by the journal, and Begun when the first process began.
	Moved    int32        `json:"moved"`
	Ordinals int32        `json:"ordinals,omitempty"`
	Begun    *metav1.Time `json:"begun,omitempty"`
	// MaxUnavailable is d.
	MaxUnavailable string `json:"maxUnavailable,omitempty"`
}

// Entry is one plan of a list with what is stored of it.
type Entry struct {
	Listed
	// Plan and Journal are nil if they cannot be read.
	Plan    *plans.Plan
	Journal *journal.Journal
}

// List returns the plans of a namespace, or of all namespaces with "". A plan that cannot be read is
// listed as Unreadable, and hides no other.
func List(ctx context.Context, home client.Client, namespace string, now func() time.Time) ([]Listed, error) {
	all, err := Entries(ctx, home, namespace, now)
	if err != nil {
		return nil, err
	}
	out := []Listed{}
	for _, e := range all {
		out = append(out, e.Listed)
	}
	return out, nil
}

// Entries returns the plans that List does, with what is stored of each.
func Entries(ctx context.Context, home client.Client, namespace string, now func() time.Time) ([]Entry, error) {
	var maps corev1.ConfigMapList
	if err := home.List(ctx, &maps, client.InNamespace(namespace), client.HasLabels{plans.PlanLabel}); err != nil {
		return nil, fmt.Errorf("listing plans: %w", err)
	}
	out := []Entry{}
	for i := range maps.Items {
		if cm := &maps.Items[i]; holdsPlan(cm) {
			out = append(out, describe(ctx, home, cm, now))
		}
	}
	return out, nil
}

// holdsPlan reports whether a ConfigMap is the record of a plan. The name alone suffices, since the
// content may be lost.
func holdsPlan(cm *corev1.ConfigMap) bool {
	_, has := cm.Data[planKey]
	return has || cm.Name == RecordName(cm.Labels[plans.PlanLabel])
}

// describe reads one plan, and its journal from the same namespace.
func describe(ctx context.Context, home client.Client, cm *corev1.ConfigMap, now func() time.Time) Entry {
	out := Entry{Listed: Listed{APIVersion: plans.APIVersion, Kind: "PlanSummary", Name: strings.TrimPrefix(cm.Name, RecordName("")), Namespace: cm.Namespace, State: plans.StateUnreadable, ReasonID: reasons.RecordUnreadable}}
	var err error
	if out.Plan, err = planIn(cm); err != nil {
		out.Reason = err.Error()
		return out
	}
	out.Source, out.Destination, out.MaxUnavailable = &out.Plan.Source, &out.Plan.Destination, strconv.Itoa(int(out.Plan.MaxUnavailable))
	out.Ordinals = out.Plan.Count
	store := NewStore(home, cm.Namespace, out.Name)
	holder, _, err := store.Holder(ctx, now)
	if err != nil {
		out.Reason = err.Error()
		return out
	}
	j, err := store.JournalOrNew(ctx, out.Plan)
	if err != nil {
		out.Reason = err.Error()
		return out
	}
	out.Journal, out.State, out.Holder = j, State(out.Plan, j, holder), plans.Line(holder)
	out.ReasonID, _ = j.Why()
	out.Moved, _ = j.Places(out.Plan)
	out.Begun = j.Timeline.Begun
	return out
}

// State returns the state of a plan in one word. holder is the process that works on it now, or "".
func State(p *plans.Plan, j *journal.Journal, holder string) plans.State {
	switch {
	case j.Outcome != "":
		return plans.State(j.Outcome)
	case j.Blocked != "":
		return plans.StateBlocked
	case j.AtRest(p):
		return plans.StatePaused
	case j.Epoch == 0:
		return plans.StatePlanned
	case holder == "" && j.Detached:
		return plans.StateWaiting // for a process to take it
	case holder == "":
		if _, flying := j.Places(p); flying > 0 {
			return plans.StateStoppedInFlight
		}
		return plans.StateStopped
	case j.Leg.Direction == plans.Abort:
		return plans.StateAborting
	case j.Leg.Direction == plans.Finalize:
		return plans.StateFinalizing
	}
	return plans.StateMoving
}
