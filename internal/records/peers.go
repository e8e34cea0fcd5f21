package records

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
)

// Peers are the orchestrators of a namespace that are alive, this one among them. It is not safe for concurrent use.
type Peers struct {
	cached client.Reader
	home   string
	me     string
	now    func() time.Time
	seen   LeaseSightings
	alive  []string
	at     time.Time
	// mine and others are when a renewal of this process, and of any other one, was last seen.
	mine, others time.Time
}

// NewPeers returns the peers of the process me. cached reads from a watch.
func NewPeers(cached client.Reader, namespace, me string, now func() time.Time) *Peers {
	return &Peers{cached: cached, home: namespace, me: me, now: now, seen: LeaseSightings{}}
}

// First returns which of them comes first for a key. All that see the same peers return the same one, and when one ends
// only its keys go to others (rendezvous hashing). Of two processes that see different peers both may come first.
func (p *Peers) First(ctx context.Context, key string) string {
	first, most := p.me, weightOf(p.me, key)
	for _, peer := range p.look(ctx) {
		if w := weightOf(peer, key); w > most || w == most && peer < first {
			first, most = peer, w
		}
	}
	return first
}

// Renewed returns when a renewal of the Lease of this process, and of any other one, was last seen.
func (p *Peers) Renewed(ctx context.Context) (mine, others time.Time) {
	p.look(ctx)
	return p.mine, p.others
}

// look returns the peers whose Lease was renewed lately, as seen by this process's clock alone.
func (p *Peers) look(ctx context.Context) []string {
	now := p.now()
	if !p.at.IsZero() && clusters.Elapsed(p.at, now) < heartbeatInterval {
		return p.alive
	}
	var list coordinationv1.LeaseList
	if p.cached.List(ctx, &list, client.InNamespace(p.home), client.HasLabels{HeartbeatLabel}) != nil {
		return p.alive
	}
	seen := LeaseSightings{}
	p.alive, p.at = nil, now
	for i := range list.Items {
		l := &list.Items[i]
		since := p.seen.Since(l, p.now)
		seen[l.Name] = p.seen[l.Name]
		if l.Name == heartbeatName(p.me) {
			p.mine = since
		} else if since.After(p.others) {
			p.others = since
		}
		if l.Spec.HolderIdentity != nil && clusters.Elapsed(since, now) < LeaseSeconds*time.Second {
			p.alive = append(p.alive, *l.Spec.HolderIdentity)
		}
	}
	p.seen = seen
	return p.alive
}

func weightOf(peer, key string) uint64 {
	sum := sha256.Sum256([]byte(peer + "\x00" + key))
	return binary.BigEndian.Uint64(sum[:])
}
