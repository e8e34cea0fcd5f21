// Package doctor says which sets of a namespace or of a cluster could move as they are, which not and why, with whatever
// rights a user has. It writes nothing. The checks are those of a plan.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stsmigrate/stsmigrate/cmd/internal/output"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Options are what the command needs of the program.
type Options struct {
	Reach *reach.Flags
	// Out gets the answer, and ErrOut what else there is to say.
	Out, ErrOut io.Writer
	Now         func() time.Time
	After       func(time.Duration) <-chan time.Time
	// Output is the form that -o asks for.
	Output *string
	// Refuses is the error with which the command ends if a set could not move.
	Refuses error
}

// asked is what a user asks for.
type asked struct {
	Options

	all      bool
	selector string
	names    []string
}

// atOnce is how many namespaces are looked at concurrently: what is listed of so many is in memory.
const atOnce = 4

// Command returns the command.
func Command(o Options) *cobra.Command {
	a := asked{Options: o}
	cmd := &cobra.Command{
		Use:   "doctor [SET...]",
		Short: "Say which sets could move as they are, which not and why, and write nothing",
		Long: `Say of every set of a namespace, or with -A of a cluster, whether it could move as it is, why
not, and about how long it would take. Nothing is written, and no destination is needed: the checks
that are asked are those of "check" that hold for whatever other namespace the set moves to, which the
findings call "elsewhere". With --to-context or --to-namespace every check is asked, of that destination
and with its dry runs.

Whatever rights you have will do. What you may not look at is listed, once for each right, and the sets
of which it cannot be told therefore are "unknown". Sets that move only "here" have volumes that mean
nothing in another cluster. SET is NAME, NAMESPACE/NAME or stss/NAME; of one set, every finding is shown.
Exit code 0 says that all of the sets could move, 3 that some could not or that it cannot be told.`,
		Example: `  stsmigrate doctor -A
  stsmigrate doctor -n shop -l app=web
  stsmigrate doctor shop/web
  stsmigrate doctor -n shop --to-context west`,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.names = args
			return a.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&a.all, "all-namespaces", "A", false, "look at the sets of all namespaces")
	cmd.Flags().StringVarP(&a.selector, "selector", "l", "", "look only at the sets with these labels, as kubectl selects them")
	cmd.Flags().StringVarP(o.Output, "output", "o", "", output.Forms)
	return cmd
}

// check returns an error for what excludes one another.
func (a *asked) check() (labels.Selector, error) {
	switch {
	case len(a.names) > 0 && a.all:
		return nil, errors.New("-A is about all sets: leave out " + strings.Join(a.names, " ") + ", or name the set as NAMESPACE/NAME")
	case len(a.names) > 0 && a.selector != "":
		return nil, errors.New("-l selects sets, and " + strings.Join(a.names, " ") + " names them: leave one of them out")
	}
	if err := output.Check(*a.Output); err != nil {
		return nil, err
	}
	selector, err := labels.Parse(a.selector)
	if err != nil {
		return nil, fmt.Errorf("-l %s: %w", a.selector, err)
	}
	return selector, nil
}

func (a *asked) run(ctx context.Context) error {
	selector, err := a.check()
	if err != nil {
		return err
	}
	p, err := a.patient()
	if err != nil {
		return err
	}
	done := program.Patience{To: a.ErrOut, After: a.After}.Busy("Reading the sets and asking the checks")
	defer done()
	d, err := a.diagnose(ctx, p, selector)
	if err != nil {
		return err
	}
	done()
	if err := output.Print(a.Out, *a.Output, d.document(p, a.names, program.Width(a.Out))); err != nil {
		return err
	}
	if d.Movable != d.Total {
		return a.Refuses
	}
	return nil
}

// patient is the cluster that is looked at, and where its sets would move, if that is asked.
type patient struct {
	*reach.End

	to *reach.End // nil without a destination
	// toNamespace is the namespace there, or "" for that of each set.
	toNamespace string
	now         func() time.Time
}

func (a *asked) patient() (p patient, err error) {
	namespace, destined := reach.Destined(a.Reach)
	p.now = a.Now
	if !destined {
		p.End, err = a.Reach.Single()
		return p, err
	}
	p.toNamespace = namespace
	p.End, p.to, err = a.Reach.Both()
	return p, err
}

// diagnose looks at the sets that are asked for.
func (a *asked) diagnose(ctx context.Context, p patient, selector labels.Selector) (*Diagnosis, error) {
	d := &Diagnosis{APIVersion: plans.APIVersion, Kind: "Diagnosis", Context: p.Context, Items: []Set{}}
	refs, err := a.refs(ctx, p, selector, d)
	if err != nil {
		return nil, err
	}
	if len(refs) == 0 {
		a.nothing(p)
	}
	groups := byNamespace(refs)
	found := make([][]Set, len(groups))
	many := clusters.NewMany(p.Client)
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for n, group := range groups {
		g.Go(func() (err error) {
			defer plans.RecoverPanic(&err)
			on := many.Namespace(group[0].Namespace)
			for _, ref := range group {
				s, err := p.examine(within, clusters.InWordsOf(on, ref), ref)
				if err != nil {
					return fmt.Errorf("%s: %w", ref.Set(), allowed(err))
				}
				if s == nil && len(a.names) > 0 {
					return fmt.Errorf("%s does not exist: check name, --namespace and --context; `stsmigrate doctor%s%s` shows which sets there are", ref.Set(), program.Given("-n", ref.Namespace), p.Flags)
				}
				if s != nil { // else it was deleted meanwhile
					found[n] = append(found[n], *s)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	d.add(slices.Concat(found...))
	return d, nil
}

// nothing says that there are no sets.
func (a *asked) nothing(p patient) {
	where, like := "in namespace "+p.Namespace+" of "+p.Name(), ""
	if a.all {
		where = "in " + p.Name()
	}
	if a.selector != "" {
		like = " with labels " + a.selector
	}
	fmt.Fprintf(a.ErrOut, "There are no sets%s %s.\n", like, where)
}

// byNamespace returns the sets in groups, each of one namespace.
func byNamespace(refs []plans.Ref) [][]plans.Ref {
	var out [][]plans.Ref
	at := map[string]int{}
	for _, r := range refs {
		n, known := at[r.Namespace]
		if !known {
			n = len(out)
			at[r.Namespace], out = n, append(out, nil)
		}
		out[n] = append(out[n], r)
	}
	return out
}

// named returns the set that a user has typed as NAME, NAMESPACE/NAME, stss/NAME or NAMESPACE/stss/NAME.
func named(typed string, at plans.Ref) (plans.Ref, error) {
	part := strings.Split(typed, "/")
	at.Name, part = part[len(part)-1], part[:len(part)-1]
	err := error(nil)
	if n := len(part) - 1; n >= 0 && part[n] != "" {
		if kind, unknown := plans.KindOf(part[n]); unknown == nil {
			at.Kind, part = kind, part[:n]
		}
	}
	switch len(part) {
	case 0:
	case 1:
		at.Namespace = part[0]
	default:
		err = errors.New("too many parts")
	}
	if name := at.Name; err != nil || len(validation.IsDNS1123Subdomain(name)) > 0 || len(validation.IsDNS1123Label(at.Namespace)) > 0 {
		return at, fmt.Errorf("%q: expected NAME, NAMESPACE/NAME or stss/NAME", typed)
	}
	return at, nil
}

// checks returns what the catalogue says of a check.
func checks() map[string]preflight.Description {
	out := map[string]preflight.Description{}
	for _, d := range preflight.Described() {
		out[d.Name] = d
	}
	return out
}
