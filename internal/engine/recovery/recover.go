package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Recovery rebuilds the journal of a plan under way from the marks on its objects. It reads both
// sides live and writes nothing.
type Recovery struct {
	Plan *plans.Plan
	On   clusters.Clusters
	Said Said
}

// Said is what the user states where no mark does.
type Said struct {
	// Who is the user that recovers, for the journal.
	Who string
	// Direction is the direction of the plan; "" for what the marks show.
	Direction plans.Direction
	// Until ends a Move in a split (plans.Limits); nil for none.
	Until *int32
	// KeepNames is copied to the journal.
	KeepNames bool
	// Ended lists pods whose containers have certainly stopped.
	Ended []string
	// Was is the state before the plan, where it is noted nowhere.
	Was plans.Saved
}

// Recovered is a journal that records no more than the marks prove, and what was found,
// one line for each object.
type Recovered struct {
	Journal *journal.Journal
	Found   []string
}

// epochMargin is by how much the epoch and the steps of a recovered journal are above those on the objects: a
// process may have journaled some that are not on any object yet (S9).
const epochMargin = 100

// Look reads the marks, and returns the journal that they prove. If they do not prove enough, it returns an
// error that states what must be added or fixed first.
func (r Recovery) Look(ctx context.Context) (*Recovered, error) {
	w := sets.Steps{Pair: clusters.Pair{Plan: r.Plan, On: r.On}}
	m, err := findMarks(ctx, w)
	if err != nil {
		return nil, err
	}
	if m.marked == 0 {
		return nil, fmt.Errorf("no object of plan %s carries a mark of it: it has not begun, or has come to its end; to begin it, apply its file", r.Plan.Name)
	}
	source, destination, err := m.ranges()
	if err != nil {
		return nil, err
	}
	direction, err := r.direction(m, source, destination)
	if err != nil {
		return nil, err
	}
	b := rebuilding{marks: m, said: r.Said, source: source, destination: destination}
	j := journal.New(r.Plan)
	j.Timeline.Stored = true // what is stored of it has survived the journal
	j.Epoch = m.last.Epoch + epochMargin
	// An abort takes the names away at its end.
	j.KeepNames = r.Said.KeepNames && direction != plans.Abort
	j.BlockedID, j.Blocked = reasons.JournalRebuilt, fmt.Sprintf("recovered from marks by %s; look at it, then resume or abort", r.Said.Who)
	if j.Saved, err = b.saved(); err != nil {
		return nil, err
	}
	if err := b.way(j, direction); err != nil {
		return nil, err
	}
	out := &Recovered{Journal: j, Found: m.tell()}
	if j.Flight == nil || b.landed() {
		return out, nil
	}
	return out, r.pods(ctx, j, out)
}

// direction returns the direction of the plan. The user cannot overrule the marks.
func (r Recovery) direction(m *marks, source, destination plans.Slice) (plans.Direction, error) {
	marked, said := m.direction(source), r.Said.Direction
	saw := fmt.Sprintf("%s has the ordinals %s, %s has %s", r.Plan.Source.Set(), source, r.Plan.Destination.Set(), destination)
	switch {
	case marked == "" && said == "":
		return "", fmt.Errorf("the marks do not show the direction of plan %s (%s): set --direction to move, abort or finalize, as last requested", r.Plan.Name, saw)
	case marked == "":
		marked = said
	case said != "" && said != marked:
		return "", fmt.Errorf("the marks show that plan %s was on direction %s (%s), not %s: omit --direction; after the recovery the direction can be changed", r.Plan.Name, marked, saw, said)
	}
	switch {
	case marked == plans.Finalize && destination != r.Plan.Ordinals():
		return "", fmt.Errorf("%s, and plan %s is stated to be on direction %s: not every ordinal is on the destination, and nothing is recovered; find the writer that scaled the sets, and set them back", saw, r.Plan.Name, marked)
	case marked == plans.Abort && m.sets[plans.Source] == nil:
		return "", fmt.Errorf("%s does not exist, and plan %s was being aborted, back to it: first recreate it as it was, with the ordinals %s", r.Plan.Source.Set(), r.Plan.Name, source)
	}
	return marked, nil
}

// pods records what can still be found of the pods of the wave, for Vacate. It returns an error if nothing
// proves that they have ended: then the user must state it.
func (r Recovery) pods(ctx context.Context, j *journal.Journal, out *Recovered) error {
	step, _, _ := j.Next(r.Plan)
	if j.Flight.From != step.From || !step.Op.Leaves() {
		return nil
	}
	var errs []error
	for o := range j.Flight.Ordinals.All() {
		name := r.Plan.Pod(j.Flight.From, o)
		pod, why, err := storage.LastSeen(ctx, r.Plan, r.On, j.Flight.From, o, j.Flight.Of(o))
		switch {
		case err != nil:
			return err
		case why != "" && slices.Contains(r.Said.Ended, name):
			pod = plans.Pod{Ordinal: o, Stopped: "its containers have stopped, as the user has confirmed (recover --ended)"}
		case why != "":
			errs = append(errs, fmt.Errorf("%s: fix that, or make certain that its containers have stopped, and confirm it with --ended %s", why, name))
		}
		j.Flight.Put(pod)
		switch {
		case pod.Stopped != "":
			out.Found = append(out.Found, fmt.Sprintf("pod %s of the %s: gone; %s; a node that was deleted since cannot be seen", name, j.Flight.From, pod.Stopped))
		case pod.UID != "":
			out.Found = append(out.Found, fmt.Sprintf("pod %s of the %s: still there, on node %q", name, j.Flight.From, pod.Node))
		case pod.Node == "":
			out.Found = append(out.Found, fmt.Sprintf("pod %s of the %s: gone; no object tells on which node it ran", name, j.Flight.From))
		default:
			out.Found = append(out.Found, fmt.Sprintf("pod %s of the %s: gone; its volumes were last used on node %s, which has to prove that it has ended", name, j.Flight.From, pod.Node))
		}
	}
	return errors.Join(errs...)
}
