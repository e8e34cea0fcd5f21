package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/internal/api/v1alpha1"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/preview"
)

// The status of a StatefulSetMigration is derived from the plan and its journal. Its conditions are the
// ones that tools that wait for objects understand (kstatus: Argo CD, Flux, Helm; `kubectl wait`). No
// decision depends on the status.

// disputeInterval is how long a status stays that another process has written, and that this one does not agree with.
const disputeInterval = time.Minute

// kindMissing returns an error if a cluster has no kind StatefulSetMigration: without it there is
// nothing to orchestrate.
func kindMissing(m meta.RESTMapper, namespace string) error {
	kind := records.DeclarationKind()
	if _, err := m.RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
		return fmt.Errorf("this cluster has no kind %s, which the orchestrator in namespace %s needs for every request: install it (`stsmigrate install orchestrator --apply`, or the chart), which brings the CustomResourceDefinition", kind.Kind, namespace)
	} else if err != nil {
		return err
	}
	return nil
}

// standing is the state of a plan as far as it is known.
type standing struct {
	name     string
	declared *records.Declared
	plan     *plans.Plan
	journal  *journal.Journal
	// state is the result of records.State, or why there is no plan or journal.
	state  plans.State
	holder string
	asked  requests.Requested
	// wrong is why nothing can be done, and waits is what the plan waits for.
	wrong   error
	waitsID reasons.ID
	waits   string
}

// frontStatus is the status of a StatefulSetMigration.
type frontStatus = v1alpha1.StatefulSetMigrationStatus

// since returns since when a plan has been in a state, if this was its status until now.
func since(before frontStatus, state plans.State, now metav1.Time) *metav1.Time {
	if before.State == state && before.Since != nil {
		return before.Since
	}
	return &now
}

// otherwise returns why a declaration has no effect, or none yet; "" if it has.
func (s standing) otherwise() (reasons.ID, string) {
	d := s.declared
	switch {
	case d == nil || s.plan == nil:
		return "", ""
	case d.Wrong != nil:
		return reasons.DeclarationInvalid, d.Wrong.Error()
	case d.Object.GetDeletionTimestamp() != nil:
		return reasons.DeclarationDeleted, fmt.Sprintf("it is being deleted, and disappears when plan %s has ended; the deletion does not stop the plan (to abort: spec.direction: %s)", s.plan.Name, plans.Abort)
	case s.journal == nil:
		return "", ""
	case !s.journal.Detached:
		return reasons.CarriedOutElsewhere, fmt.Sprintf("plan %s is carried out by commands, and not by an orchestrator", s.plan.Name)
	case d.Spec.ApprovedHash != s.plan.Hash:
		return reasons.ApprovalOutdated, fmt.Sprintf("spec.approvedHash is %q, but the plan under this name is %s (hash %s): this object has no effect on it", d.Spec.ApprovedHash, s.plan.ID, s.plan.Hash)
	}
	if field := s.plan.Differs(d.Spec); field != "" {
		return reasons.DeclarationDiffers, fmt.Sprintf("spec.%s differs from plan %s, and a plan never changes: the difference has no effect", field, s.plan.Name)
	}
	return s.asked.RefusedID, s.asked.Refused
}

// ready reports whether the plan has reached its declared end.
func (s standing) ready() bool {
	if s.journal == nil || s.journal.Outcome == "" {
		return false
	}
	if s.asked.RemoveNames || s.asked.Work { // it was asked for, and has not begun
		return false
	}
	return s.declared == nil || s.declared.Spec == nil || s.declared.Spec.Direction != plans.Finalize || s.journal.Ended()
}

// underWay reports whether the orchestrator works on the plan now.
func (s standing) underWay() bool {
	return s.asked.RemoveNames || s.state.Worked()
}

// stalled reports whether the plan needs a user.
func (s standing) stalled(j *journal.Journal) bool {
	return s.state == plans.StateBlocked || j.Overdue != "" || s.wrong != nil || s.holder == "" && journal.ClusterUnknown(j)
}

// message returns what the user needs to know first, and the ID of its reason.
func (s standing) message() (reasons.ID, string) {
	id, otherwise := s.otherwise()
	switch j := s.journal; {
	case s.wrong != nil:
		return reasons.Of(s.wrong), s.wrong.Error()
	case j != nil && j.Blocked != "": // a reason to wait from before it explains nothing any more
		return j.BlockedID, j.Blocked
	case j != nil && j.Overdue != "":
		return j.OverdueID, "overdue: " + j.Overdue
	case otherwise != "":
		return id, otherwise
	case s.waits == "" && j != nil && s.holder == "":
		return j.WaitingID, j.Waiting
	}
	return s.waitsID, s.waits
}

// next returns what the user can do next, or "".
func (s standing) next(namespace string) string {
	object := records.NewDeclared(namespace, s.name)
	command := func(verb string) string {
		return fmt.Sprintf("`stsmigrate %s %s -n %s --context HOME`", verb, object.GetName(), object.GetNamespace())
	}
	switch j := s.journal; {
	case s.wrong != nil, j != nil && j.Overdue != "" && j.Blocked == "":
		return command("status")
	case j == nil && s.plan != nil:
		return fmt.Sprintf("review status.summary of StatefulSetMigration %s/%s, and set spec.approvedHash to %s", object.GetNamespace(), object.GetName(), s.plan.Hash)
	case j != nil && s.plan != nil:
		return engine.Advice(s.plan, j, s.holder, s.asked.Work, command)
	}
	return ""
}

// shows returns the status before, brought up to date.
func shows(before frontStatus, s standing, now metav1.Time) frontStatus {
	id, message := s.message()
	message = records.Brief(reasons.Tagged(id, message))
	out := frontStatus{}
	if s.state == plans.StateUnreadable { // what is known of the plan stays in the status
		out = before
	}
	out.State, out.Since, out.Message, out.Conditions = s.state, since(before, s.state, now), message, slices.Clone(before.Conditions)
	if s.declared != nil {
		out.ObservedGeneration = s.declared.Object.GetGeneration()
	}
	j := s.journal
	if j == nil {
		j = &journal.Journal{}
	}
	if p := s.plan; p != nil {
		out.Plan, out.Hash, out.Source, out.Destination = records.RecordName(p.Name), p.Hash, p.Source.String(), p.Destination.String()
		out.Summary = records.Shortened(preview.Render(p, journal.New(p).Leg))
		out.Direction = j.Leg.Direction
	}
	say := func(kind string, is bool, reason, message string) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: now, ObservedGeneration: out.ObservedGeneration}
		if is {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&out.Conditions, c)
	}
	say("Ready", s.ready(), string(s.state), message)
	if s.state != plans.StateUnreadable {
		say("Planned", s.plan != nil, string(s.state), message)
		say("Moved", j.Outcome == plans.Moved || j.Leg.Direction == plans.Finalize, string(s.state), message)
		say("Finalized", j.Outcome == plans.Finalized, string(s.state), message)
		say("Aborted", j.Outcome == plans.Aborted, string(s.state), message)
	}
	_, why := s.otherwise()
	say("Accepted", why == "" && s.wrong == nil, map[bool]string{true: "AsDeclared", false: "NotAsDeclared"}[why == "" && s.wrong == nil], records.Brief(why))
	// These two exist only while they are True.
	stalled := s.stalled(j)
	for kind, is := range map[string]bool{"Stalled": stalled, "Reconciling": !stalled && s.underWay()} {
		if !is {
			meta.RemoveStatusCondition(&out.Conditions, kind)
		} else {
			say(kind, true, cmp.Or(string(id), string(s.state)), message)
		}
	}
	slices.SortFunc(out.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return out
}

// saying is what this process would have the status of an object say, and when it last wrote that.
type saying struct {
	what string
	at   time.Time
}

// disputed returns how long this process leaves a status as it is that another one has replaced, although nothing has
// changed here. Processes that do not agree, such as on an error, would otherwise wake each other for ever.
func (m *memory) disputed(name, what string, same bool) time.Duration {
	m.lock.Lock()
	defer m.lock.Unlock()
	s := m.state(name)
	last := s.says
	if !same && last.what == what {
		if left := disputeInterval - clusters.Elapsed(last.at, m.Now()); left > 0 {
			return left
		}
	}
	if !same || last.what != what {
		s.says = saying{what, m.Now()}
	}
	return 0
}

// show puts a plan on the page, and tells the receiver of notifications, if there is one, of the state. It
// writes the status if it has changed, and if this process or no process holds the Lease. It returns when to show it
// again; 0 if there is nothing to wait for.
func (h *Orchestrator) show(ctx context.Context, s standing) (time.Duration, error) {
	h.put(s)
	h.notices.add(s)
	if s.declared == nil || s.holder != "" && s.holder != h.Holder {
		h.with(s.name, (*planState).silent)
		return 0, nil
	}
	before := s.declared.Status
	before.Notified = nil // another field manager writes it
	next := shows(before, s, metav1.NewTime(h.Now()))
	if s.plan != nil {
		file, err := shownFile(s.plan)
		if err != nil {
			return 0, err
		}
		next.PlanFile = file
	}
	same := equality.Semantic.DeepEqual(before, next)
	what := fmt.Sprint(s.declared.Object.GetUID(), next.ObservedGeneration, next.State, next.Message)
	if left := h.disputed(s.name, what, same); same || left > 0 {
		return left, nil
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&next)
	if err != nil {
		return 0, err
	}
	o := records.NewDeclared(h.Namespace, s.name)
	o.SetUID(s.declared.Object.GetUID())
	o.Object["status"] = status
	if err = h.Live.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("stsmigrate"), client.ForceOwnership); err != nil {
		h.with(s.name, (*planState).silent)
	}
	return 0, client.IgnoreNotFound(err)
}

// silent forgets what the status of an object should say: another process says it, or the write has failed.
func (s *planState) silent() { s.says = saying{} }

// showing shows a plan, and returns the result of a pass that ends with that.
func (h *Orchestrator) showing(ctx context.Context, s standing, later time.Duration) (reconcile.Result, error) {
	again, err := h.show(ctx, s)
	return reconcile.Result{RequeueAfter: sooner(later, again)}, err
}

// unapproved returns the standing of a plan that is not approved, with what the user has to do.
func (s standing) unapproved() standing {
	s.waitsID, s.waits = reasons.WaitsForApproval, fmt.Sprintf("waits for approval: look at status.summary, and set spec.approvedHash to %s", s.plan.Hash)
	again := "delete the ConfigMap"
	if from, _ := plans.RequestedIn(s.name); from != "" {
		again = "delete this object and create it again"
		if file, err := shownFile(s.plan); err != nil || file == "" {
			s.waits += fmt.Sprintf("; the plan has more than %d KiB, so the object does not show it: it is in ConfigMap %s in the namespace of the orchestrator", maxPlanFile>>10, records.RecordName(s.name))
		}
	}
	d := s.declared
	if d == nil || d.Spec == nil {
		return s
	}
	field := s.plan.Differs(d.Spec)
	switch said := d.Spec.ApprovedHash; {
	case said != "":
		s.wrong = reasons.Because(reasons.ApprovalOutdated, fmt.Errorf("spec.approvedHash is %s, but the stored plan (ConfigMap %s) has the hash %s: the plan does not begin; approve the stored plan in a new object, or %s", said, records.RecordName(s.name), s.plan.Hash, again))
	case field != "":
		s.wrong = reasons.Because(reasons.DeclarationDiffers, errors.New(stale(s.name, field)))
	}
	return s
}

// maxPlanFile is how many bytes of a plan its object shows: more would leave too little room for the rest of it.
const maxPlanFile = 512 << 10

// shownFile returns the plan as a file, for the status of an object whose users may not read where the record is.
func shownFile(p *plans.Plan) (string, error) {
	if from, _ := plans.RequestedIn(p.Name); from == "" {
		return "", nil
	}
	raw, err := plans.Encode(p)
	if err != nil || len(raw) > maxPlanFile {
		return "", err
	}
	return string(raw), nil
}

func stale(name, field string) string {
	return fmt.Sprintf("spec.%s differs from the stored plan: delete ConfigMap %s, and the plan is recreated", field, records.RecordName(name))
}
