package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/records"
)

// The status of a StatefulSetMigration is made of the plan and its journal, with the conditions that tools know which wait
// for objects (kstatus: Argo CD, Flux, Helm; `kubectl wait`). Nothing is decided by it.

// planReady is the state of a plan that nobody has approved.
const planReady = "PlanReady"

// kindMissing says what a cluster lacks that has no StatefulSetMigrations: what people want is in them.
func kindMissing(m meta.RESTMapper, namespace string) error {
	kind := records.DeclarationKind()
	if _, err := m.RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
		return fmt.Errorf("this cluster has no kind %s, by which the orchestrator in namespace %s is asked for everything: install it (`stsmigrate install orchestrator --apply`, or the chart), which brings the CustomResourceDefinition", kind.Kind, namespace)
	} else if err != nil {
		return err
	}
	return nil
}

// standing is where a plan stands, as far as there is one.
type standing struct {
	name     string
	declared *records.Declared
	plan     *plans.Plan
	journal  *plans.Journal
	// state is that of orchestrator.State, or why there is none.
	state, holder string
	asked         engine.Requested
	// wrong says why nothing can be done, and waits what is waited for.
	wrong error
	waits string
}

// frontStatus is what is shown of it.
type frontStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	State              string             `json:"state"`
	Message            string             `json:"message,omitempty"`
	Course             plans.Direction    `json:"direction,omitempty"`
	Plan               string             `json:"plan,omitempty"`
	Hash               string             `json:"hash,omitempty"`
	Summary            string             `json:"summary,omitempty"`
	Source             string             `json:"source,omitempty"`
	Destination        string             `json:"destination,omitempty"`
	Conditions         []metav1.Condition `json:"conditions"`
}

// otherwise says why something that is declared is not so, or not yet.
func (s standing) otherwise() string {
	d := s.declared
	switch {
	case d == nil || s.plan == nil:
		return ""
	case d.Wrong != nil:
		return d.Wrong.Error()
	case d.Object.GetDeletionTimestamp() != nil:
		return fmt.Sprintf("it was deleted, and goes when plan %s has ended; that stops nothing (to abort: spec.direction: %s)", s.plan.Name, plans.Abort)
	case s.journal == nil:
		return ""
	case !s.journal.Detached:
		return fmt.Sprintf("plan %s is carried out by commands, and not by an orchestrator", s.plan.Name)
	case d.Spec.ApprovedHash != s.plan.Hash:
		return fmt.Sprintf("spec.approvedHash is %q, and the plan is another one (%s, hash %s): nothing is heard of this object", d.Spec.ApprovedHash, s.plan.ID, s.plan.Hash)
	}
	if field := s.plan.Differs(d.Spec); field != "" {
		return fmt.Sprintf("spec.%s is not that of plan %s, and a plan does not change: nothing is done about it", field, s.plan.Name)
	}
	return s.asked.Refused
}

// ready reports whether the plan is where it was to get.
func (s standing) ready() bool {
	if s.journal == nil || s.journal.Outcome == "" {
		return false
	}
	if s.asked.RemoveNames {
		return false
	}
	return s.declared == nil || s.declared.Spec == nil || s.declared.Spec.Direction != plans.Finalize || s.journal.Ended()
}

// underWay reports whether something is done about it now.
func (s standing) underWay() bool {
	return s.asked.RemoveNames || slices.Contains([]string{planning, "Moving", "Aborting", "Finalizing"}, s.state)
}

// message is what a person has to know first.
func (s standing) message() string {
	switch j := s.journal; {
	case s.wrong != nil:
		return s.wrong.Error()
	case j != nil && j.Overdue != "":
		return "overdue: " + j.Overdue
	case j != nil && j.Blocked != "":
		return j.Blocked
	case s.otherwise() != "":
		return s.otherwise()
	case s.waits == "" && j != nil && s.holder == "":
		return j.Waiting
	}
	return s.waits
}

// shows brings what is shown up to date.
func shows(before frontStatus, s standing, now metav1.Time) frontStatus {
	message := records.Brief(s.message())
	out := frontStatus{}
	if s.state == unreadable { // what is known of it stays said
		out = before
	}
	out.State, out.Message, out.Conditions = s.state, message, slices.Clone(before.Conditions)
	if s.declared != nil {
		out.ObservedGeneration = s.declared.Object.GetGeneration()
	}
	j := s.journal
	if j == nil {
		j = &plans.Journal{}
	}
	if p := s.plan; p != nil {
		out.Plan, out.Hash, out.Source, out.Destination = records.RecordName(p.Name), p.Hash, p.Source.String(), p.Destination.String()
		out.Summary = records.Shortened(plans.Render(p, plans.NewJournal(p).Leg))
		out.Course = j.Leg.Direction
	}
	say := func(kind string, is bool, reason, message string) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: now, ObservedGeneration: out.ObservedGeneration}
		if is {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&out.Conditions, c)
	}
	say("Ready", s.ready(), s.state, message)
	if s.state != unreadable {
		say("Planned", s.plan != nil, s.state, message)
		say("Moved", j.Outcome == plans.Moved || j.Leg.Direction == plans.Finalize, s.state, message)
		say("Finalized", j.Outcome == plans.Finalized, s.state, message)
		say("Aborted", j.Outcome == plans.Aborted, s.state, message)
	}
	why := s.otherwise()
	say("Accepted", why == "" && s.wrong == nil, map[bool]string{true: "AsDeclared", false: "NotAsDeclared"}[why == "" && s.wrong == nil], records.Brief(why))
	// These two are there only while they are True.
	stalled := s.state == "Blocked" || j.Overdue != "" || s.wrong != nil
	for kind, is := range map[string]bool{"Stalled": stalled, "Reconciling": !stalled && s.underWay()} {
		if !is {
			meta.RemoveStatusCondition(&out.Conditions, kind)
		} else {
			say(kind, true, s.state, message)
		}
	}
	slices.SortFunc(out.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return out
}

// show writes it, if this process has the plan under way or nobody has, and there is news.
func (h *Orchestrator) show(ctx context.Context, s standing) error {
	if s.declared == nil || s.holder != "" && s.holder != h.Holder {
		return nil
	}
	var before frontStatus
	status, _, _ := unstructured.NestedMap(s.declared.Object.Object, "status")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &before); err != nil {
		before = frontStatus{} // somebody else has written something else
	}
	next := shows(before, s, metav1.NewTime(h.Now()))
	if equality.Semantic.DeepEqual(before, next) {
		return nil
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&next)
	if err != nil {
		return err
	}
	o := records.NewDeclared(h.Namespace, s.name)
	o.SetUID(s.declared.Object.GetUID())
	o.Object["status"] = status
	return client.IgnoreNotFound(h.Live.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("stsmigrate"), client.ForceOwnership))
}

// waiting shows a plan that nobody has approved.
func (s standing) unapproved() standing {
	s.waits = fmt.Sprintf("waits for approval: look at status.summary, and set spec.approvedHash to %s", s.plan.Hash)
	d := s.declared
	if d == nil || d.Spec == nil {
		return s
	}
	field := s.plan.Differs(d.Spec)
	switch said := d.Spec.ApprovedHash; {
	case said != "":
		s.wrong = fmt.Errorf("spec.approvedHash is %s, and the plan that is stored (ConfigMap %s) has %s: nothing is begun; approve that one in a new object, or delete the ConfigMap", said, records.RecordName(s.name), s.plan.Hash)
	case field != "":
		s.wrong = errors.New(stale(s.name, field))
	}
	return s
}

func stale(name, field string) string {
	return fmt.Sprintf("spec.%s is not that of the plan that was made: delete ConfigMap %s, and it is made anew", field, records.RecordName(name))
}
