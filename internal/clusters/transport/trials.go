package transport

import (
	"net/http"

	"github.com/stsmigrate/stsmigrate/internal/writes"
)

// tried says in the address of a deletion that is only tried that it is a dry run. The body says so too. An API server reads
// the address only if there is no body: something between may have dropped it, and the deletion would be a real one.
func tried(r *http.Request) *http.Request {
	if r.Method != http.MethodDelete || !writes.IsTrial(r.Context()) {
		return r
	}
	out := r.Clone(r.Context())
	query := out.URL.Query()
	query.Set("dryRun", "All")
	out.URL.RawQuery = query.Encode()
	return out
}
