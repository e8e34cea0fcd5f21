package plans

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Mode is how the volumes of one claim template get to the destination.
type Mode string

const (
	// Rebind keeps the PersistentVolume object and points it at the new claim:
	// both sides are namespaces of one cluster.
	Rebind Mode = "rebind"
	// Reimport creates a second PersistentVolume object with the same volume handle: two clusters
	// share one storage backend.
	Reimport Mode = "reimport"
	// Empty moves no volume: the ordinal starts without data on the destination, and the application
	// replicates the data again. The source's claim stays.
	Empty Mode = "empty"
)

// ClaimMove is one entry of volumeClaimTemplates and how its volumes move.
type ClaimMove struct {
	// Template is the name of the claim template.
	Template string `json:"template"`
	// Mode is rebind (the same volume object gets another claim, within one cluster), reimport (a second volume object for
	// the same disk, in another cluster) or empty (no volume moves).
	Mode Mode `json:"mode"`
}

// Storage maps the names that differ in the destination's cluster. It is used for volumes that are
// reimported; a name without an entry stays as it is.
type Storage struct {
	// Classes maps names of StorageClasses of the source to those of the destination.
	Classes map[string]string `json:"classes,omitempty"`
	// Drivers maps names of CSI drivers, where one driver has another name on the destination.
	Drivers map[string]string `json:"drivers,omitempty"`
	// Topology maps the node labels that volumes are bound to.
	Topology []Topology `json:"topology,omitempty"`
	// Secrets maps the Secrets that CSI drivers use, each written as namespace/name.
	Secrets map[string]string `json:"secrets,omitempty"`
	// VolumeAttributes maps, for a key of a CSI volume's attributes, the values of the source to those of the destination.
	VolumeAttributes map[string]map[string]string `json:"volumeAttributes,omitempty"`
}

// Topology maps one label key of node affinity, and its values. A value without an entry in Values stays.
type Topology struct {
	// Key is the key of the label on the source, such as topology.kubernetes.io/zone.
	Key string `json:"key"`
	// As is the key of the label on the destination. Defaults to the same key.
	As string `json:"as,omitempty"`
	// Values maps values of the label. A value without an entry stays as it is.
	Values map[string]string `json:"values,omitempty"`
}

// SharedVolume is a volume that all ordinals mount by a claim named in the pod
// template. It is given to the destination once, before the first ordinal moves.
type SharedVolume struct {
	// Claim is the name of the claim, the same on both sides.
	Claim string `json:"claim"`
	// Volume is the name of the source's PersistentVolume.
	Volume string `json:"volume"`
	// Handle identifies the disk.
	Handle string `json:"handle"`
}

// SecondVolume returns the name of the PersistentVolume object that the destination gets for a shared
// disk. In one cluster both objects exist for a time, so their names differ.
func (p *Plan) SecondVolume(s SharedVolume) string {
	if p.OneCluster() {
		return s.Volume + "-" + p.Destination.Namespace
	}
	return s.Volume
}

// None reports whether no name differs.
func (s Storage) None() bool {
	return len(s.Classes)+len(s.Drivers)+len(s.Topology)+len(s.Secrets)+len(s.VolumeAttributes) == 0
}

// Moved reports whether volumes of this mode change sides.
func (m Mode) Moved() bool { return m != Empty }

// OneObject reports whether both sides have the same PersistentVolume object of a volume of this mode. Its control plane
// then keeps the disk from two nodes, and there is no other object to make, to compare or to delete.
func (m Mode) OneObject() bool { return m == Rebind }

// HasVolumes reports whether the set has any volumes.
func (p *Plan) HasVolumes() bool { return len(p.Claims)+len(p.Shared) > 0 }

// Moved lists the claim templates whose volumes move.
func (p *Plan) Moved() []ClaimMove {
	return slices.DeleteFunc(slices.Clone(p.Claims), func(c ClaimMove) bool { return !c.Mode.Moved() })
}

// Class returns the destination's name of a StorageClass of the source.
func (s Storage) Class(name string) string {
	if to, ok := s.Classes[name]; ok {
		return to
	}
	return name
}

// Driver returns the destination's name of a CSI driver of the source.
func (s Storage) Driver(name string) string {
	if to, ok := s.Drivers[name]; ok {
		return to
	}
	return name
}

// refuse returns one sentence that explains why a map is invalid.
func (s Storage) refuse(oneCluster bool) error {
	if oneCluster && !s.None() {
		return errors.New("storage: nothing has another name in the same cluster, and its volumes keep their PersistentVolume objects; leave the maps out")
	}
	if s.Drivers[""] != "" || slices.Contains(slices.Collect(maps.Values(s.Drivers)), "") {
		return errors.New("storage.drivers: expected names of CSI drivers, {FROM: TO}")
	}
	for i, t := range s.Topology {
		if t.Key == "" || t.As == "" && len(t.Values) == 0 {
			return fmt.Errorf("storage.topology[%d]: expected a key, and what it or its values become", i)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(s.Secrets)) {
		for _, name := range []string{from, s.Secrets[from]} {
			if namespace, rest, ok := strings.Cut(name, "/"); !ok || namespace == "" || rest == "" || strings.Contains(rest, "/") {
				return fmt.Errorf("storage.secrets: %q, expected namespace/name", name)
			}
		}
	}
	return nil
}
