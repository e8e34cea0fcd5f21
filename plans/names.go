package plans

import (
	"cmp"
	"fmt"
	"slices"
)

// NameMode is how pods are found by name while they are on two sides.
type NameMode string

const (
	// Bridge lists every pod in the governing Services of both sides, by mirroring the addresses of
	// the other side. The pod networks must be routed to one another.
	Bridge NameMode = "bridge"
	// MCS exports the governing Services of both sides to the other cluster, by the clusters' own
	// Multi-Cluster Services (KEP-1645). The namespaces must have the same name.
	MCS NameMode = "mcs"
	// NoNames leaves names unchanged: each side lists its own pods only.
	NoNames NameMode = "none"
)

// Names is how the pods are found during the migration.
type Names struct {
	// Mode is bridge (their addresses are mirrored), mcs (Multi-Cluster Services) or none (names stay unchanged).
	Mode NameMode `json:"mode"`
	// Service is the governing Service of the set (rule ID-5), headless; empty if names are left unchanged.
	Service string `json:"service,omitempty"`
	// SourceID is the source cluster's own ID in the names of MCS; empty if the cluster reports none (KEP-2149).
	SourceID string `json:"sourceID,omitempty"`
	// DestinationID is the destination cluster's own ID in the names of MCS; empty if the cluster reports none.
	DestinationID string `json:"destinationID,omitempty"`
	// Clients are the other Services that select pods of the set, by which its clients find them. Each lists the pods of
	// the other side too, in both namespaces, where it exists.
	Clients []string `json:"clients,omitempty"`
	// Twins reports that the Services of clients that the destination lacks are made there. Which ones is in the
	// dependencies.
	Twins bool `json:"twins,omitempty"`
}

// Directory is a Service in one namespace of one cluster that lists the pods of both sides: the governing Service, in
// which the names of pods are looked up, or one of the clients.
type Directory struct {
	// On is the side whose cluster contains it.
	On        Side
	Namespace string
	// Lists is the side whose pods the control plane lists in it; empty for a Service that has no
	// pods of its own and is created for the migration.
	Lists Side
	// Client is the name of a Service of clients; empty for the governing one.
	Client string
	// SameNodes reports that the pods of both sides run on nodes of its cluster.
	SameNodes bool
}

// Directories are all directories of a plan.
type Directories []Directory

// Directories returns the places in which the pods of both sides must be found: in the mode Bridge every pod under the
// old and the new name, in every cluster; in the Services of clients those that these select, in the namespaces of both
// sides.
func (p *Plan) Directories() (out Directories) {
	s, d, same := p.Source.Namespace, p.Destination.Namespace, p.OneCluster()
	if p.Names.Mode == Bridge {
		out = Directories{{On: Source, Namespace: s, Lists: Source, SameNodes: same}, {On: Destination, Namespace: d, Lists: Destination, SameNodes: same}}
		if s != d && !same {
			out = append(out, Directory{On: Source, Namespace: d}, Directory{On: Destination, Namespace: s})
		}
	}
	for _, name := range p.Names.Clients {
		for _, side := range Sides() {
			out = append(out, Directory{On: side, Namespace: p.On(side).Namespace, Lists: side, Client: name, SameNodes: same})
		}
	}
	return out
}

// In returns the namespaces of a side's cluster that have directories, each once.
func (all Directories) In(side Side) (out []string) {
	for _, d := range all {
		if d.On == side && !slices.Contains(out, d.Namespace) {
			out = append(out, d.Namespace)
		}
	}
	return out
}

// ServiceOf returns the name of the Service of a directory.
func (n Names) ServiceOf(d Directory) string { return cmp.Or(d.Client, n.Service) }

// Reaches reports whether the clients of one side can reach the pods of the other by their addresses: always where both
// sides have the same nodes; else where the pod networks are routed, as the mode Bridge says.
func (n Names) Reaches(sameNodes bool) bool { return sameNodes || n.Mode == Bridge }

// Exports returns the sides whose governing Service is exported, in order. There are none unless the
// mode is MCS.
func (p *Plan) Exports() []Side {
	if p.Names.Mode != MCS {
		return nil
	}
	return []Side{Source, Destination}
}

// Host returns the name by which a pod of a side is found in a namespace, without the cluster's domain.
func (p *Plan) Host(side Side, ordinal int32, namespace string) string {
	return fmt.Sprintf("%s.%s.%s.svc", p.Pod(side, ordinal), p.Names.Service, namespace)
}

// FindAs returns the name by which the other side finds a pod of a side.
func (p *Plan) FindAs(ordinal int32, side Side) string {
	ref := p.On(side)
	if p.Names.Mode != MCS {
		return p.Host(side, ordinal, ref.Namespace)
	}
	id := map[Side]string{Source: p.Names.SourceID, Destination: p.Names.DestinationID}[side]
	if id == "" {
		id = fmt.Sprintf("<id of %s>", ref.Context)
	}
	return fmt.Sprintf("%s.%s.%s.%s.svc.clusterset.local", p.Pod(side, ordinal), id, p.Names.Service, ref.Namespace)
}
