package plans

import "fmt"

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
}

// Directory is a headless Service with the name of the governing Service, in one namespace of one
// cluster. Pod names are looked up in it.
type Directory struct {
	// On is the side whose cluster contains it.
	On        Side
	Namespace string
	// Lists is the side whose pods the control plane lists in it; empty for a Service that has no
	// pods of its own and is created for the migration.
	Lists Side
}

// Directories returns the places in which every pod must be found: under the old and the new name, in
// every cluster. There are none unless the mode is Bridge.
func (p *Plan) Directories() []Directory {
	if p.Names.Mode != Bridge {
		return nil
	}
	s, d := p.Source.Namespace, p.Destination.Namespace
	out := []Directory{{Source, s, Source}, {Destination, d, Destination}}
	if s != d && !p.OneCluster() {
		out = append(out, Directory{Source, d, ""}, Directory{Destination, s, ""})
	}
	return out
}

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
