package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/stsmigrate/stsmigrate/internal/api/v1alpha1"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/orchestrator/notify"
	"github.com/stsmigrate/stsmigrate/plans"
)

// noticeOwner owns the field status.notified, which no other writer of the status sets.
const noticeOwner = "stsmigrate-notifications"

// notices sends the changes of the plans' states to a receiver. Of several processes one leads and sends. It
// stores with each plan which change the receiver has accepted last, so that the next leader resumes there.
type notices struct {
	sender *notify.Sender

	// leading is locked by the goroutine that leads.
	leading sync.Mutex

	lock  sync.Mutex
	leads bool
	// queued is the last change that was queued of each plan.
	queued map[string]queued
}

type queued struct {
	object types.UID
	mark   notify.Mark
}

// sendTo has the changes sent to a receiver.
func (h *Orchestrator) sendTo(to notify.Target, agent string) error {
	if err := to.Validate(); err != nil {
		return err
	}
	c, err := to.Client()
	if err != nil {
		return err
	}
	h.notices = &notices{queued: map[string]queued{}, sender: &notify.Sender{
		URL: to.URL, Client: c, Keys: to.Keys, Agent: agent, Now: h.Now, Settled: h.settled, Missed: h.missed, Report: h.reportNotice,
		Waiting: func(events int) { h.gauges.queue.WithLabelValues().Set(float64(events)) },
	}}
	return nil
}

// The Lease of the process that sends, and its times: those that client-go recommends. No plan has a Lease of
// this name: names of plans contain no dots.
const (
	leaderLease   = "stsmigrate.notifications"
	leaderExpiry  = 15 * time.Second
	leaderRenewal = 10 * time.Second
	leaderRetry   = 2 * time.Second
)

// elect lets one of several processes lead, and another one after its end.
func (h *Orchestrator) elect(leases coordinationv1client.LeasesGetter) manager.RunnableFunc {
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Name: leaderLease, LeaseDuration: leaderExpiry, RenewDeadline: leaderRenewal, RetryPeriod: leaderRetry, ReleaseOnCancel: true,
				Lock: &resourcelock.LeaseLock{
					LeaseMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: leaderLease}, Client: leases,
					LockConfig: resourcelock.ResourceLockConfig{Identity: h.Holder},
				},
				Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: h.lead, OnStoppedLeading: func() {}},
			})
			if err != nil {
				return err
			}
			e.Run(ctx)
		}
		return nil
	}
}

// notice queues the change that has led to a state, if it is news. It never waits for the receiver.
func (h *Orchestrator) notice(s standing) {
	n := h.notices
	if n == nil || s.declared == nil {
		return
	}
	n.lock.Lock()
	defer n.lock.Unlock()
	if !n.leads {
		return
	}
	uid := s.declared.Object.GetUID()
	last, known := n.queued[s.name]
	if !known || last.object != uid {
		last = queued{object: uid, mark: notified(s.declared.Status)}
	}
	e, news := notify.Next(last.mark, h.noticeOf(s), h.Now())
	if news {
		last.mark, _ = e.Mark()
		n.sender.Add(e)
	}
	n.queued[s.name] = last
}

// notified returns the last change that the receiver has accepted.
func notified(s v1alpha1.StatefulSetMigrationStatus) notify.Mark {
	if n := s.Notified; n != nil {
		return notify.Mark{Sequence: n.Sequence, Change: notify.Change(n.Change), ID: n.ID}
	}
	return notify.Mark{} // also where another writer has written something else: the present state is sent again
}

// noticeOf returns what is told of a plan: names and counts, and the reason of its state.
func (h *Orchestrator) noticeOf(s standing) notify.State {
	out := notify.State{
		Home: string(h.Fleet.Own), Namespace: h.Namespace, Plan: s.name, Object: string(s.declared.Object.GetUID()), State: s.state, Failed: s.wrong != nil,
	}
	if p := s.plan; p != nil {
		out.ID, out.Hash, out.Ordinals, out.MaxUnavailable = p.ID, p.Hash, p.Count, p.MaxUnavailable
		out.Source, out.Destination = set(p.Source), set(p.Destination)
	}
	switch j := s.journal; {
	case s.wrong != nil:
		out.ReasonID, out.Reason = string(reasons.Of(s.wrong)), records.Brief(s.wrong.Error())
	case j != nil:
		out.Direction, out.Overdue = string(j.Leg.Direction), j.Overdue != ""
		if out.Overdue || j.Blocked != "" {
			id, why := s.message()
			out.ReasonID, out.Reason = string(id), records.Brief(why)
		}
	}
	out.Reason = notify.Told(out.ReasonID, out.Reason, fmt.Sprintf("`stsmigrate status %s -n %s --context HOME`", s.name, h.Namespace))
	out.Next = h.next(s)
	return out
}

// next returns what the user can do next, or "".
func (h *Orchestrator) next(s standing) string {
	command := func(verb string) string {
		return fmt.Sprintf("`stsmigrate %s %s -n %s --context HOME`", verb, s.name, h.Namespace)
	}
	switch j := s.journal; {
	case s.wrong != nil, j != nil && j.Overdue != "" && j.Blocked == "":
		return command("status")
	case j == nil && s.plan != nil:
		return fmt.Sprintf("review status.summary of StatefulSetMigration %s/%s, and set spec.approvedHash to %s", h.Namespace, s.name, s.plan.Hash)
	case j != nil && s.plan != nil:
		return engine.Advice(s.plan, j, s.holder, s.asked.Work, command)
	}
	return ""
}

func set(r plans.Ref) *notify.Set {
	return &notify.Set{Cluster: string(r.Cluster), Context: r.Context, Namespace: r.Namespace, Name: r.Name, Kind: string(r.Kind)}
}

// settled stores with the plan that the receiver has accepted a change.
func (h *Orchestrator) settled(ctx context.Context, e notify.Event) {
	mark, uid := e.Mark()
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&mark)
	if err == nil {
		o := records.NewDeclared(h.Namespace, e.Data.Plan)
		o.SetUID(types.UID(uid))
		o.Object["status"] = map[string]any{"notified": status}
		err = client.IgnoreNotFound(h.Live.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(noticeOwner), client.ForceOwnership))
	}
	if h.isNews("notified of "+e.Data.Plan, text(err)) && err != nil {
		log.Log.WithName("notifications").Info("the delivery cannot be stored: after a restart the receiver gets the event again", "plan", e.Data.Plan, "error", err.Error())
	}
}

// missed has the present state of plans sent of which changes were dropped.
func (h *Orchestrator) missed(names []string) {
	h.notices.lock.Lock()
	for _, name := range names {
		delete(h.notices.queued, name)
	}
	h.notices.lock.Unlock()
	for _, name := range names {
		h.wake(name)
	}
}

// lead sends for as long as ctx lives, from the present states of all plans on.
func (h *Orchestrator) lead(ctx context.Context) {
	n := h.notices
	n.leading.Lock()
	defer n.leading.Unlock()
	n.lock.Lock()
	n.leads, n.queued = true, map[string]queued{}
	n.lock.Unlock()
	defer func() {
		n.lock.Lock()
		n.leads = false
		n.lock.Unlock()
	}()
	all, err := records.ListDeclared(ctx, h.Cached, client.InNamespace(h.Namespace))
	if err != nil {
		log.Log.WithName("notifications").Info("the plans cannot be listed: each is sent when it changes", "error", err.Error())
	}
	names := make([]string, 0, len(all))
	for _, d := range all {
		names = append(names, d.Object.GetName())
	}
	slices.Sort(names)
	go func() { // the names may be more than the channel holds
		for _, name := range names {
			h.wake(name)
		}
	}()
	n.sender.Run(ctx)
}

// reportNotice counts what became of an event, and logs why once.
func (h *Orchestrator) reportNotice(r notify.Result, e notify.Event, why string) {
	h.gauges.notices.WithLabelValues(string(r)).Inc()
	if r == notify.Delivered {
		h.isNews("receiver", "")
		return
	}
	if h.isNews("receiver", string(r)+why) {
		log.Log.WithName("notifications").Info("a notification is not delivered", "result", r, "plan", e.Data.Plan, "type", e.Type, "reason", why)
	}
}
