// Package rehearsal sends what a move would write, as far as that can be sent before it begins, as dry runs. The API
// servers check each write like a real one (rights, admission, quotas, validation) and store nothing.
package rehearsal

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Outcome is what the API servers have answered.
type Outcome struct {
	Trials []clusters.Trial
	Left   []engine.Unrehearsed
	// Later says what can be tried only later.
	Later string
}

// Ends are where a plan is stored, and its two sides.
type Ends struct {
	Home      client.Client
	Namespace string
	On        clusters.Clusters
}

// Run tries the writes of a plan: its record and its Lease in the home, what bridges the names, and what every step
// before the first ordinal leaves would write. An error means that a side could not be read.
func Run(ctx context.Context, p *plans.Plan, to Ends, now func() time.Time) (*Outcome, error) {
	r, out := clusters.NewRehearsal(), &Outcome{Later: "What an ordinal needs once it has left (releasing and claiming its volumes in one cluster, scaling the destination up) and what finalize deletes can be sent only then."}
	store := records.NewStore(r.Client(plans.Destination, to.Home), to.Namespace, p.Name)
	if err := store.Try(ctx, p, journal.New(p)); err != nil && len(r.Trials) == 0 {
		return nil, err // another plan has the name
	}
	if _, err := store.Acquire(ctx, clusters.Holder(), clusters.Dead, now); err != nil && len(refused(r.Trials)) == 0 {
		return nil, err
	}
	dry := r.Clients(p, to.On)
	var err error
	if out.Left, err = engine.New(p, store, dry).Rehearse(ctx, nil); err != nil {
		return nil, err
	}
	if len(p.Directories()) > 0 {
		err = dns.Rehearse(ctx, p, dry)
	}
	out.Trials = r.Trials
	return out, err
}

// Turn tries what a process would write that takes a stored plan over for a command: its Lease, the journal (which set
// changes first, if it is not nil), the stamps on what earlier processes may still write, and the steps up to the next
// ordinals that have to stop. checks gives the engine those of a wave. An error means that a side could not be read, or that
// the command has no meaning.
func Turn(ctx context.Context, p *plans.Plan, to Ends, now func() time.Time, set func(*journal.Journal) error, w plans.Command, checks func(*engine.Engine)) (*Outcome, error) {
	r, out := clusters.NewRehearsal(), &Outcome{Later: "What follows after these can be sent only then, and nothing is ever deleted as a dry run."}
	store := records.NewStore(r.Client(plans.Destination, to.Home), to.Namespace, p.Name)
	try := func() error {
		if _, err := store.Acquire(ctx, clusters.Holder(), clusters.Dead, now); err != nil {
			return err
		}
		if set != nil {
			if err := store.Change(ctx, p, set); err != nil {
				return err
			}
		}
		var err error
		e := engine.New(p, store, r.Clients(p, to.On))
		checks(e)
		out.Left, err = e.Rehearse(ctx, &w)
		return err
	}
	if err := try(); err != nil && len(refused(r.Trials)) == 0 {
		return nil, err
	}
	out.Trials = r.Trials
	return out, nil
}

func refused(all []clusters.Trial) (out []clusters.Trial) {
	for _, t := range all {
		if t.Refused != nil {
			out = append(out, t)
		}
	}
	return out
}

// Refused returns the writes that an API server would not accept.
func (o *Outcome) Refused() []clusters.Trial { return refused(o.Trials) }

// Held returns why the plan would not go on, or "".
func (o *Outcome) Held() string {
	for _, l := range o.Left {
		if l.Held {
			return l.Why
		}
	}
	return ""
}

// Text says what was tried, one line for each refused object, and what could not be tried.
func (o *Outcome) Text(width int) string {
	var b strings.Builder
	counts := map[plans.Side]int{}
	for _, t := range o.Trials {
		counts[t.Cluster]++
	}
	var both []string
	for _, side := range plans.Sides() {
		if counts[side] > 0 {
			both = append(both, fmt.Sprintf("%d on the %s", counts[side], side))
		}
	}
	no := o.Refused()
	fmt.Fprintf(&b, "\nSent as dry runs: %s (%s); refused: %d.\n", count(len(o.Trials), "write"), strings.Join(both, ", "), len(no))
	for _, t := range no {
		b.WriteString(program.Wrap(fmt.Sprintf("  REFUSED %s %s on the %s: %s", t.Verb, object(t), t.Cluster, plans.Line(t.Refused.Error())), width, 10))
	}
	for _, l := range o.Left {
		what := "not sent"
		if l.Held {
			what = "HELD"
		}
		b.WriteString(program.Wrap(fmt.Sprintf("  %s: %s: %s", what, l.Step.Op, plans.Line(l.Why)), width, 4))
	}
	b.WriteString(program.Wrap(o.Later, width, 0))
	return b.String()
}

func object(t clusters.Trial) string {
	if t.Namespace == "" {
		return t.Kind + " " + t.Name
	}
	return t.Kind + " " + t.Namespace + "/" + t.Name
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
