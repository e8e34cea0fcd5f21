package orchestrator

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Refusals counts how often in a row the API server has refused something for good (L3). What is not
// answered at all is no refusal, however long it takes.
type Refusals struct {
	times int
	since time.Time
}

const (
	// patience is how often something is tried that the API server refuses for good
	// before a person is asked (L3).
	patience = 5
	// awhile is for how long a refusal may pass by itself.
	awhile = time.Minute
)

// Final notes how an attempt has ended, and says whether to try once more is of no use. An answer
// that is usually final may be so for a while only where nobody waits for it, which renewed says:
// credentials are renewed, and an API server that has just been started knows no Roles yet.
func (r *Refusals) Final(err error, renewed bool, now time.Time) bool {
	if !permanent(err) {
		*r = Refusals{}
		return false
	}
	if r.times++; r.times == 1 {
		r.since = now
	}
	passing := renewed && (apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) && now.Sub(r.since) < awhile)
	return r.times >= patience && !passing
}

func permanent(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsUnauthorized(err)
}
