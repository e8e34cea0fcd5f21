package plans

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// APIVersion is the version of the files and ConfigMaps that this package reads and writes. A file of
// another version is refused and never interpreted.
const APIVersion = "stsmigrate.dev/v1alpha1"

// The kinds of file under APIVersion.
const (
	PlanKind      = "Plan"
	JournalKind   = "Journal"
	TimelineKind  = "Timeline"
	MigrationKind = "Migration"
)

// Side is one end of the migration.
type Side string

// The two sides. The home of plan and journal is the destination, unless the plan is detached.
const (
	Source      Side = "source"
	Destination Side = "destination"
)

// Sides returns both sides, in the order in which they are reported.
func Sides() []Side { return []Side{Source, Destination} }

// Other returns the opposite side.
func (s Side) Other() Side {
	if s == Source {
		return Destination
	}
	return Source
}

// Ref names the set of one side.
type Ref struct {
	// Cluster is the UID of the cluster's kube-system namespace (or of the namespace in knownBy), the only name of a cluster that no
	// kubeconfig can change.
	Cluster types.UID `json:"cluster"`
	// KnownBy is the namespace whose UID Cluster is, if the user who made the plan may not read kube-system.
	KnownBy string `json:"knownBy,omitempty"`
	// Context is the kubeconfig context used when the plan was made. It is only shown: the field cluster identifies the
	// cluster.
	Context string `json:"context,omitempty"`
	// Namespace is the namespace of the set.
	Namespace string `json:"namespace"`
	// Name is the name of the set, the same on both sides.
	Name string `json:"name"`
	// Kind is StatefulSetSlice for a StatefulSetSlice, and empty for a StatefulSet.
	Kind string `json:"kind,omitempty"`
}

// Identity returns the namespace whose UID tells the cluster from others.
func (r Ref) Identity() string { return cmp.Or(r.KnownBy, metav1.NamespaceSystem) }

// String returns "namespace/name in context", the form used in messages.
func (r Ref) String() string {
	if r.Context == "" {
		return r.Namespace + "/" + r.Name
	}
	return r.Namespace + "/" + r.Name + " in " + r.Context
}

// Dependency is an object that the destination's pods name and that must exist in the destination
// namespace. Unless it is Required, it is copied from the source when absent, and an existing object
// that differs blocks the plan.
type Dependency struct {
	// Kind is the kind of the object, such as Secret.
	Kind string `json:"kind"`
	// Name is the name of the object, the same on both sides.
	Name string `json:"name"`
	// Optional reports that the pods also run without the object.
	Optional bool `json:"optional,omitempty"`
	// Required, if not empty, is the reason why the object is neither copied nor compared and must
	// already exist, such as "made by Certificate web of cert-manager".
	Required string `json:"required,omitempty"`
	// Twin, if set, says that the object is a Service by which clients find the pods, and which no pod needs. One that
	// exists on the destination is left as it is.
	Twin *Twin `json:"twin,omitempty"`
}

// Twin is how a Service of clients is made on the destination: for the cluster alone.
type Twin struct {
	// LeftOut lists what the twin does not have of its original, such as "spec.type LoadBalancer".
	LeftOut []string `json:"leftOut,omitempty"`
}

// String returns "Kind/name".
func (d Dependency) String() string { return d.Kind + "/" + d.Name }

// Budget names the PodDisruptionBudgets of both sides.
type Budget struct {
	// Source is the name of the budget on the source.
	Source string `json:"source"`
	// Destination is the name of the budget on the destination.
	Destination string `json:"destination"`
	// SourceExisted reports that the source's budget is the user's. Any other budget is created by the migration, and
	// deleted after it.
	SourceExisted bool `json:"sourceExisted"`
	// DestinationExisted reports that the destination's budget is the user's.
	DestinationExisted bool `json:"destinationExisted"`
}

// Fingerprint identifies the objects for which the plan was made. A plan that no longer matches them
// is refused before the first write.
type Fingerprint struct {
	// SourceUID is the UID of the source's set.
	SourceUID types.UID `json:"sourceUID"`
	// SourceSpec is the hash of the spec of the source's set.
	SourceSpec string `json:"sourceSpec"`
	// SourceRevision is the name of the ControllerRevision that keeps the pod template of the source's set.
	SourceRevision string `json:"sourceRevision,omitempty"`
	// SourceFields are the fields of that spec by their paths, of the pod template the images alone: what has changed can
	// be said by them. The hash decides whether anything has.
	SourceFields map[string]string `json:"sourceFields,omitempty"`
	// BudgetUID is the UID of the source's PodDisruptionBudget; empty if there was none.
	BudgetUID types.UID `json:"budgetUID,omitempty"`
	// BudgetSpec is the hash of the spec of the source's PodDisruptionBudget.
	BudgetSpec string `json:"budgetSpec,omitempty"`
	// BudgetFields are the fields of that spec by their paths.
	BudgetFields map[string]string `json:"budgetFields,omitempty"`
	// DestinationUID is the UID of the destination's set; empty if there was none.
	DestinationUID types.UID `json:"destinationUID,omitempty"`
	// DestinationSpec is the hash of the spec of the destination's set; empty if there was none.
	DestinationSpec string `json:"destinationSpec,omitempty"`
}

// Plan is the immutable promise: which ordinals move, from where to where, and how many may be
// unavailable. Its size does not depend on the number of ordinals.
type Plan struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Name is the name of the plan, of its ConfigMap and of its StatefulSetMigration.
	Name string `json:"name"`
	// ID is unique to this plan, also among plans that use one name one after the other. The stamps
	// on objects carry it.
	ID string `json:"id"`
	// Hash covers every other field; an edited plan is refused.
	Hash string `json:"hash"`
	// Requires lists what a reader must support. A release that does not refuses the plan.
	Requires []string `json:"requires,omitempty"`
	// Read is the whole document as it was read, if it has unknown fields; nil otherwise.
	Read json.RawMessage `json:"-"`

	// Source is the set that moves.
	Source Ref `json:"source"`
	// Destination is the place that the set moves to.
	Destination Ref `json:"destination"`
	// Start is the lowest ordinal that moves.
	Start int32 `json:"start"`
	// Count is how many ordinals move: those from start to start + count - 1.
	Count int32 `json:"count"`
	// MaxUnavailable is d: the maximum number of ordinals that are unavailable at once, over both
	// sides together. At least 1.
	MaxUnavailable int32 `json:"maxUnavailable"`
	// Window is w: how many ordinals one wave moves together, from 1 to d.
	Window int32 `json:"window"`

	// Claims lists the claim templates of the set, and how the volumes of each move.
	Claims []ClaimMove `json:"claims,omitempty"`
	// Storage maps the names that differ in the destination's cluster. A name without an entry stays as it is.
	Storage Storage `json:"storage,omitzero"`
	// Shared lists the volumes that the pod template itself names.
	Shared []SharedVolume `json:"shared,omitempty"`
	// Dependencies lists the objects that the pods name. What the destination's namespace lacks is copied there.
	Dependencies []Dependency `json:"dependencies,omitempty"`
	// Patches are the user's changes to the destination's set, compared with the source's.
	Patches []Patch `json:"patches,omitempty"`
	// Changes lists the effect of the patches for the user, one line of "field: old -> new" for each field.
	Changes []string `json:"changes,omitempty"`
	// Names is how the pods are found while they are on two sides.
	Names Names `json:"names,omitzero"`
	// Gates are the questions to the application, with all defaults set.
	Gates []Gate `json:"gates,omitempty"`
	// Placeholder is how the places of the ordinals are taken before they leave.
	Placeholder Placeholder `json:"placeholder,omitzero"`
	// Budget names the PodDisruptionBudgets of both sides.
	Budget Budget `json:"budget"`
	// Seen identifies the objects for which the plan was made. The plan is refused when they have changed since.
	Seen Fingerprint `json:"seen"`
	// Versions are the versions that the API servers of both sides reported when the plan was made. A
	// side that reported none is absent.
	Versions map[Side]string `json:"versions,omitempty"`
	// Ignored names the checks whose findings the user accepted when the plan was made. They do not
	// block this plan, now or later.
	Ignored []string `json:"ignored,omitempty"`
	// Made says who made the plan, and when; missing if that is not known. It is only reported.
	Made *Made `json:"made,omitempty"`
}

// Made is the origin of a plan.
type Made struct {
	// At is when the plan was made.
	At metav1.Time `json:"at"`
	// By is the user as the destination's API server names them; empty if it does not say.
	By string `json:"by,omitempty"`
}

// End returns the ordinal after the last one that moves.
func (p *Plan) End() int32 { return p.Start + p.Count }

// On returns the set of the given side.
func (p *Plan) On(s Side) Ref {
	if s == Source {
		return p.Source
	}
	return p.Destination
}

// OneCluster reports whether both sides are namespaces of the same cluster.
func (p *Plan) OneCluster() bool { return p.Source.Cluster == p.Destination.Cluster }

// Existed reports whether the destination set existed before the plan.
func (p *Plan) Existed() bool { return p.Seen.DestinationUID != "" }

// BudgetOn returns the name of the PodDisruptionBudget of a side and whether it is the user's.
func (p *Plan) BudgetOn(s Side) (name string, existed bool) {
	if s == Source {
		return p.Budget.Source, p.Budget.SourceExisted
	}
	return p.Budget.Destination, p.Budget.DestinationExisted
}

// Pods returns the names of the pods of a wave as the source names them, such as "web-4" or "web-2..4".
func (p *Plan) Pods(wave Slice) string {
	if wave.Replicas == 1 {
		return p.Pod(Source, wave.Start)
	}
	return fmt.Sprintf("%s..%d", p.Pod(Source, wave.Start), wave.End()-1)
}

// Pod returns the name of the pod with the given ordinal on a side.
func (p *Plan) Pod(side Side, ordinal int32) string {
	return fmt.Sprintf("%s-%d", p.On(side).Name, ordinal)
}

// Place returns the name of the placeholder of an ordinal on a side. It does not end with an ordinal: no set adopts it.
func (p *Plan) Place(side Side, ordinal int32) string { return p.Pod(side, ordinal) + "-place" }

// ClaimName returns the name of the claim for a template and an ordinal on a side (rule ID-8).
func (p *Plan) ClaimName(side Side, template string, ordinal int32) string {
	return fmt.Sprintf("%s-%s-%d", template, p.On(side).Name, ordinal)
}

// HasPod reports whether the set of a side gives a name to one of its pods, whatever its ordinal.
func (p *Plan) HasPod(side Side, name string) bool {
	return isOrdinal(strings.CutPrefix(name, p.On(side).Name+"-"))
}

// HasClaim reports whether the set of a side gives a name to one of its claims that move, whatever its ordinal.
func (p *Plan) HasClaim(side Side, name string) bool {
	return slices.ContainsFunc(p.Claims, func(c ClaimMove) bool {
		return isOrdinal(strings.CutPrefix(name, c.Template+"-"+p.On(side).Name+"-"))
	})
}

func isOrdinal(rest string, prefixed bool) bool {
	_, err := strconv.ParseInt(rest, 10, 32)
	return prefixed && err == nil
}

// Slice is the range of ordinals of one set: [Start, Start+Replicas).
type Slice struct {
	// Start is the lowest ordinal of the range.
	Start int32 `json:"start"`
	// Replicas is how many ordinals the range has.
	Replicas int32 `json:"replicas"`
}

// Has reports whether the ordinal lies in the slice.
func (s Slice) Has(ordinal int32) bool { return ordinal >= s.Start && ordinal < s.End() }

// End returns the ordinal after the last one.
func (s Slice) End() int32 { return s.Start + s.Replicas }

// Covers reports whether every ordinal of another slice is in it.
func (s Slice) Covers(other Slice) bool { return other.Start >= s.Start && other.End() <= s.End() }

// Join returns the smallest slice that covers both.
func (s Slice) Join(other Slice) Slice {
	start := min(s.Start, other.Start)
	return Slice{Start: start, Replicas: max(s.End(), other.End()) - start}
}

// All iterates over the ordinals, lowest first.
func (s Slice) All() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for o := s.Start; o < s.End(); o++ {
			if !yield(o) {
				return
			}
		}
	}
}

// String returns the ordinals, such as "[0..4]" or "[]".
func (s Slice) String() string {
	switch s.Replicas {
	case 0:
		return "[]"
	case 1:
		return fmt.Sprintf("[%d]", s.Start)
	default:
		return fmt.Sprintf("[%d..%d]", s.Start, s.End()-1)
	}
}

// Ordinals returns all ordinals that move.
func (p *Plan) Ordinals() Slice { return Slice{Start: p.Start, Replicas: p.Count} }

// Slice returns the range that a side must have around the move of one wave: with the wave's ordinals
// (has), or without them. In either direction, everything below them is on the source and everything
// above them on the destination (S7).
func (p *Plan) Slice(side Side, wave Slice, has bool) Slice {
	if side == Source {
		n := wave.Start - p.Start
		if has {
			n += wave.Replicas
		}
		return Slice{Start: p.Start, Replicas: n}
	}
	start := wave.End()
	if has {
		start = wave.Start
	}
	return Slice{Start: start, Replicas: p.End() - start}
}

// SliceOf returns the range of ordinals that a set has by its spec.
func SliceOf(set *appsv1.StatefulSet) Slice {
	s := Slice{Replicas: 1}
	if set.Spec.Replicas != nil {
		s.Replicas = *set.Spec.Replicas
	}
	if set.Spec.Ordinals != nil {
		s.Start = set.Spec.Ordinals.Start
	}
	return s
}
