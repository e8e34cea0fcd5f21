package plans

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

// DeclarationKind is the kind of the object by which users and GitOps tools request a migration from
// an orchestrator.
const DeclarationKind = "StatefulSetMigration"

// Declaration is the spec of a StatefulSetMigration: a Migration, the hash of the approved plan, and
// the user's requests for that plan. The plan and its journal stay the record of the work done.
type Declaration struct {
	Spec `json:",inline"`
	// Direction is how far the plan goes; empty means Move.
	Direction Direction `json:"direction,omitempty"`
	Paused    bool      `json:"paused,omitempty"`
	// KeepNames lets the names outlive a finalized plan.
	KeepNames bool `json:"keepNames,omitempty"`
	// Careful carries the plan out without anything that only saves time or lets evictions through sooner.
	Careful bool `json:"careful,omitempty"`
	// ApprovedHash is the hash of the plan that the user has reviewed. Without it nothing begins.
	ApprovedHash string `json:"approvedHash,omitempty"`
	// Request is a one-time request.
	Request *Request `json:"request,omitempty"`
	// By says who has set each of the Requests, for reports.
	By map[string]string `json:"-"`
}

// The fields of a Declaration that are requests.
const (
	ApprovalField  = "approvedHash"
	DirectionField = "direction"
	RequestField   = "request"
	PausedField    = "paused"
)

// Requesters returns who has set the fields, each user once.
func (d *Declaration) Requesters(fields ...string) string {
	var out []string
	for _, f := range fields {
		if by := d.By[f]; by != "" && !slices.Contains(out, by) {
			out = append(out, by)
		}
	}
	return strings.Join(out, " and ")
}

// Request is done once for every ID. It resumes a plan that is blocked, split, or paused by PauseAfter.
type Request struct {
	ID string `json:"id"`
	// Resume requests only that the plan resumes.
	Resume bool `json:"resume,omitempty"`
	// RemoveNames removes the names that a finalized plan has kept. No other field but SourceGone may be set with it.
	RemoveNames bool `json:"removeNames,omitempty"`
	// The other fields are as in Assurance and Limits. SourceGone is the UID of the cluster that the user
	// declares gone.
	NodeGone       string    `json:"nodeGone,omitempty"`
	Readopt        bool      `json:"readopt,omitempty"`
	MaxUnavailable int32     `json:"maxUnavailable,omitempty"`
	SourceGone     types.UID `json:"sourceGone,omitempty"`
	OtherTemplate  string    `json:"otherTemplate,omitempty"`
	OtherCopies    []string  `json:"otherCopies,omitempty"`
	Ignore         []string  `json:"ignore,omitempty"`
	SkipGates      bool      `json:"skipGates,omitempty"`
	SkipPlaces     bool      `json:"skipPlaces,omitempty"`
	UntilOrdinal   *int32    `json:"untilOrdinal,omitempty"`
	PauseAfter     int32     `json:"pauseAfter,omitempty"`
}

// Limits returns how far the move goes.
func (a Request) Limits() Limits { return Limits{Until: a.UntilOrdinal, PauseAfter: a.PauseAfter} }

// Assurance returns the facts for which the user vouches.
func (a Request) Assurance() Assurance {
	return Assurance{NodeGone: a.NodeGone, Readopt: a.Readopt, MaxUnavailable: a.MaxUnavailable, SourceGone: a.SourceGone != "", OtherTemplate: a.OtherTemplate, OtherCopies: a.OtherCopies, Ignore: a.Ignore, SkipPlaces: a.SkipPlaces}
}

// Observed is the part of its Declaration that a plan took over last. It is written together with its
// effect, so that a crash can neither lose nor double it.
type Observed struct {
	// Direction is the direction that was requested.
	Direction Direction `json:"direction"`
	// Paused reports that a pause was requested.
	Paused bool `json:"paused,omitempty"`
	// Request is the ID of the Request.
	Request string `json:"request,omitempty"`
	// Refused is the reason why the direction or the request had no effect.
	Refused string `json:"refused,omitempty"`
	// RefusedID names that reason.
	RefusedID reasons.ID `json:"refusedID,omitempty"`
}

// SameRequest reports whether both have the same direction and the same request.
func (h Observed) SameRequest(other Observed) bool {
	return h.Direction == other.Direction && h.Request == other.Request
}

// Command is a direction that a plan takes or continues.
type Command struct {
	// Direction is where the plan goes from now on. A Move continues as the journal states, unless Turns is set.
	Direction Direction
	// Turns requests that a plan that is being aborted or finalized turns to the destination again.
	Turns bool
	// By is who makes the request, for reports: the user as the API server names them, or the object that has it.
	By        string
	SkipGates bool
	// Assurance holds the facts for which the user vouches.
	Assurance Assurance
	Limits    Limits
	KeepNames bool
	// RemoveNames requests that an ended plan keeps its names no longer. The plan takes no direction.
	RemoveNames bool
	// Observed is recorded in the journal for a request that the journal does not contain yet; nil for a
	// request that does not come from a Declaration.
	Observed *Observed
}

// Is reports whether two requests are the same. Who has asked makes no difference: what is known of that depends on
// the reader.
func (w Command) Is(other Command) bool {
	w.By = other.By
	return equality.Semantic.DeepEqual(w, other)
}

// Validate returns the reason why no plan can be made from the Declaration, or why its request is invalid.
func (d *Declaration) Validate() error {
	if err := d.Spec.refuse(); err != nil {
		return err
	}
	for side, place := range map[Side]Place{Source: d.Source, Destination: d.Destination.Place} {
		if place.Kubeconfig != "" {
			return fmt.Errorf("spec.%s.kubeconfig: expected none: the orchestrator finds clusters only by context, the name of a Secret or of a context in one", side)
		}
	}
	for i, p := range d.Destination.Patches {
		if p.Patch == "" {
			return fmt.Errorf("spec.destination.patches[%d]: expected patch, the text of the patch: the orchestrator reads no files", i)
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
	case a.OtherTemplate != "" && !IsTemplateWord(a.OtherTemplate):
		return fmt.Errorf("spec.request.otherTemplate is %.70q, expected the 8 digits that the plan printed with its reason", a.OtherTemplate)
	case slices.ContainsFunc(a.OtherCopies, func(w string) bool { return !IsCopyWord(w) }):
		return fmt.Errorf("spec.request.otherCopies is %.300q, expected what the plan printed with its reason, such as Secret/web:0123abcd", a.OtherCopies)
	case a.RemoveNames && !equality.Semantic.DeepEqual(*a, Request{ID: a.ID, RemoveNames: true, SourceGone: a.SourceGone}):
		return errors.New("spec.request: removeNames must be the only field beside id, and the plan must have ended")
	}
	return nil
}

// Declared returns the Declaration of a plan that the user has made and reviewed.
func (p *Plan) Declared() Declaration {
	place := func(r Ref) Place {
		return Place{Context: r.Context, Namespace: r.Namespace, Name: r.Name, Kind: r.SetKind()}
	}
	most := intstr.FromInt32(p.MaxUnavailable)
	d := Declaration{ApprovedHash: p.Hash, Spec: Spec{
		Source: place(p.Source), Destination: Target{Place: place(p.Destination)},
		MaxUnavailable: &most, Window: p.Window, Storage: p.Storage, Names: p.Names.Mode, Twins: p.Names.Twins, Placeholder: p.Placeholder.said(), Ignore: p.Ignored, Gates: p.Gates,
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

// Differs returns the first field in which a Declaration is about another plan, or "". A field that
// the Declaration leaves open matches any value.
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
		{"maxUnavailable", d.MaxUnavailable == nil || Unavailable(d.MaxUnavailable, p.Count) == p.MaxUnavailable},
		{"window", max(d.Window, 1) == is.Window},
		{"storage", equality.Semantic.DeepEqual(d.Storage, is.Storage)},
		{"empty", equality.Semantic.DeepEqual(empty, is.Empty)},
		{"names", open(string(d.Names), string(is.Names))},
		{"twins", d.Twins == is.Twins},
		{"placeholder", d.Placeholder.asks(is.Placeholder)},
		{"ignore", equality.Semantic.DeepEqual(d.Ignore, is.Ignore)},
		{"gates", equality.Semantic.DeepEqual(GatesWithDefaults(d.Gates), is.Gates)},
	} {
		if !field.same {
			return field.name
		}
	}
	return ""
}

// DecodeDeclaration reads a spec. A spec with unknown fields is refused, because they may contradict
// the known ones.
func DecodeDeclaration(raw []byte) (*Declaration, error) {
	var d Declaration
	err := DecodeStrictly(raw, &d)
	if err == nil {
		err = d.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("the spec cannot be read: %w", err)
	}
	return &d, nil
}

// Assurance holds the facts for which the user vouches with a command, because no API can show them (L6).
type Assurance struct {
	// NodeGone is a node on which no pod of the wave under way can still run, and which can no longer
	// write to its volumes.
	NodeGone string `json:"nodeGone,omitempty"`
	// Readopt declares that sets and volumes without the plan's stamp, or recreated ones, are the
	// plan's own nevertheless.
	Readopt bool `json:"readopt,omitempty"`
	// MaxUnavailable is how many ordinals may be unavailable during an abort, if more than the plan
	// allows. 0 means the plan's number.
	MaxUnavailable int32 `json:"maxUnavailable,omitempty"`
	// SourceGone declares that the source's cluster no longer exists.
	SourceGone bool `json:"sourceGone,omitempty"`
	// OtherTemplate declares that the data may be used by the pod template of the side that receives the ordinals. It is
	// the word that the plan printed for these two templates.
	OtherTemplate string `json:"otherTemplate,omitempty"`
	// OtherCopies declares of objects that are not the same on both sides that pods may start with that of the side that
	// receives them. Each is the word that the plan printed for these two states of an object, such as Secret/web:0123abcd.
	OtherCopies []string `json:"otherCopies,omitempty"`
	// Ignore are checks of which the user accepts what they find before a wave leaves.
	Ignore []string `json:"ignore,omitempty"`
	// SkipPlaces lets the wave that waits for its places leave without that proof, and in an abort every wave.
	SkipPlaces bool `json:"skipPlaces,omitempty"`
}

// IsTemplateWord reports whether a text may be the word for two templates.
func IsTemplateWord(s string) bool {
	return len(s) == 8 && strings.Trim(s, "0123456789abcdef") == ""
}

// IsCopyWord reports whether a text may be the word for an object that is not the same on both sides.
func IsCopyWord(s string) bool {
	object, digits, _ := strings.Cut(s, ":")
	kind, name, _ := strings.Cut(object, "/")
	return slices.Contains([]string{"ConfigMap", "Secret", "Service", "ServiceAccount"}, kind) && len(validation.IsDNS1123Subdomain(name)) == 0 && IsTemplateWord(digits)
}

// Limits is how far the next run of a Move goes. The zero value means to the end.
type Limits struct {
	// Until, if set, ends the move in a split: the source keeps the ordinals below it, the
	// destination has this ordinal and those above.
	Until *int32
	// PauseAfter is the number of ordinals after which the move pauses; 0 for no pause.
	PauseAfter int32
}
