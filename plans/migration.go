package plans

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Migration is the file behind `stsmigrate plan -f`: the user's request, in the form that is kept
// under version control. Flags on the command line override it.
type Migration struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Spec       Spec     `json:"spec"`
}

// Metadata names the plan.
type Metadata struct {
	Name string `json:"name,omitempty"`
}

// Spec is the spec of a Migration.
type Spec struct {
	Source      Place  `json:"source"`
	Destination Target `json:"destination"`
	// MaxUnavailable is d, how many ordinals may be unavailable at once, over both sides together: a number from 1, or
	// a percentage of the ordinals, rounded up. Omitted, it is what the source's PodDisruptionBudget allows, or 1
	// without one.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Window is w, how many ordinals move together; 0 means 1.
	Window int32 `json:"window,omitempty"`
	// Storage lists the names that differ in the destination's cluster.
	Storage Storage `json:"storage,omitzero"`
	// Empty names claim templates whose ordinals start without data on the destination; the
	// application replicates the data again.
	Empty []string `json:"empty,omitempty"`
	// Names is how pods are found during the migration; empty means Bridge where that is possible.
	Names NameMode `json:"names,omitempty"`
	// Ignore names checks whose findings are accepted.
	Ignore []string `json:"ignore,omitempty"`
	// Gates are evaluated for every ordinal.
	Gates []Gate `json:"gates,omitempty"`
}

// Place is a set and the access to its cluster. In the destination, an omitted field is as in the source.
type Place struct {
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Context    string `json:"context,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	// Kind is StatefulSet (the default of the source) or StatefulSetSlice.
	Kind string `json:"kind,omitempty"`
}

// Target is the destination of the move, with the changes to the set there.
type Target struct {
	Place `json:",inline"`
	// Patches are applied in their order, each given by path (from the folder of the
	// Migration file) or as text, as in a kustomization.
	Patches []Patch `json:"patches,omitempty"`
}

// DecodeMigration reads a Migration file.
func DecodeMigration(raw []byte) (*Migration, error) {
	var m Migration
	strict, err := DecodeKind(raw, MigrationKind, &m)
	if err != nil {
		return nil, err
	}
	if strict != nil { // a typing error of the user
		return nil, fmt.Errorf("malformed Migration: %w", DecodeStrictly(strict, &Migration{}))
	}
	return &m, m.Spec.refuse()
}

// refuse returns the reason why no plan can be made from the request, whatever the clusters contain.
func (r Spec) refuse() error {
	if r.Source.Name == "" {
		return errors.New("spec.source.name is empty, expected the name of a StatefulSet")
	}
	if n := r.Destination.Name; n != "" && n != r.Source.Name {
		return errors.New("spec.destination.name differs from spec.source.name: pods keep their names, so the sets must have one name")
	}
	for field, kind := range map[string]string{"source": r.Source.Kind, "destination": r.Destination.Kind} {
		if _, err := KindOf(kind); err != nil {
			return fmt.Errorf("spec.%s.kind: %w", field, err)
		}
	}
	if d := r.MaxUnavailable; d != nil {
		if _, err := ReadUnavailable("spec.maxUnavailable", d.String()); err != nil {
			return err
		}
	}
	for i, p := range r.Destination.Patches {
		if (p.Path == "") == (p.Patch == "") {
			return fmt.Errorf("spec.destination.patches[%d]: expected either path, the name of a file, or patch, its text", i)
		}
	}
	return refuseGates(r.Gates)
}

// Patch is a change to the destination's set, compared with the source's: a strategic merge patch, or
// a JSON patch (RFC 6902), in YAML or JSON.
type Patch struct {
	// Path is the file from which the patch was read.
	Path string `json:"path,omitempty"`
	// Patch is its text. A plan always has it; a Migration has it or Path.
	Patch string `json:"patch,omitempty"`
}

// String returns the name of the patch for messages.
func (p Patch) String() string {
	if p.Path == "" {
		return "patch"
	}
	return "patch " + p.Path
}
