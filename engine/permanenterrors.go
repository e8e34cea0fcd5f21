package engine

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/plans"
)

// PermanentErrors counts how often in a row the API server has refused something for good (L3). What is not
// answered at all is no refusal, however long it takes.
type PermanentErrors struct {
	times int
	since time.Time
}

const (
	// maxPermanentFailures is how often something is tried that the API server refuses for good
	// before a person is asked (L3).
	maxPermanentFailures = 5
	// startupGrace is for how long a refusal may pass by itself: an API server that has just been started knows
	// no Roles yet, nor who anybody is.
	startupGrace = time.Minute
)

// GiveUp notes how an attempt has ended, and says whether to try once more is of no use. Who may not do
// something may be allowed to in a while; renewed says that credentials are renewed, so that one who is not
// known will be.
func (r *PermanentErrors) GiveUp(err error, renewed bool, now time.Time) bool {
	if errors.As(err, new(plans.Panic)) {
		return true // it would fail again
	}
	if !permanent(err) {
		*r = PermanentErrors{}
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
