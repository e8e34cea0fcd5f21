// Package rehearsal sends what a move would write, as far as that can be sent before it begins, as dry runs. The API
// servers check each write like a real one (rights, admission, quotas, validation) and store nothing.
package rehearsal

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/dns"
	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/records"
)

// Outcome is what the API servers have answered.
type Outcome struct {
	Trials []clusters.Trial
	Left   []engine.Unrehearsed
}

// Run tries the writes of a plan: its record and its Lease in the home, what bridges the names, and what every step
// before the first ordinal leaves would write. An error means that a side could not be read.
func Run(ctx context.Context, p *plans.Plan, home client.Client, namespace string, on clusters.Clusters, now func() time.Time) (*Outcome, error) {
	r := clusters.NewRehearsal()
	store := records.NewStore(r.Client(plans.Destination, home), namespace, p.Name)
	out := &Outcome{}
	if err := store.Try(ctx, p, journal.New(p)); err != nil && len(r.Trials) == 0 {
		return nil, err // another plan has the name
	}
	if _, err := store.Acquire(ctx, clusters.Holder(), clusters.Dead, now); err != nil && len(refused(r.Trials)) == 0 {
		return nil, err
	}
	dry := r.Clients(p, on)
	var err error
	if out.Left, err = engine.New(p, store, dry).Rehearse(ctx); err != nil {
		return nil, err
	}
	if len(p.Directories()) > 0 {
		err = dns.Rehearse(ctx, p, dry)
	}
	out.Trials = r.Trials
	return out, err
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
		b.WriteString(program.Wrap(fmt.Sprintf("  not sent: %s: %s", l.Step.Op, plans.Line(l.Why)), width, 4))
	}
	b.WriteString(program.Wrap("What an ordinal needs once it has left (releasing and claiming its volumes in one cluster, scaling the destination up) and what finalize deletes can be sent only then.", width, 0))
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
