package sets

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/sets/copies"
	"github.com/stsmigrate/stsmigrate/plans"
)

// equalFor is how long what pods name counts as the same on both sides (S19), as the checks of a wave do.
const equalFor = 5 * time.Second

// reread is how often an object that differs is read again: no watch tells of it.
const reread = 5 * time.Second

// Twice remembers when what pods name was last the same on both sides.
type Twice struct {
	// Now is the clock of the process. While it says nothing, every answer is too old.
	Now   func() time.Time
	lock  sync.Mutex
	since time.Time
}

// Void makes the next look compare again.
func (t *Twice) Void() {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.since = time.Time{}
}

// equal reports whether what pods name was the same just now, and what the time is.
func (t *Twice) equal() (now time.Time, is bool) {
	if t == nil || t.Now == nil {
		return now, false
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	now = t.Now()
	return now, !t.since.IsZero() && clusters.Within(equalFor, t.since, now)
}

// note keeps that what pods name was the same at that time.
func (t *Twice) note(at time.Time) {
	if t == nil || at.IsZero() {
		return
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	t.since = at
}

// alike holds a wave whose pods would start with something else on the side that receives them (S18). An ordinal that is
// down leaves with another password, which is what users abort from, and not with another version of its application.
func (w comparison) alike(ctx context.Context, m plans.StepContext, from, to *appsv1.StatefulSet, serves bool) (plans.Observation, error) {
	if s, err := w.otherTemplate(ctx, m, from, to); err != nil || s.Standing != plans.After || !serves {
		return s, err
	}
	return w.otherCopies(ctx, m)
}

// otherCopies holds a wave that serves while an object that its pods name is not the same on both sides: a password that
// was rotated on the side that they leave, which the data may need, or one that was rotated on the other side after it was
// copied (S18). Which of the two is right only the user knows, so nothing is written. After, if there is nothing to hold
// for.
func (w comparison) otherCopies(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	now, equal := w.twice.equal()
	if equal {
		return plans.Done(), nil
	}
	compared, err := copies.Compare(ctx, w.Pair)
	if err != nil {
		return plans.Observation{}, err
	}
	if len(compared.Unread) > 0 { // what cannot be compared holds
		return plans.Observation{}, fmt.Errorf("comparing what the pods name on both sides: %w", compared.Unread[0].Err)
	}
	found := compared.Differ
	if len(found) == 0 {
		w.twice.note(now)
	}
	found = slices.DeleteFunc(found, func(f copies.Difference) bool { return slices.Contains(m.Copies, f.Word(m.From)) })
	if len(found) == 0 {
		return plans.Done(), nil
	}
	var words, says []string
	for _, f := range found {
		words, says = append(words, f.Word(m.From)), append(says, f.Words())
	}
	const most = 3
	if len(says) > most {
		says = append(says[:most], fmt.Sprintf("and %d more, which verify lists", len(found)-most))
	}
	wait := plans.Wait(reasons.CopyDiffers, fmt.Sprintf("no ordinal that serves is scaled down until what its pods name is the same on both sides, or until the user lets them start with what the %s has (--other-copy %s): %s; to give %s of the %s what the %s has: %s; the other way round: %s",
		m.To(), strings.Join(words, ","), strings.Join(says, "; "), found[0].Dependency, m.To(), m.From, found[0].Align(m.To()), found[0].Align(m.From)))
	wait.Again = reread
	return wait, nil
}
