// Package draft makes a plan from the flags and the Migration that a user gives.
package draft

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Read reads a file, or standard input for "-".
type Read func(file string) ([]byte, error)

// Flags say what is moved, and how.
type Flags struct {
	// File is a Migration, and Out the file for the plan.
	File, Out string
	// Ignore names the checks whose findings the user accepts.
	Ignore []string
	// Show is what the text of a plan has besides.
	Show Shown
	// Account is the account of the orchestrator that is to carry the plan out; "" where that is open.
	Account string
	// Detailed asks for another exit code when there is something to do.
	Detailed bool
	// spec is what the plan is made from. A Migration has its storage and its gates, and what no flag says.
	spec        plans.Spec
	name        string
	patches     []string
	inFile      []plans.Patch // of the Migration
	unavailable string        // d, as the user has written it
	classes     map[string]string
	toKind      string
	kinds       map[plans.Side]string // of the sets, as in a Ref
	handed      string                // the flags of apply that hand the plan to that orchestrator
	waits       string                // our image with the program that waits, if this program is released
}

// Shown is what a user asks to see of a plan: the list of writes, and how the pods differ between the two sides.
type Shown struct{ Writes, Pod bool }

// HandTo says that the orchestrator of a namespace is to carry the plan out. context is that of its cluster, if it was
// named.
func (f *Flags) HandTo(namespace, context string) {
	f.Account = "system:serviceaccount:" + namespace + ":orchestrator"
	f.handed = " --detach" + program.Given("--home-context", context)
	if namespace != "stsmigrate" {
		f.handed += program.Given("--home-namespace", namespace)
	}
}

// Handed returns the flags of apply that hand the plan to that orchestrator, each with a space before it.
func (f *Flags) Handed() string { return f.handed }

// AddTo adds the flags that select what is moved, and how.
func (f *Flags) AddTo(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.File, "filename", "f", "", "read a Migration from this file (- is standard input)")
	cmd.Flags().StringVar(&f.toKind, "to-kind", "", "what the set becomes on the destination: sts (StatefulSet) or stss (StatefulSetSlice) (default: what it is; SET may be stss/NAME)")
	cmd.Flags().StringVar(&f.unavailable, "max-unavailable", "", "d: how many ordinals may be unavailable at once over both sides, as a number or a percentage (default: what the source's PodDisruptionBudget allows, or 1)")
	cmd.Flags().Int32Var(&f.spec.Window, "window", 0, "w: how many ordinals move together, at most d (default 1)")
	cmd.Flags().StringVar(&f.name, "name", "", "name of the plan (default: the set's name, shortened if it has more than 40 characters)")
	cmd.Flags().StringVar((*string)(&f.spec.Names), "names", "", "how pods are found while they are on two sides: bridge, mcs (Multi-Cluster Services) or none (default: bridge, where the set has a headless governing Service)")
	cmd.Flags().BoolVar(&f.spec.Twins, "twins", false, "make the Services by which clients find the pods on the destination too, where none has their name, for the cluster alone; the plan says what is left out")
	cmd.Flags().StringVar((*string)(&f.spec.Placeholder.Proof), "placeholder", "", "take the place of each ordinal by a pod that does nothing, before the ordinal leaves: schedule (it has a node), warm (its images and volumes are there too), off (none is taken) or auto (one of these, by what moves and what you may do; the plan says why) (default auto)")
	cmd.Flags().StringVar(&f.spec.Placeholder.Image, "placeholder-image", "", "an image with the program that waits, as /placeholder; with none, the containers of a placeholder fail to start after their images are pulled (default: that of this release; none for a program that is not released)")
	cmd.Flags().StringVar(&f.spec.Placeholder.PriorityClass, "placeholder-priority-class", "", "a PriorityClass below all others, by which whatever needs the room may take it (default: none)")
	cmd.Flags().StringToStringVar(&f.classes, "storage-class", nil, "what a StorageClass is called on the destination, as OLD=NEW (repeatable, or a comma list)")
	cmd.Flags().StringArrayVar(&f.patches, "patch", nil, "change the destination's set by this file: a strategic merge patch or a JSON patch (repeatable; they come after those of the Migration)")
	cmd.Flags().StringSliceVar(&f.spec.Empty, "empty", nil, "claim template whose ordinals start without data, because the application replicates it (repeatable, or a comma list)")
	cmd.Flags().StringSliceVar(&f.Ignore, "ignore", nil, "continue in spite of the findings of these checks; the plan records this (repeatable, or a comma list; only checks that can be ignored)")
}

// fillPlaceholder takes what a Migration says and no flag does.
func (f *Flags) fillPlaceholder(said plans.Placeholder) {
	f.spec.Placeholder.Proof = cmp.Or(f.spec.Placeholder.Proof, said.Proof)
	f.spec.Placeholder.Image = cmp.Or(f.spec.Placeholder.Image, said.Image)
	f.spec.Placeholder.PriorityClass = cmp.Or(f.spec.Placeholder.PriorityClass, said.PriorityClass)
	f.spec.Placeholder.Reach = said.Reach
}

// Check returns an error for flags of a plan that exclude one another, or that have no meaning.
func (f *Flags) Check(dryRun, output string) error {
	switch {
	case !slices.Contains([]string{"none", "client", "server"}, dryRun):
		return fmt.Errorf("--dry-run=%s: expected one of none, client, server", dryRun)
	case f.Show != (Shown{}) && output != "" && output != "wide":
		return fmt.Errorf("--show-%s belongs to the text of a plan, and -o %s prints the plan itself, as apply reads it: leave one of them out", map[bool]string{true: "writes", false: "pod"}[f.Show.Writes], output)
	}
	if why := f.spec.Placeholder.Misfit(); why != "" {
		return fmt.Errorf("--placeholder: %s", why)
	}
	return f.saveable()
}

// Ignorable returns an error if the findings of a check cannot be ignored that the user ignores.
func (f *Flags) Ignorable() error {
	names, err := preflight.Ignorable(f.Ignore)
	if err == nil {
		f.Ignore = names
		return nil
	}
	var known []string
	for _, d := range preflight.Described() {
		known = append(known, d.Name)
	}
	for _, n := range f.Ignore {
		if !slices.Contains(known, n) {
			return fmt.Errorf("--ignore: %w%s", err, program.DidYouMean(n, known))
		}
	}
	return fmt.Errorf("--ignore: %w", err)
}

// Request returns the set to move. A Migration file fills in the flags that the user did not give.
func (f *Flags) Request(r *reach.Flags, read Read, args []string) (set string, err error) {
	if r != nil {
		f.waits = program.PlaceholderImage(r.Version)
	}
	if f.unavailable != "" {
		v, err := plans.ReadUnavailable("--max-unavailable", f.unavailable)
		if err != nil {
			return "", err
		}
		f.spec.MaxUnavailable = &v
	}
	switch {
	case f.File == "" && len(args) == 1:
		kind, name := plans.SetOf(args[0])
		return name, f.setKinds(kind, f.toKind)
	case f.File == "":
		return "", fmt.Errorf("name the StatefulSet to move, or give a Migration with -f")
	case len(args) == 1:
		return "", fmt.Errorf("the StatefulSet is named twice: by %q and by -f %s", args[0], f.File)
	}
	raw, err := read(f.File)
	if err != nil {
		return "", err
	}
	m, err := plans.DecodeMigration(raw)
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.File, err)
	}
	r.FillFrom(m.Spec.Source, m.Spec.Destination.Place)
	f.name = cmp.Or(f.name, m.Metadata.Name)
	f.spec.Names = cmp.Or(f.spec.Names, m.Spec.Names)
	f.spec.Twins = f.spec.Twins || m.Spec.Twins
	f.fillPlaceholder(m.Spec.Placeholder)
	f.inFile = m.Spec.Destination.Patches
	if f.unavailable == "" {
		f.spec.MaxUnavailable = m.Spec.MaxUnavailable
	}
	f.spec.Window = cmp.Or(f.spec.Window, m.Spec.Window)
	f.spec.Storage = m.Spec.Storage
	if len(f.spec.Empty) == 0 {
		f.spec.Empty = m.Spec.Empty
	}
	if len(f.Ignore) == 0 {
		f.Ignore = m.Spec.Ignore
	}
	f.spec.Gates = m.Spec.Gates
	f.toKind = cmp.Or(f.toKind, m.Spec.Destination.Kind)
	return m.Spec.Source.Name, f.setKinds(m.Spec.Source.Kind, f.toKind)
}

// setKinds sets the kinds of the two sets. The destination's kind is the source's unless it is named.
func (f *Flags) setKinds(from, to string) error {
	if to == "" {
		to = from
	}
	f.kinds = map[plans.Side]string{}
	words := map[plans.Side]string{plans.Source: from, plans.Destination: to}
	for _, side := range plans.Sides() {
		kind, err := plans.KindOf(words[side])
		if err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
		f.kinds[side] = kind
	}
	return nil
}

// Patches reads the patch files: first those of the Migration, relative to its folder, then those of the
// flags.
func (f *Flags) Patches(read Read) ([]plans.Patch, error) {
	all := slices.Clone(f.inFile)
	for _, file := range f.patches {
		all = append(all, plans.Patch{Path: file})
	}
	for i := range all {
		if all[i].Path == "" {
			continue
		}
		file := all[i].Path
		if i < len(f.inFile) && !filepath.IsAbs(file) && f.File != "-" {
			file = filepath.Join(filepath.Dir(f.File), file)
		}
		raw, err := read(file)
		if err != nil {
			return nil, fmt.Errorf("reading a patch: %w", err)
		}
		all[i].Patch = string(raw)
	}
	return all, nil
}

// ToLook adds to an error how a user gets the rights to look who has none.
func ToLook(err error, set string) error {
	if !apierrors.IsForbidden(err) && !errors.As(err, new(clusters.ErrIdentity)) {
		return err
	}
	return fmt.Errorf("%w; to ask for the rights: `stsmigrate rbac %s --user NAME`, with the flags of this command, prints the Roles to look", err, set)
}

// Draft makes the plan, at the given time.
func (f *Flags) Draft(ctx context.Context, set string, patches []plans.Patch, source, destination *reach.End, now time.Time) (*plans.Plan, clusters.Clusters, error) {
	refs := map[plans.Side]plans.Ref{}
	ends := reach.Ends{plans.Source: source, plans.Destination: destination}
	for side, e := range ends {
		refs[side] = plans.Ref{Context: e.Context, Namespace: e.Namespace, Name: set, Kind: f.kinds[side]}
	}
	side, err := clusters.Identify(ctx, map[plans.Side]client.Client{plans.Source: source.Client, plans.Destination: destination.Client}, refs)
	if err != nil {
		return nil, nil, fmt.Errorf("%s (%s): %w", side, ends[side].Name(), err)
	}
	on := clusters.Clusters{plans.Source: source.Client, plans.Destination: destination.Client}.InTheWordsOf(refs).Listed(&plans.Plan{Source: refs[plans.Source], Destination: refs[plans.Destination]})
	r := f.spec
	r.Placeholder = r.Placeholder.Or(f.waits)
	r.Destination, r.Ignore = plans.Target{Patches: patches}, f.Ignore
	r.Storage.Classes = maps.Clone(r.Storage.Classes)
	for from, to := range f.classes {
		if r.Storage.Classes == nil {
			r.Storage.Classes = map[string]string{}
		}
		r.Storage.Classes[from] = to
	}
	if f.name != "" { // a stored plan may have a name that no user can choose
		if err := plans.RefuseName(f.name); err != nil {
			return nil, on, err
		}
	}
	p, err := preflight.Draft(ctx, on, refs[plans.Source], refs[plans.Destination], preflight.Request{Name: f.name, ID: rand.String(6), Spec: r, Account: f.Account})
	if err != nil {
		return nil, on, err
	}
	p.Made = &plans.Made{At: metav1.Time{Time: now.UTC().Truncate(time.Second)}, By: clusters.User(ctx, destination.Client)}
	return p, on, p.Seal()
}
