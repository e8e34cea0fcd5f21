// Package refusals says for how long a refusal of an API server is waited for.
package refusals

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Counter counts how often in a row the API server has refused something (L3). A request without an answer is not
// refused, however long it takes.
type Counter struct {
	times int
	since time.Time
}

const (
	// maxRefusals is how often a refused request is tried before the plan is blocked (L3).
	maxRefusals = 5
	// admissionGrace is how long a webhook, a policy or a quota may refuse at least: it may have started with its
	// API server.
	admissionGrace = time.Minute
)

// Rule is how a run waits.
type Rule struct {
	// Patience is how long an answer that may pass by itself is waited for: as long as anything else that a step
	// waits for. With an ordinal in flight it is waited for longer still, and reported after that time (L3).
	Patience time.Duration
	// Renewed reports that credentials are renewed, so that an unknown caller becomes known.
	Renewed bool
}

// GiveUp records how an attempt has ended, and reports whether another attempt is useless, as far as one can tell.
func (r *Counter) GiveUp(err error, rule Rule, now time.Time) bool {
	if errors.As(err, new(plans.Panic)) {
		return true // it would fail again
	}
	meaning := answers.Of(err)
	if meaning == answers.Unanswered {
		*r = Counter{}
		return false
	}
	if r.times++; r.times == 1 {
		r.since = now
	}
	return r.times >= maxRefusals && r.lasts(err, meaning, rule, now)
}

// lasts reports whether the refusals have lasted for long enough to be believed.
func (r *Counter) lasts(err error, meaning answers.Meaning, rule Rule, now time.Time) bool {
	took := now.Sub(r.since)
	switch {
	case meaning == answers.Decided && apierrors.IsForbidden(err):
		return took >= admissionGrace
	case meaning == answers.Decided:
		return true
	case rule.Renewed && answers.NoLogin(err):
		return false
	}
	return took >= rule.Patience
}
