// Package faults stands between a program and API servers, and lets one write of the program go wrong: the program
// dies, sleeps through it, is refused, or learns nothing of a write that has happened. The program is the real one,
// and so are the API servers.
package faults

import (
	"net/http"
	"strconv"
)

// Kind is what happens at a write.
type Kind string

const (
	// DiesBefore kills the program, and the write does not happen.
	DiesBefore Kind = "dies before it"
	// DiesAfter kills the program when the write has happened, before it learns of it.
	DiesAfter Kind = "dies after it"
	// DiesAnswered kills the program at its next request after the answer.
	DiesAnswered Kind = "dies once answered"
	// Conflicts answers 409, once, and the write does not happen.
	Conflicts Kind = "is refused with 409"
	// Throttled answers 429, once, and the write does not happen.
	Throttled Kind = "is refused with 429"
	// Fails answers 500, once, and the write does not happen.
	Fails Kind = "is refused with 500"
	// Unavailable answers 503, once, and the write does not happen.
	Unavailable Kind = "is refused with 503"
	// Forbidden answers 403, once, and the write does not happen.
	Forbidden Kind = "is refused with 403"
	// TimesOut answers 504 to a write that has happened.
	TimesOut Kind = "times out and has happened"
	// Breaks breaks the connection after the write has happened.
	Breaks Kind = "has happened, and the connection breaks"
	// Parts makes the API server unreachable from the write on, for some seconds.
	Parts Kind = "finds the cluster away"
	// Sleeps stops the program while the write is on its way. It arrives when Release is called.
	Sleeps Kind = "arrives when another process has gone on"
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{DiesBefore, DiesAfter, DiesAnswered, Conflicts, Throttled, Fails, Unavailable, Forbidden, TimesOut, Breaks, Parts, Sleeps}
}

// refusal returns the status with which a kind answers in place of the API server; 0 for none.
func (k Kind) refusal() int {
	return map[Kind]int{
		Conflicts: http.StatusConflict, Throttled: http.StatusTooManyRequests, Fails: http.StatusInternalServerError,
		Unavailable: http.StatusServiceUnavailable, Forbidden: http.StatusForbidden, TimesOut: http.StatusGatewayTimeout,
	}[k]
}

// reason returns the one that an API server gives with a status.
func reason(status int) string {
	return map[int]string{
		http.StatusConflict: "Conflict", http.StatusTooManyRequests: "TooManyRequests", http.StatusInternalServerError: "InternalError",
		http.StatusServiceUnavailable: "ServiceUnavailable", http.StatusForbidden: "Forbidden", http.StatusGatewayTimeout: "Timeout",
	}[status]
}

// refuse answers as an API server does.
func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	// A client that is gone reads no answer.
	_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"refused by the test","reason":"` + reason(status) + `","code":` + strconv.Itoa(status) + `}`))
}
