package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// A plan that is requested in another namespace than the orchestrator's. The user who may write the object has no right
// where the record is. So the orchestrator keeps the record in step with the object, and lets the object speak for no
// namespace that has not said so.

// Requests say where users may request plans, and what is known of these users.
type Requests struct {
	// RequestsFrom are the namespaces besides the orchestrator's own; All means every one.
	RequestsFrom []string
	// Requesters reports that admission writes down who has set each request of a StatefulSetMigration.
	Requesters bool
}

// All stands for every namespace in RequestsFrom.
const All = "*"

// serves reports whether users may request a plan of this name.
func (r Requests) serves(plan string) bool {
	from, _ := plans.RequestedIn(plan)
	return from == "" || slices.Contains(r.RequestsFrom, All) || slices.Contains(r.RequestsFrom, from)
}

// plansOf returns, for an object, a request for the plan that it belongs to. home is the orchestrator's namespace.
func plansOf(home string) handler.MapFunc {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		name := o.GetLabels()[plans.PlanLabel]
		if o.GetObjectKind().GroupVersionKind().Kind == plans.DeclarationKind {
			name = records.PlanOf(home, o) // users write these without a label
		}
		if name == "" || strings.HasPrefix(name, plans.NameIn(home, "")) { // no object requests a plan of such a name
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: home, Name: name}}}
	}
}

// unserved returns why a stored plan is left alone whose namespace is not served.
func (r Requests) unserved(home string, p *plans.Plan) error {
	if r.serves(p.Name) {
		return nil
	}
	from, _ := plans.RequestedIn(p.Name)
	return records.ErrUnreadable{Name: types.NamespacedName{Namespace: home, Name: records.RecordName(p.Name)}, Why: fmt.Errorf(
		"plan %s was requested in namespace %s, from which this orchestrator takes no requests: have it take them until the plan has ended (--requests-from, or orchestrator.requestsFrom of the chart)", p.Name, from)}
}

// outdated reports whether the record of a plan belongs to an object that is not there any more, or that said something
// else when the plan was made. Nothing of such a plan was begun, or it has ended.
func outdated(p *plans.Plan, j *journal.Journal, d *records.Declared) bool {
	if from, _ := plans.RequestedIn(p.Name); from == "" {
		return false // users keep these records
	}
	unbegun := j == nil || j.Untouched()
	switch {
	case d == nil:
		return unbegun
	case d.Spec == nil, d.Spec.ApprovedHash != "", d.Object.GetDeletionTimestamp() != nil:
		return false
	case j == nil:
		return p.Differs(d.Spec) != ""
	}
	return unbegun || j.Over() // what has a journal was approved, by an earlier object of this name
}

// spokenFor returns why an object may not request a plan of these two sets; nil if it may. An object speaks for its own
// namespace in the orchestrator's own cluster, where RBAC says who may write it. Every other namespace, and one of the
// same name in another cluster, says by itself from where its moves may be requested. A plan is made with the
// orchestrator's rights to look, and says what it has seen: so this is asked before anything else of a set is read. own
// is the orchestrator's cluster.
func spokenFor(ctx context.Context, own types.UID, plan string, refs map[plans.Side]plans.Ref, on clusters.Clusters) error {
	from, _ := plans.RequestedIn(plan)
	if from == "" {
		return nil
	}
	for _, side := range plans.Sides() {
		r := refs[side]
		if r.Namespace == from && r.Cluster == own {
			continue
		}
		why, err := access.MayRequest(ctx, on[side], r.Namespace, string(own)+"/"+from)
		if err != nil {
			return fmt.Errorf("%s, cluster %s: %w", side, r.Context, err)
		}
		if why != "" {
			return reasons.Because(reasons.NoConsent, fmt.Errorf("an object in namespace %s may not request a move of namespace %s in cluster %s (%s): %s", from, r.Namespace, r.Context, side, why))
		}
	}
	return nil
}
