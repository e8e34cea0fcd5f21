package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/cmd/internal/output"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/preflight"
)

type planFlags struct {
	file, name, out string
	names           string
	patches         []string
	inFile          []plans.Patch // of the Migration
	maxUnavailable  int32
	window          int32
	ignore          []string
	classes         map[string]string
	empty           []string
	storage         plans.Storage
	gates           []plans.Gate // only a Migration has gates
	detailed        bool
	toKind          string
	kinds           map[plans.Side]string // of the sets, as in a Ref
}

// addTo adds the flags that select what is moved, and how.
func (f *planFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "filename", "f", "", "read a Migration from this file (- is standard input)")
	cmd.Flags().StringVar(&f.toKind, "to-kind", "", "what the set becomes on the destination: sts (StatefulSet) or stss (StatefulSetSlice) (default: what it is; SET may be stss/NAME)")
	cmd.Flags().Int32Var(&f.maxUnavailable, "max-unavailable", 0, "d: how many ordinals may be unavailable at once over both sides (default: what the source's PodDisruptionBudget allows, or 1)")
	cmd.Flags().Int32Var(&f.window, "window", 0, "w: how many ordinals move together, at most d (default 1)")
	cmd.Flags().StringVar(&f.name, "name", "", "name of the plan (default: the set's name)")
	cmd.Flags().StringVar(&f.names, "names", "", "how pods are found while they are on two sides: bridge, mcs (Multi-Cluster Services) or none (default: bridge, where the set has a headless governing Service)")
	cmd.Flags().StringToStringVar(&f.classes, "storage-class", nil, "what a StorageClass is called on the destination, as OLD=NEW (repeatable, or a comma list)")
	cmd.Flags().StringArrayVar(&f.patches, "patch", nil, "change the destination's set by this file: a strategic merge patch or a JSON patch (repeatable; they come after those of the Migration)")
	cmd.Flags().StringSliceVar(&f.empty, "empty", nil, "claim template whose ordinals start without data, because the application replicates it (repeatable, or a comma list)")
	cmd.Flags().StringSliceVar(&f.ignore, "ignore", nil, "continue in spite of the findings of these checks; the plan records this (repeatable, or a comma list; only checks that can be ignored)")
}

func (a *app) planCommand() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan SET | plan -f FILE",
		Short: "Say what a move would do, per ordinal, and write nothing",
		Example: `  stsmigrate plan web -n shop --to-namespace shop-new
  stsmigrate plan web -n shop --context east --to-context west --out web.yaml
  stsmigrate plan web -n shop --to-context west --patch west.yaml --out web.yaml
  stsmigrate plan -f migration.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.makePlan(cmd.Context(), f, args)
		},
	}
	f.addTo(cmd)
	cmd.Flags().StringVar(&f.out, "out", "", "also write the plan to this file, for apply")
	cmd.Flags().BoolVar(&f.detailed, "detailed-exitcode", false, "exit with 2 when the plan has something to do")
	a.outputFlag(cmd)
	return cmd
}

func (a *app) outputFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&a.output, "output", "o", "", output.Forms)
}

func (a *app) makePlan(ctx context.Context, f planFlags, args []string) error {
	p, report, err := a.checked(ctx, f, args)
	if err != nil {
		return err
	}
	if err := a.judge(report); err != nil {
		return err
	}
	if f.out != "" {
		raw, err := plans.Encode(p)
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.out, raw, 0o600); err != nil {
			return fmt.Errorf("writing the plan: %w", err)
		}
	}
	text := func() string { return plans.Render(p, journal.New(p).Leg) + common(report) + goOn(f.out) }
	if err := a.show(output.Document{Value: p, Text: text, Names: []string{"plan/" + p.Name}}); err != nil {
		return err
	}
	if f.detailed {
		return exitCode{code: exitChanges}
	}
	return nil
}

// common lists what both clusters must share so that a volume means the same disk in both.
func common(r *preflight.Report) string {
	if len(r.Backends) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nBoth clusters must share the following, which this program cannot verify:\n")
	for _, one := range r.Backends {
		fmt.Fprintf(&b, "  %s: %s\n", one.Driver, one.Share)
	}
	return b.String()
}

func goOn(out string) string {
	if out == "" {
		return "\nNothing has been written. Keep the plan with --out FILE, then `stsmigrate apply FILE`.\n"
	}
	return fmt.Sprintf("\nNothing has been written to the clusters. Next: stsmigrate apply %s\n", out)
}

// checked makes a plan and runs every check on it.
func (a *app) checked(ctx context.Context, f planFlags, args []string) (*plans.Plan, *preflight.Report, error) {
	set, err := a.request(&f, args)
	if err != nil {
		return nil, nil, err
	}
	if err := a.knownOutput(); err != nil {
		return nil, nil, err
	}
	if f.ignore, err = preflight.Ignorable(f.ignore); err != nil {
		return nil, nil, fmt.Errorf("--ignore: %w", err)
	}
	source, destination, err := a.reach.Both()
	if err != nil {
		return nil, nil, err
	}
	patches, err := a.patches(f)
	if err != nil {
		return nil, nil, err
	}
	p, on, err := a.draft(ctx, set, f, patches, source, destination)
	if err != nil {
		return nil, nil, err
	}
	report, err := preflight.Check(ctx, p, on, nil, nil)
	return p, report, err
}

// request returns the set to move. A Migration file fills in the flags that the user did not give.
func (a *app) request(f *planFlags, args []string) (set string, err error) {
	switch {
	case f.file == "" && len(args) == 1:
		kind, name := plans.SetOf(args[0])
		return name, f.setKinds(kind, f.toKind)
	case f.file == "":
		return "", fmt.Errorf("name the StatefulSet to move, or give a Migration with -f")
	case len(args) == 1:
		return "", fmt.Errorf("the StatefulSet is named twice: by %q and by -f %s", args[0], f.file)
	}
	raw, err := a.read(f.file)
	if err != nil {
		return "", err
	}
	m, err := plans.DecodeMigration(raw)
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.file, err)
	}
	fill := func(flag *string, value string) {
		if *flag == "" {
			*flag = value
		}
	}
	a.reach.FillFrom(m.Spec.Source, m.Spec.Destination.Place)
	fill(&f.name, m.Metadata.Name)
	fill(&f.names, string(m.Spec.Names))
	f.inFile = m.Spec.Destination.Patches
	if f.maxUnavailable == 0 {
		f.maxUnavailable = m.Spec.MaxUnavailable
	}
	if f.window == 0 {
		f.window = m.Spec.Window
	}
	f.storage = m.Spec.Storage
	if len(f.empty) == 0 {
		f.empty = m.Spec.Empty
	}
	if len(f.ignore) == 0 {
		f.ignore = m.Spec.Ignore
	}
	f.gates = m.Spec.Gates
	fill(&f.toKind, m.Spec.Destination.Kind)
	return m.Spec.Source.Name, f.setKinds(m.Spec.Source.Kind, f.toKind)
}

// setKinds sets the kinds of the two sets. The destination's kind is the source's unless it is named.
func (f *planFlags) setKinds(from, to string) error {
	if to == "" {
		to = from
	}
	f.kinds = map[plans.Side]string{}
	for side, word := range map[plans.Side]string{plans.Source: from, plans.Destination: to} {
		kind, err := plans.KindOf(word)
		if err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
		f.kinds[side] = kind
	}
	return nil
}

// patches reads the patch files: first those of the Migration, relative to its folder, then those of the
// flags.
func (a *app) patches(f planFlags) ([]plans.Patch, error) {
	all := slices.Clone(f.inFile)
	for _, file := range f.patches {
		all = append(all, plans.Patch{Path: file})
	}
	for i := range all {
		if all[i].Path == "" {
			continue
		}
		file := all[i].Path
		if i < len(f.inFile) && !filepath.IsAbs(file) && f.file != "-" {
			file = filepath.Join(filepath.Dir(f.file), file)
		}
		raw, err := a.read(file)
		if err != nil {
			return nil, fmt.Errorf("reading a patch: %w", err)
		}
		all[i].Patch = string(raw)
	}
	return all, nil
}

func (a *app) draft(ctx context.Context, set string, f planFlags, patches []plans.Patch, source, destination *reach.End) (*plans.Plan, clusters.Clusters, error) {
	refs := map[plans.Side]plans.Ref{}
	for i, e := range []*reach.End{source, destination} {
		side := plans.Sides()[i]
		uid, err := clusters.ClusterUID(ctx, e.Client)
		if err != nil {
			return nil, nil, fmt.Errorf("%s (context %s): %w", side, e.Context, err)
		}
		refs[side] = plans.Ref{Cluster: uid, Context: e.Context, Namespace: e.Namespace, Name: set, Kind: f.kinds[side]}
	}
	on := clusters.Clusters{plans.Source: source.Client, plans.Destination: destination.Client}.InTheWordsOf(refs).Listed(&plans.Plan{Source: refs[plans.Source], Destination: refs[plans.Destination]})
	r := plans.Spec{
		Destination: plans.Target{Patches: patches}, MaxUnavailable: f.maxUnavailable, Window: f.window, Names: plans.NameMode(f.names),
		Ignore: f.ignore, Empty: f.empty, Storage: f.storage, Gates: f.gates,
	}
	for from, to := range f.classes {
		if r.Storage.Classes == nil {
			r.Storage.Classes = map[string]string{}
		}
		r.Storage.Classes[from] = to
	}
	p, err := preflight.Draft(ctx, on, refs[plans.Source], refs[plans.Destination], f.name, rand.String(6), r)
	if err != nil {
		return nil, on, err
	}
	p.Made = &plans.Made{At: metav1.Time{Time: a.now().UTC().Truncate(time.Second)}, By: clusters.User(ctx, destination.Client)}
	return p, on, p.Seal()
}

func oneLine(s string) string { return plans.Line(s) }

func (a *app) read(file string) ([]byte, error) {
	if file == "-" {
		return readAll(a.In)
	}
	return os.ReadFile(file) //nolint:gosec // the person names the file
}

func (a *app) knownOutput() error { return output.Check(a.output) }

// print writes a value in the form that the user asked for.
func (a *app) print(v any, text func() string) error {
	return a.show(output.Document{Value: v, Text: text})
}

func (a *app) show(d output.Document) error { return output.Print(a.Out, a.output, d) }
