package records

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// An orchestrator renews its own Lease for as long as it lives, so that a client can rely on it before
// handing a plan over. No plan has a Lease of such a name: names of plans contain no dots.
const (
	heartbeatPrefix = "stsmigrate.orchestrator."
	// HeartbeatLabel marks the Leases that are heartbeats of orchestrators.
	HeartbeatLabel = "stsmigrate.dev/orchestrator"
	// madeBy is the version of the program, reads the API version of the plans that it reads, and supports what these
	// may require, separated by commas.
	madeBy   = "stsmigrate.dev/version"
	reads    = "stsmigrate.dev/reads"
	supports = "stsmigrate.dev/supports"
	// knows has the clusters that the process knows.
	knows = "stsmigrate.dev/clusters"
)

const (
	// heartbeatInterval is how often a Lease is renewed.
	heartbeatInterval = LeaseSeconds * time.Second / 3
	// heartbeatExpiry is how long a Lease stays without a renewal before others delete it. It is for
	// processes that could not delete their own Lease.
	heartbeatExpiry = 10 * time.Minute
)

// Known is the clusters that an orchestrator knows: its own one by its UID, and the others by name.
type Known struct {
	Own   types.UID `json:"own"`
	Names []string  `json:"names"`
}

// maxKnown is how many bytes of clusters a heartbeat tells. Where there are more it tells none.
const maxKnown = 64 << 10

// Heartbeat is the heartbeat of one process. It is not safe for concurrent use.
type Heartbeat struct {
	home   client.Client
	cached client.Reader
	holder string
	now    func() time.Time
	lease  coordinationv1.Lease // the next Lease, without holder and times
	have   *coordinationv1.Lease
	others LeaseSightings
	// Known, if set, returns the clusters that are told with each renewal.
	Known func() Known
}

// NewHeartbeat returns the heartbeat of a process of this version. It writes nothing yet. home writes,
// and cached may read from a watch.
func NewHeartbeat(home client.Client, cached client.Reader, namespace, holder, version string, now func() time.Time) *Heartbeat {
	return &Heartbeat{home: home, cached: cached, holder: holder, now: now, others: LeaseSightings{}, lease: coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: heartbeatName(holder),
		Labels:      map[string]string{HeartbeatLabel: "", "app.kubernetes.io/managed-by": "stsmigrate"},
		Annotations: map[string]string{madeBy: version, reads: plans.APIVersion, supports: strings.Join(plans.Supported(), ",")},
	}}}
}

// heartbeatName returns the name of the Lease of a process.
func heartbeatName(holder string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(holder))
	return heartbeatPrefix + "p" + name[max(0, len(name)-200):] // after the cut, name may begin with a dash
}

// Keep renews the Lease until ctx ends, and then deletes it. told receives the results of every try, nil for a success:
// that of the renewal, and that of the deletion of Leases of dead processes. Failures are tried again.
func (h *Heartbeat) Keep(ctx context.Context, told func(renewed, swept error)) {
	tick := time.NewTicker(heartbeatInterval)
	defer tick.Stop()
	for {
		if renewed, swept := within(ctx, h.Beat), within(ctx, h.sweep); ctx.Err() == nil {
			told(renewed, swept)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			h.end(context.WithoutCancel(ctx))
			return
		}
	}
}

// within gives a try as long as the Lease lasts: an answer that comes later is of no use.
func within(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, LeaseSeconds*time.Second)
	defer cancel()
	return try(ctx)
}

// Beat renews the Lease. No other process writes it, so it is written as a whole.
func (h *Heartbeat) Beat(ctx context.Context) error {
	seconds, now := int32(LeaseSeconds), metav1.NewMicroTime(h.now())
	next := h.lease.DeepCopy()
	next.Spec.HolderIdentity, next.Spec.LeaseDurationSeconds, next.Spec.RenewTime = &h.holder, &seconds, &now
	h.tells(next)
	var err error
	if h.have == nil {
		err = h.home.Create(ctx, next)
		if apierrors.IsAlreadyExists(err) { // left by a dead process of the same name
			var old coordinationv1.Lease
			if err = h.home.Get(ctx, client.ObjectKeyFromObject(next), &old); err == nil {
				next.ResourceVersion = old.ResourceVersion
				err = h.home.Update(ctx, next)
			}
		}
	} else {
		next.ResourceVersion = h.have.ResourceVersion
		err = h.home.Update(ctx, next)
	}
	if err != nil {
		h.have = nil
		return fmt.Errorf("renewing Lease %s/%s: %w", h.lease.Namespace, h.lease.Name, err)
	}
	h.have = next
	return nil
}

// tells adds the clusters that the process knows to the Lease.
func (h *Heartbeat) tells(next *coordinationv1.Lease) {
	if h.Known == nil {
		return
	}
	if told, err := json.Marshal(h.Known()); err == nil && len(told) <= maxKnown {
		next.Annotations[knows] = string(told)
	}
}

// sweep deletes the Leases of killed processes. Whether a Lease is still renewed is judged by this
// process's clock alone.
func (h *Heartbeat) sweep(ctx context.Context) error {
	var list coordinationv1.LeaseList
	if err := h.cached.List(ctx, &list, client.InNamespace(h.lease.Namespace), client.HasLabels{HeartbeatLabel}); err != nil {
		return fmt.Errorf("listing the Leases of orchestrators: %w", err)
	}
	there := map[string]bool{}
	for i := range list.Items {
		l := &list.Items[i]
		there[l.Name] = true
		if since := h.others.Since(l, h.now); l.Name == h.lease.Name || clusters.Elapsed(since, h.now()) < heartbeatExpiry {
			continue
		}
		if err := client.IgnoreNotFound(writes.Delete(ctx, h.home, l)); err != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting Lease %s, which no process renews: %w", l.Name, err)
		}
	}
	maps.DeleteFunc(h.others, func(name string, _ leaseSighting) bool { return !there[name] })
	return nil
}

// end deletes the Lease. If that fails, other processes let it expire.
func (h *Heartbeat) end(ctx context.Context) {
	if h.have == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, heartbeatInterval)
	defer cancel()
	_ = writes.Delete(ctx, h.home, h.have)
}
