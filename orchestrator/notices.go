package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	memory *memory
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

// noticesTo returns what has the changes sent to a receiver.
func noticesTo(m *memory, to notify.Target, agent string) (*notices, error) {
	if err := to.Validate(); err != nil {
		return nil, err
	}
	c, err := to.Client()
	if err != nil {
		return nil, err
	}
	n := &notices{memory: m, queued: map[string]queued{}}
	n.sender = &notify.Sender{
		URL: to.URL, Client: c, Keys: to.Keys, Agent: agent, Now: m.Now, Settled: n.settled, Missed: n.missed, Report: n.report,
		Waiting: func(events int) { m.gauges.queue.WithLabelValues().Set(float64(events)) },
	}
	return n, nil
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
func (n *notices) elect(leases coordinationv1client.LeasesGetter) manager.RunnableFunc {
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Name: leaderLease, LeaseDuration: leaderExpiry, RenewDeadline: leaderRenewal, RetryPeriod: leaderRetry, ReleaseOnCancel: true,
				Lock: &resourcelock.LeaseLock{
					LeaseMeta: metav1.ObjectMeta{Namespace: n.memory.Namespace, Name: leaderLease}, Client: leases,
					LockConfig: resourcelock.ResourceLockConfig{Identity: n.memory.Holder},
				},
				Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: n.lead, OnStoppedLeading: func() {}},
			})
			if err != nil {
				return err
			}
			e.Run(ctx)
		}
		return nil
	}
}

// add queues the change that has led to a state, if it is news. It never waits for the receiver.
func (n *notices) add(s standing) {
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
	e, news := notify.Next(last.mark, n.state(s), n.memory.Now())
	if news {
		last.mark, _ = e.Mark()
		n.sender.Add(e)
	}
	n.queued[s.name] = last
}

// told reports whether the receiver knows how a plan has ended, as far as this process has to tell it.
func (n *notices) told(s v1alpha1.StatefulSetMigrationStatus) bool {
	if n == nil {
		return true
	}
	n.lock.Lock()
	defer n.lock.Unlock()
	return !n.leads || s.Notified != nil && s.Notified.Change == strings.ToLower(string(s.State))
}

// forget forgets a plan of which there is nothing to tell.
func (n *notices) forget(name string) {
	if n == nil {
		return
	}
	n.lock.Lock()
	defer n.lock.Unlock()
	delete(n.queued, name)
}

// notified returns the last change that the receiver has accepted.
func notified(s v1alpha1.StatefulSetMigrationStatus) notify.Mark {
	if n := s.Notified; n != nil {
		return notify.Mark{Sequence: n.Sequence, Change: notify.Change(n.Change), ID: n.ID}
	}
	return notify.Mark{} // also where another writer has written something else: the present state is sent again
}

// state returns what is told of a plan: names and counts, and the reason of its state.
func (n *notices) state(s standing) notify.State {
	out := notify.State{
		Home: string(n.memory.Fleet.Own), Namespace: n.memory.Namespace, Plan: s.name, Object: string(s.declared.Object.GetUID()), State: s.state, Failed: s.wrong != nil,
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
	out.Reason = notify.Told(out.ReasonID, out.Reason, fmt.Sprintf("`stsmigrate status %s -n %s --context HOME`", s.name, n.memory.Namespace))
	out.Next = s.next(n.memory.Namespace)
	return out
}

func set(r plans.Ref) *notify.Set {
	return &notify.Set{Cluster: string(r.Cluster), Context: r.Context, Namespace: r.Namespace, Name: r.Name, Kind: string(r.Kind)}
}

// settled stores with the plan that the receiver has accepted a change.
func (n *notices) settled(ctx context.Context, e notify.Event) {
	mark, uid := e.Mark()
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&mark)
	if err == nil {
		o := records.NewDeclared(n.memory.Namespace, e.Data.Plan)
		o.SetUID(types.UID(uid))
		o.Object["status"] = map[string]any{"notified": status}
		err = client.IgnoreNotFound(n.memory.Live.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(noticeOwner), client.ForceOwnership))
	}
	if n.memory.isNews(e.Data.Plan, aboutDelivery, text(err)) && err != nil {
		log.Log.WithName("notifications").Info("the delivery cannot be stored: after a restart the receiver gets the event again", "plan", e.Data.Plan, "error", err.Error())
	}
}

// missed has the present state of plans sent of which changes were dropped.
func (n *notices) missed(names []string) {
	n.lock.Lock()
	for _, name := range names {
		delete(n.queued, name)
	}
	n.lock.Unlock()
	for _, name := range names {
		n.memory.wake(name)
	}
}

// lead sends for as long as ctx lives, from the present states of all plans on.
func (n *notices) lead(ctx context.Context) {
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
	all, err := records.ListDeclared(ctx, n.memory.Cached)
	if err != nil {
		log.Log.WithName("notifications").Info("the plans cannot be listed: each is sent when it changes", "error", err.Error())
	}
	names := make([]string, 0, len(all))
	for _, d := range all {
		names = append(names, records.PlanOf(n.memory.Namespace, d.Object))
	}
	slices.Sort(names)
	go func() { // the names may be more than the channel holds
		for _, name := range names {
			n.memory.wake(name)
		}
	}()
	n.sender.Run(ctx)
}

// report counts what became of an event, and logs why once.
func (n *notices) report(r notify.Result, e notify.Event, why string) {
	n.memory.gauges.notices.WithLabelValues(string(r)).Inc()
	if r == notify.Delivered {
		n.memory.isNewsOfAll(aboutReceiver, "")
		return
	}
	if n.memory.isNewsOfAll(aboutReceiver, string(r)+why) {
		log.Log.WithName("notifications").Info("a notification is not delivered", "result", r, "plan", e.Data.Plan, "type", e.Type, "reason", why)
	}
}
