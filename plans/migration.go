package plans

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Migration is the file behind `stsmigrate plan -f`: the user's request, in the form that is kept
// under version control. Flags on the command line override it.
type Migration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Metadata names the plan.
	Metadata Metadata `json:"metadata"`
	// Spec says which set moves, where to, and how.
	Spec Spec `json:"spec"`
}

// Metadata names the plan.
type Metadata struct {
	// Name is the name of the plan, a DNS label of at most 40 characters. Defaults to the name of the set,
	// shortened where a plan cannot have it.
	Name string `json:"name,omitempty"`
}

// Spec is the spec of a Migration.
type Spec struct {
	// Source is the set that moves, and the access to its cluster.
	Source Place `json:"source"`
	// Destination is the place that the set moves to, with the changes to the set there.
	Destination Target `json:"destination"`
	// MaxUnavailable is how many ordinals may be unavailable at once, over both sides together: a number from 1, or a
	// percentage of the ordinals, rounded up. Defaults to what the PodDisruptionBudget of the source allows, or 1 without
	// one.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Window is how many ordinals move together, at most maxUnavailable. Defaults to 0, which means 1.
	Window int32 `json:"window,omitempty"`
	// Storage lists the names of storage objects that differ in the destination's cluster. It must be empty within one
	// cluster.
	Storage Storage `json:"storage,omitzero"`
	// Empty names claim templates whose ordinals start without data on the destination, and whose data the application
	// replicates again. Defaults to none: all volumes move.
	Empty []string `json:"empty,omitempty"`
	// Names is how pods are found while they are on two sides: bridge mirrors their addresses, mcs exports the Service by
	// Multi-Cluster Services, and none leaves names unchanged. Defaults to bridge where the set has a headless Service.
	Names NameMode `json:"names,omitempty"`
	// Twins makes the Services by which clients find the pods on the destination too, where none has their name, for the
	// cluster alone: without the addresses and ports that others have given them. Defaults to false.
	Twins bool `json:"twins,omitempty"`
	// Placeholder is how the places of the ordinals are taken before they leave. Defaults to auto: it is chosen when the plan is made.
	Placeholder Placeholder `json:"placeholder,omitzero"`
	// Ignore names checks whose findings are accepted. The plan records them. Defaults to none.
	Ignore []string `json:"ignore,omitempty"`
	// Gates are questions to the application, asked for every ordinal before it leaves or after it has arrived.
	Gates []Gate `json:"gates,omitempty"`
}

// Place is a set and the access to its cluster. In the destination, an omitted field is as in the source.
type Place struct {
	// Kubeconfig is the path of a kubeconfig. Defaults to that of the source; for the source, to that of kubectl.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Context is a context of the kubeconfig. Defaults to that of the source; for the source, to the current one.
	Context string `json:"context,omitempty"`
	// Namespace is the namespace of the set. Defaults to that of the source; for the source, to that of the context.
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the set. Pods keep their names, so it is the same on both sides.
	Name string `json:"name,omitempty"`
	// Kind is StatefulSet or StatefulSetSlice. Defaults to that of the source; for the source, to StatefulSet.
	Kind string `json:"kind,omitempty"`
}

// Target is the destination of the move, with the changes to the set there.
type Target struct {
	Place `json:",inline"`
	// Patches change the set on the destination, in their order. Each is given by path or as text, as in a kustomization.
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
	if r.Placeholder.Why != "" {
		return errors.New("spec.placeholder: why is what a plan says, expected none")
	}
	if why := r.Placeholder.Misfit(); why != "" {
		return errors.New("spec.placeholder: " + why)
	}
	return refuseGates(r.Gates)
}

// Patch is a change to the destination's set, compared with the source's: a strategic merge patch, or
// a JSON patch (RFC 6902), in YAML or JSON.
type Patch struct {
	// Path is the file of the patch, from the folder of the Migration.
	Path string `json:"path,omitempty"`
	// Patch is the text of the patch: a strategic merge patch or a JSON patch. A Migration has it or path, a plan always.
	Patch string `json:"patch,omitempty"`
}

// String returns the name of the patch for messages.
func (p Patch) String() string {
	if p.Path == "" {
		return "patch"
	}
	return "patch " + p.Path
}
