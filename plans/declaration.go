package plans

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"
)

// DeclarationKind is the kind of the object by which people and Git ask an orchestrator for a migration.
const DeclarationKind = "StatefulSetMigration"

// Declaration is the spec of a StatefulSetMigration: a Migration, which plan of it was approved, and what is wished of
// that plan. The plan and its journal stay the record of what is done.
type Declaration struct {
	Spec `json:",inline"`
	// Direction is how far the plan is to go; empty for ToMove.
	Direction Direction `json:"direction,omitempty"`
	Paused    bool      `json:"paused,omitempty"`
	// KeepNames lets the names outlive a plan that is finalized.
	KeepNames bool `json:"keepNames,omitempty"`
	// ApprovedHash is the hash of the plan that a person has looked at. Without it nothing is begun.
	ApprovedHash string `json:"approvedHash,omitempty"`
	// Request is what is asked for once.
	Request *Request `json:"request,omitempty"`
}

// Request is done once for every ID. It lets a plan go on that is held, split, or paused by PauseAfter.
type Request struct {
	ID string `json:"id"`
	// Resume says that to go on is all that is asked for.
	Resume bool `json:"resume,omitempty"`
	// RemoveNames takes away the names that a finalized plan has kept. It is asked for alone.
	RemoveNames bool `json:"removeNames,omitempty"`
	// The others are as in Word and Route. SourceGone is the UID of the cluster that a person vouches for.
	NodeGone       string    `json:"nodeGone,omitempty"`
	Readopt        bool      `json:"readopt,omitempty"`
	MaxUnavailable int32     `json:"maxUnavailable,omitempty"`
	SourceGone     types.UID `json:"sourceGone,omitempty"`
	SkipGates      bool      `json:"skipGates,omitempty"`
	UntilOrdinal   *int32    `json:"untilOrdinal,omitempty"`
	PauseAfter     int32     `json:"pauseAfter,omitempty"`
}

// Limits is how far the move is asked to go.
func (a Request) Limits() Limits { return Limits{Until: a.UntilOrdinal, PauseAfter: a.PauseAfter} }

// Assurance is what the person vouches for.
func (a Request) Assurance() Assurance {
	return Assurance{NodeGone: a.NodeGone, Readopt: a.Readopt, MaxUnavailable: a.MaxUnavailable, SourceGone: a.SourceGone != ""}
}

// Observed is what a plan was told last of its Declaration. It is written together with what comes of it, so that a
// death can neither lose nor double it.
type Observed struct {
	Direction Direction `json:"direction"`
	Paused    bool      `json:"paused,omitempty"`
	// Request is the ID of the Ask.
	Request string `json:"request,omitempty"`
	// Refused says why nothing came of it.
	Refused string `json:"refused,omitempty"`
}

// SameRequest reports whether the two are of one course and one request.
func (h Observed) SameRequest(other Observed) bool {
	return h.Direction == other.Direction && h.Request == other.Request
}

// Command is a course that a plan is to take, or to go on with.
type Command struct {
	Direction Direction
	SkipGates bool
	// Assurance is what the person vouches for.
	Assurance Assurance
	Limits    Limits
	KeepNames bool
	// RemoveNames says that a plan that has ended is to keep its names no longer; it goes nowhere.
	RemoveNames bool
	// Observed is what the journal keeps of a wish that it has not heard of yet; nil for one that is none of a
	// Declaration.
	Observed *Observed
}

// Is reports whether two wishes are the same.
func (w Command) Is(other Command) bool { return equality.Semantic.DeepEqual(w, other) }

// Validate gives the reason why no plan can be made of it, or nothing be asked of one.
func (d *Declaration) Validate() error {
	if err := d.Spec.refuse(); err != nil {
		return err
	}
	for side, place := range map[Side]Place{Source: d.Source, Destination: d.Destination.Place} {
		if place.Kubeconfig != "" {
			return fmt.Errorf("spec.%s.kubeconfig: the orchestrator knows clusters by context alone, the name of a Secret or of a context in one", side)
		}
	}
	for i, p := range d.Destination.Patches {
		if p.Patch == "" {
			return fmt.Errorf("spec.destination.patches[%d]: the orchestrator reads no files: expected patch, its text", i)
		}
	}
	if !slices.Contains([]Direction{"", Move, Abort, Finalize}, d.Direction) {
		return fmt.Errorf("spec.direction is %q, expected %s, %s or %s", d.Direction, Move, Abort, Finalize)
	}
	return d.Request.refuse()
}

func (a *Request) refuse() error {
	switch {
	case a == nil:
		return nil
	case len(validation.IsQualifiedName(a.ID)) > 0:
		return fmt.Errorf("spec.request.id is %.70q, expected at most 63 letters, digits, dashes, dots and underscores, another one for each request", a.ID)
	case strings.Contains(a.NodeGone, "/"):
		return errors.New("spec.request.nodeGone is not the name of a node")
	case a.MaxUnavailable < 0 || a.PauseAfter < 0 || a.UntilOrdinal != nil && *a.UntilOrdinal < 0:
		return errors.New("spec.request: maxUnavailable, pauseAfter and untilOrdinal are 0 or more")
	case a.RemoveNames && *a != (Request{ID: a.ID, RemoveNames: true}):
		return errors.New("spec.request: removeNames is asked for alone, of a plan that has ended")
	}
	return nil
}

// Declared is the Declaration of a plan that a person has made and looked at.
func (p *Plan) Declared() Declaration {
	place := func(r Ref) Place {
		return Place{Context: r.Context, Namespace: r.Namespace, Name: r.Name, Kind: r.SetKind()}
	}
	d := Declaration{ApprovedHash: p.Hash, Spec: Spec{
		Source: place(p.Source), Destination: Target{Place: place(p.Destination)},
		MaxUnavailable: p.MaxUnavailable, Window: p.Window, Storage: p.Storage, Names: p.Names.Mode, Ignore: p.Ignored, Gates: p.Gates,
	}}
	for _, patch := range p.Patches {
		d.Destination.Patches = append(d.Destination.Patches, Patch{Patch: patch.Patch})
	}
	for _, c := range p.Claims {
		if c.Mode == Empty {
			d.Empty = append(d.Empty, c.Template)
		}
	}
	return d
}

// Differs names the first field in which a Declaration is about another plan, or "". What it leaves open is as in the
// plan.
func (p *Plan) Differs(d *Declaration) string {
	is := p.Declared()
	open := func(said, has string) bool { return said == "" || said == has }
	kind := func(said, has string) bool {
		named, err := KindOf(said)
		return said == "" || err == nil && cmp.Or(named, NativeKind) == has
	}
	place := func(said, has Place) bool {
		return open(said.Context, has.Context) && open(said.Namespace, has.Namespace) && open(said.Name, has.Name) && kind(said.Kind, has.Kind)
	}
	patches := slices.Clone(d.Destination.Patches)
	for i := range patches {
		patches[i].Path = ""
	}
	empty := slices.Clone(d.Empty)
	slices.Sort(empty)
	slices.Sort(is.Empty)
	for _, field := range []struct {
		name string
		same bool
	}{
		{"source", place(d.Source, is.Source)},
		{"destination", place(d.Destination.Place, is.Destination.Place)},
		{"destination.patches", equality.Semantic.DeepEqual(patches, is.Destination.Patches)},
		{"maxUnavailable", d.MaxUnavailable == 0 || d.MaxUnavailable == is.MaxUnavailable},
		{"window", max(d.Window, 1) == is.Window},
		{"storage", equality.Semantic.DeepEqual(d.Storage, is.Storage)},
		{"empty", equality.Semantic.DeepEqual(empty, is.Empty)},
		{"names", open(string(d.Names), string(is.Names))},
		{"ignore", equality.Semantic.DeepEqual(d.Ignore, is.Ignore)},
		{"gates", equality.Semantic.DeepEqual(fill(d.Gates), is.Gates)},
	} {
		if !field.same {
			return field.name
		}
	}
	return ""
}

// DecodeDeclaration reads a spec. One with fields that are not known is refused: they may say the contrary of the others.
func DecodeDeclaration(raw []byte) (*Declaration, error) {
	var d Declaration
	strict, err := kjson.UnmarshalStrict(raw, &d)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err == nil {
		err = d.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("the spec cannot be read: %w", err)
	}
	return &d, nil
}

// Assurance is what a person vouches for with a command, where no API can show it (L6).
type Assurance struct {
	// NodeGone is a node on which no pod of the wave under way can still run, and which can no longer
	// write to its volumes.
	NodeGone string `json:"nodeGone,omitempty"`
	// Readopt says that the sets and volumes that lack the mark of the plan, or were made again, are
	// its own nevertheless.
	Readopt bool `json:"readopt,omitempty"`
	// MaxUnavailable is how many ordinals may be unavailable while the plan is walked back, if that
	// is more than the plan allows. 0 is for what the plan allows.
	MaxUnavailable int32 `json:"maxUnavailable,omitempty"`
	// SourceGone says that the source's cluster does not exist any more.
	SourceGone bool `json:"sourceGone,omitempty"`
}

// Limits is how far the next run of a Move shall go. The zero value goes to the end.
type Limits struct {
	// Until, if set, ends the move in a split: the source keeps the ordinals below
	// it, the destination has it and those above.
	Until *int32
	// PauseAfter is after how many ordinals the move pauses; 0 for no pause.
	PauseAfter int32
}
