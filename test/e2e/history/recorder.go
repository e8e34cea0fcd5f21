package history

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
)

// LogPrefix begins the keys that are written once and read back at the end.
const LogPrefix = "log/"

// Recorder keeps the calls of a client, and what is known about them.
type Recorder struct {
	mu    sync.Mutex
	calls []Call
	state State
}

// Look up names from now on: each of them is reported, even if it never answers.
func (r *Recorder) Look(names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Names = map[string]*Name{}
	for _, n := range names {
		r.state.Names[n] = &Name{}
	}
}

// Looked records the outcome of one lookup.
func (r *Recorder) Looked(name string, at time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Names[name].Note(at, err)
}

// Called records a call that ends now. A call with an error has no end: it may have had an effect.
func (r *Recorder) Called(call Call, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Calls++
	if err == nil {
		call.Ended = time.Now().UnixNano()
	} else {
		r.state.Failures++
		r.state.Last = err.Error()
	}
	r.calls = append(r.calls, call)
}

// Compare counts the acknowledged writes, and those of them that are not among the keys that are
// there.
func (r *Recorder) Compare(there map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Lost, r.state.Acknowledged = nil, 0
	for _, call := range r.calls {
		if call.Kind != Write || call.Ended == 0 {
			continue
		}
		r.state.Acknowledged++
		if strings.HasPrefix(call.Key, LogPrefix) && !there[call.Key] {
			r.state.Lost = append(r.state.Lost, call.Key)
		}
	}
}

// ServeState answers with the state.
func (r *Recorder) ServeState(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = json.NewEncoder(w).Encode(&r.state)
}

// ServeHistory answers with every call.
func (r *Recorder) ServeHistory(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = json.NewEncoder(w).Encode(r.calls)
}
