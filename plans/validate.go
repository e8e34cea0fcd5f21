package plans

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// The bounds of a plan. A reader iterates over its ordinals, claims and dependencies, and a plan may
// come from an untrusted source.
const (
	maxOrdinals     = 10_000
	maxWindow       = 64 // bounds the journal, which has the volumes of a whole wave
	maxClaims       = 32
	maxShared       = 64
	maxDependencies = 1000
	maxPatches      = 32
	MaxPatchBytes   = 64 << 10
	maxPlanBytes    = 900 << 10 // a ConfigMap holds 1 MiB
)

// Validate returns the reason why a plan cannot be carried out, whatever the clusters contain. It
// runs where a plan is made and where one is read, so that every plan that is made can be read, and
// no plan can be read that could not be made.
func (p *Plan) Validate() error {
	for _, refuse := range []func(*Plan) error{
		refusePlaces, refuseNames, refuseCounts, refuseGatesOf, refusePatches, refuseClaims, refuseBudget, refuseDependencies,
	} {
		if err := refuse(p); err != nil {
			return err
		}
	}
	if err := p.Placeholder.refuse(); err != nil {
		return err
	}
	one := p.OneCluster()
	if err := cmp.Or(p.Storage.refuse(one), refuseReach(p, one)); err != nil {
		return err
	}
	raw, err := Encode(p)
	if err != nil {
		return fmt.Errorf("the plan cannot be written down, perhaps for a control character in a patch or a command: %w", err)
	}
	return tooLong(raw)
}

func refusePlaces(p *Plan) error {
	for _, side := range Sides() {
		if err := p.On(side).refuse(side); err != nil {
			return err
		}
	}
	if p.Source.Name != p.Destination.Name {
		return errors.New("spec.destination.name differs from spec.source.name: pods keep their names, so the sets must have one name")
	}
	if s, d := p.Source, p.Destination; (s.KnownBy == "") != (d.KnownBy == "") || s.Cluster == d.Cluster && s.KnownBy != d.KnownBy {
		return fmt.Errorf("source and destination are known by the namespaces %s and %s: UIDs of unlike namespaces do not tell whether they are one cluster", s.Identity(), d.Identity())
	}
	if p.OneCluster() && p.Source.Namespace == p.Destination.Namespace {
		return fmt.Errorf("source and destination are both %s: give --to-namespace or --to-context; two sets of one name cannot be in one namespace", p.Source)
	}
	return nil
}

// refuse says what is wrong with the reference to the set of a side.
func (r Ref) refuse(side Side) error {
	switch {
	case !subdomain(string(r.Cluster)):
		return fmt.Errorf("%s: cluster is %q, expected the UID of the namespace %s there", side, r.Cluster, r.Identity())
	case r.KnownBy != "" && !label(r.KnownBy), r.KnownBy == "kube-system":
		return fmt.Errorf("%s: knownBy is %q, expected a namespace, or nothing for kube-system", side, r.KnownBy)
	case len(r.Context) > 512 || strings.ContainsFunc(r.Context, unicode.IsControl):
		return fmt.Errorf("%s: context %.60q is no name that can be shown", side, r.Context)
	case !label(r.Namespace):
		return fmt.Errorf("%s: namespace is %q, expected a DNS label", side, r.Namespace)
	case !subdomain(r.Name):
		return fmt.Errorf("%s: name is %q, expected that of a set", side, r.Name)
	case r.Kind != "" && r.Kind != SliceKind:
		return fmt.Errorf("%s: kind is %q, expected %s, or none for a %s", side, r.Kind, SliceKind, NativeKind)
	}
	return nil
}

func refuseNames(p *Plan) error {
	if err := RefuseStoredName(p.Name); err != nil {
		return err
	}
	if !strings.HasPrefix(p.ID, p.Name+"-") || !label(strings.Replace(p.ID, ".", "-", 1)) { // only a name may have a dot
		return fmt.Errorf("plan %s: its id is %q, expected the name, a dash and what tells it from other plans of that name", p.Name, p.ID)
	}
	switch p.Names.Mode {
	case "", NoNames:
	case Bridge, MCS:
		if !label(p.Names.Service) {
			return fmt.Errorf("names: service is %q, expected the governing Service of the set, which %s needs", p.Names.Service, p.Names.Mode)
		}
	default:
		return fmt.Errorf("names: mode is %q, expected %s, %s or %s", p.Names.Mode, Bridge, MCS, NoNames)
	}
	return refuseClients(p)
}

func refuseClients(p *Plan) error {
	for k, name := range p.Names.Clients {
		switch {
		case !label(name):
			return fmt.Errorf("names: clients has %.60q, expected the name of a Service", name)
		case k > 0 && p.Names.Clients[k-1] >= name:
			return fmt.Errorf("names: clients has %s after %s, expected each once, sorted", name, p.Names.Clients[k-1])
		case name == p.Names.Service:
			return fmt.Errorf("names: clients has %s, which is the governing Service", name)
		}
	}
	for _, d := range p.Directories() {
		if !p.Names.Reaches(d.SameNodes) {
			return fmt.Errorf("names: clients has %s, and mode %s does not say that the pod networks are routed; expected %s", d.Client, p.Names.Mode, Bridge)
		}
	}
	return nil
}

// RefuseName returns the reason why a user cannot give a plan a name. Its ConfigMaps are stsmigrate-NAME,
// stsmigrate-NAME-journal and stsmigrate-NAME-timeline, and some names of that form belong to other objects.
func RefuseName(name string) error {
	if !label(name) || len(name) > 40 {
		return fmt.Errorf("plan name %.60q: expected a DNS label of at most 40 characters; give one with --name", name)
	}
	if name == "consent" || strings.HasSuffix(name, "-journal") || strings.HasSuffix(name, "-timeline") || strings.HasPrefix(name, "adopt-") {
		return fmt.Errorf("plan name %q: ConfigMap stsmigrate-%s would be that of a consent, of another plan's journal or timeline, or of an adoption; give another one with --name", name, name)
	}
	return nil
}

// NameFor returns the name of a plan that moves a set and was given none: that of the set, if a plan can have it. One
// that is longer, or belongs to other objects, is cut, and a hash of the whole keeps it apart from others.
func NameFor(set string) string {
	if RefuseName(set) == nil {
		return set
	}
	sum := sha256.Sum256([]byte(set))
	kept := strings.TrimPrefix(strings.ReplaceAll(set, ".", "-"), "adopt-")
	return strings.TrimRight(kept[:min(len(kept), 31)], "-") + "-" + hex.EncodeToString(sum[:4])
}

func refuseCounts(p *Plan) error {
	switch w, d := p.Window, p.MaxUnavailable; {
	case p.Count < 1:
		return fmt.Errorf("%s has %d replicas: there is nothing to move", p.Source, p.Count)
	case p.Count > maxOrdinals:
		return fmt.Errorf("%s has %d replicas: expected at most %d", p.Source, p.Count, maxOrdinals)
	case p.Start < 0 || p.Start > math.MaxInt32-p.Count:
		return fmt.Errorf("%s begins with ordinal %d: expected 0 or more, and that none is above %d", p.Source, p.Start, math.MaxInt32-1)
	case d < 1:
		return fmt.Errorf("the budget is %d: at least one ordinal must be allowed to be unavailable", d)
	case w < 1 || w > d || w > maxWindow:
		return fmt.Errorf("window %d: expected 1 to %d ordinals per wave, since all ordinals of a wave are unavailable together and at most %d may be: give another --window, or a larger --max-unavailable", w, min(d, maxWindow), d)
	}
	return nil
}

// refuseGates checks gates after fill: every default must be set.
func refuseGatesOf(p *Plan) error {
	if err := refuseGates(p.Gates); err != nil {
		return err
	}
	for _, g := range p.Gates {
		switch {
		case g.Timeout.Duration == 0 || g.Interval.Duration == 0 && !g.IsJob():
			return fmt.Errorf("gate %s: timeout is %s and interval is %s, expected what `stsmigrate plan` fills in", g.Name, g.Timeout.Duration, g.Interval.Duration)
		case g.Pod != nil && g.Pod.Type == intstr.Int && !p.Ordinals().Has(g.Pod.IntVal):
			return fmt.Errorf("gate %s: pod is %d: expected an ordinal of the set, %s", g.Name, g.Pod.IntVal, p.Ordinals())
		case g.Pod != nil && g.Pod.Type == intstr.String && p.Count < 2:
			return fmt.Errorf("gate %s: pod is %s, and the set has one pod only", g.Name, AnyOther)
		}
	}
	return nil
}

// refusePatches bounds the patches, so that applying them takes no longer than reading the set.
func refusePatches(p *Plan) error {
	documents, size := 0, 0
	for _, patch := range p.Patches {
		size += len(patch.Patch)
		for r := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(patch.Patch))); ; documents++ {
			if _, err := r.Read(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return fmt.Errorf("%s: %w", patch, err)
			}
		}
	}
	if len(p.Patches) > maxPatches || documents > maxPatches || size > MaxPatchBytes {
		return fmt.Errorf("the patches are %d with %d documents and take %d bytes: expected at most %d, %d and %d", len(p.Patches), documents, size, maxPatches, maxPatches, MaxPatchBytes)
	}
	return nil
}

func refuseClaims(p *Plan) error {
	if len(p.Claims) > maxClaims || len(p.Shared) > maxShared {
		return fmt.Errorf("%s has %d claim templates and %d shared claims: expected at most %d and %d", p.Source, len(p.Claims), len(p.Shared), maxClaims, maxShared)
	}
	seen := map[string]bool{}
	for _, c := range p.Claims {
		switch mode := p.DefaultMode(); {
		case !label(c.Template) || seen[c.Template]:
			return fmt.Errorf("claim template %q: expected DNS labels, each once", c.Template)
		case c.Mode != mode && c.Mode != Empty:
			return fmt.Errorf("claim template %s: mode is %q, expected %s or %s between these two places", c.Template, c.Mode, mode, Empty)
		case c.Mode == Empty && !p.HasGate(func(g Gate) bool { return g.When == AfterGrow }):
			return fmt.Errorf("empty: claim template %s starts without data, and no gate checks that the application has replicated it: add a gate with `when: AfterGrow` to the Migration (docs/gates.md)", c.Template)
		}
		seen[c.Template] = true
	}
	for _, s := range p.Shared {
		if !subdomain(s.Claim) || !subdomain(s.Volume) || s.Handle == "" {
			return fmt.Errorf("shared claim %q: its volume is %q with the handle %q, expected the names of a claim and a volume, and what identifies its disk", s.Claim, s.Volume, s.Handle)
		}
	}
	return nil
}

func refuseBudget(p *Plan) error {
	for _, side := range Sides() {
		if name, _ := p.BudgetOn(side); !subdomain(name) {
			return fmt.Errorf("budget: the name on the %s is %q, expected that of a PodDisruptionBudget", side, name)
		}
	}
	return nil
}

func refuseDependencies(p *Plan) error {
	if len(p.Dependencies) > maxDependencies {
		return fmt.Errorf("%s names %d ConfigMaps, Secrets and other objects: expected at most %d", p.Source, len(p.Dependencies), maxDependencies)
	}
	for _, d := range p.Dependencies {
		if !slices.Contains([]string{"ConfigMap", "Secret", "Service", "ServiceAccount"}, d.Kind) {
			return fmt.Errorf("dependency %s: expected a ConfigMap, Secret, Service or ServiceAccount", d)
		}
		if d.Name == "" || len(d.Name) > validation.DNS1123SubdomainMaxLength || len(content.IsPathSegmentName(d.Name)) > 0 {
			return fmt.Errorf("dependency %s %.60q: no object can have that name", d.Kind, d.Name)
		}
		if d.Twin != nil && (d.Kind != "Service" || d.Required != "" || d.Name == p.Names.Service || !p.Names.Twins) {
			return fmt.Errorf("dependency %s: only a Service of clients, which names.twins asks for, is made as a twin", d)
		}
	}
	return nil
}

// DefaultMode returns how volumes get from one side to the other.
func (p *Plan) DefaultMode() Mode {
	if p.OneCluster() {
		return Rebind
	}
	return Reimport
}

func label(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

func subdomain(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// tooLong refuses a plan that no ConfigMap could hold.
func tooLong(raw []byte) error {
	if len(raw) > maxPlanBytes {
		return fmt.Errorf("the plan takes %d bytes: expected at most %d, since it is kept in a ConfigMap", len(raw), maxPlanBytes)
	}
	return nil
}
