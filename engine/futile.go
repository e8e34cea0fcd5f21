package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// sent counts the writes of one step by what they do. The look after a write that had an effect has
// something else to do, or to wait for, so what is sent again and again has none.
type sent struct {
	seq   int
	times map[string]int
}

const (
	// promptResends is how often the same write is sent without a pause: somebody may have been faster (409).
	promptResends = 2
	// maxResends is how often it is sent before a person is asked (L1, L3).
	maxResends = 10
)

// wrote makes pauses between writes that change nothing, and asks a person after a few.
func (r *run) wrote(ctx context.Context, p Progress) (Progress, error) {
	if p.Step.Op.Gated() {
		return p, nil // to ask an application again is no write
	}
	if r.sent.times == nil || r.sent.seq != p.Step.Seq {
		r.sent = sent{p.Step.Seq, map[string]int{}}
	}
	r.sent.times[p.Reason]++
	n := r.sent.times[p.Reason]
	if n <= promptResends {
		return p, nil
	}
	why := r.ineffective()
	if n >= maxResends && p.Kind == Wrote && p.Reason != journalMoved {
		return r.Block(ctx, p.Step, fmt.Sprintf("%s: this was sent %d times and changes nothing: %v; stop what stands against it, then `resume`, or `abort`", p.Reason, n, why))
	}
	r.Report(p, fmt.Errorf("%s: sent again and again, it changes nothing: %w", cmp.Or(p.Reason, "writing the journal"), why))
	pause := time.NewTimer(min(100*time.Millisecond<<min(n-promptResends-1, 10), 10*time.Second))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-r.Stop:
	case <-ctx.Done():
		return p, ctx.Err()
	}
	return p, nil
}

// ineffective says why a write changes nothing, as far as that is known.
func (r *run) ineffective() error {
	if r.answered != nil {
		return fmt.Errorf("the API server answers: %w", r.answered)
	}
	if by := r.others(); by != "" {
		return fmt.Errorf("it is accepted, and set back at once, by a webhook or by one of %s", by)
	}
	return errors.New("it is accepted, and set back at once, most likely by a webhook")
}

// others names who else has written the objects of this plan that the last look was about.
func (r *run) others() string {
	var out []string
	for t, o := range r.reads.Objects {
		if o == nil {
			continue
		}
		if stamp, ok := plans.Stamped(o); !ok || stamp.Plan != r.plan.ID {
			continue
		}
		for _, e := range o.GetManagedFields() {
			if e.Subresource == "" && e.Operation != "" && !ours(e) {
				out = append(out, fmt.Sprintf("%s (%s %s)", e.Manager, t.Kind, t.Name))
			}
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// ours says whether a field manager is one of our programs.
func ours(e metav1.ManagedFieldsEntry) bool { return strings.Contains(e.Manager, "stsmigrate") }
