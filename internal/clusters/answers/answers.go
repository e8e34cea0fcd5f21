// Package answers tells what a refusal by an API server means: a decision, or an answer that may pass by itself. It is
// the one place that does. How long an answer that may pass is waited for is said in one place too (internal/engine/refusals).
package answers

import (
	"errors"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

// FullQuota is in the words of a quota that has no room for an object.
const FullQuota = "exceeded quota"

// Meaning is what an error of a request means.
type Meaning int

const (
	// Unanswered means that nothing was decided: no answer, a server that is overloaded or fails, or an error
	// that is not of a request. It is an outage, however long it lasts.
	Unanswered Meaning = iota
	// Passing means that an API server answers, and may answer otherwise in a moment, by itself: one that has just
	// started knows neither Roles nor tokens nor kinds yet.
	Passing
	// Decided means that the API server has looked at the object and does not take it: it is not valid, or a webhook,
	// a policy or a quota refuses it.
	Decided
)

// Of returns what an error means. A refusal whose words are not known counts as Passing: nothing is lost by a longer wait.
func Of(err error) Meaning {
	var itself interface{ MayPass() bool }
	switch {
	case err == nil:
		return Unanswered
	case errors.As(err, &itself) && itself.MayPass(), NoLogin(err), meta.IsNoMatchError(err):
		return Passing
	case apierrors.IsForbidden(err):
		if admission(err.Error()) {
			return Decided
		}
		return Passing
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return Decided
	}
	return Unanswered
}

// MayPass reports whether nothing may be concluded from an answer: what it refuses may be granted in a moment. A server
// error counts too: who tries something out learns nothing from it.
func MayPass(err error) bool { return err != nil && Of(err) != Decided }

// Reason returns the ID of the reason for which a plan is blocked by an error.
func Reason(err error) reasons.ID {
	switch id := reasons.Of(err); {
	case id != "":
		return id
	case NoLogin(err):
		return reasons.CredentialsExpired
	}
	return reasons.RequestRefusedByAPI
}

// NoLogin reports whether the API server does not know the caller: the login has expired or was revoked, the program that
// should renew it fails, or the client's certificate is not valid any more.
func NoLogin(err error) bool {
	if apierrors.IsUnauthorized(err) {
		return true
	}
	var sent *url.Error
	if !errors.As(err, &sent) || sent.Err == nil {
		return false
	}
	said := sent.Err.Error()
	return strings.Contains(said, "getting credentials: ") || strings.Contains(said, "tls: expired certificate")
}

// admission reports whether a refusal is that of admission, which has looked at the object. What the API server itself
// says before its own admission is ready is none ("not yet ready to handle request", "status unknown for quota"), and
// neither is what the authorizer says.
func admission(said string) bool {
	if strings.Contains(said, "status unknown for quota") {
		return false
	}
	for _, words := range []string{
		"denied the request",                            // webhooks
		"denied request",                                // policies
		FullQuota, "failed quota", "insufficient quota", // quotas
		"violates PodSecurity", "security context constraint",
		" usage per ", // LimitRanges
		"is being terminated",
	} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}
