// Package refusals tells refusals of an API server that may pass from those that will not.
package refusals

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Counter counts how often in a row the API server has permanently refused something (L3). A request
// without an answer is not refused, however long it takes.
type Counter struct {
	times int
	since time.Time
}

const (
	// maxPermanentFailures is how often a permanently refused request is tried before
	// the plan is blocked (L3).
	maxPermanentFailures = 5
	// startupGrace is how long a refusal may pass by itself: an API server that has just started knows
	// neither Roles nor identities yet.
	startupGrace = time.Minute
)

// GiveUp records how an attempt has ended, and reports whether another attempt is useless. A forbidden
// request may be allowed after a while. renewed reports that credentials are renewed, so that an
// unknown caller becomes known.
func (r *Counter) GiveUp(err error, renewed bool, now time.Time) bool {
	if errors.As(err, new(plans.Panic)) {
		return true // it would fail again
	}
	if !permanent(err) {
		*r = Counter{}
		return false
	}
	if r.times++; r.times == 1 {
		r.since = now
	}
	unknown := apierrors.IsUnauthorized(err)
	passing := unknown && renewed || (unknown || apierrors.IsForbidden(err)) && now.Sub(r.since) < startupGrace
	return r.times >= maxPermanentFailures && !passing
}

func permanent(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsUnauthorized(err)
}
