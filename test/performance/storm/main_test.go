package main

import (
	"testing"
	"time"
)

// TestASmallStorm runs everything that `make storm` does, with fewer plans and earlier events.
func TestASmallStorm(t *testing.T) {
	o := options{plans: 5, pods: 2, processes: 2, watched: 5, qps: 50, waves: 2, memory: 512, every: 6 * time.Second, renew: time.Second, fail: 5 * time.Second, outage: 5 * time.Second, seed: 1}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// Where no policy keeps a tenant from forging journals, the orchestrators read them, and reject every plan
// without consent.
func TestWhatATenantForgesIsRefusedByTheOrchestrators(t *testing.T) {
	o := options{plans: 1, pods: 2, processes: 2, watched: 1, qps: 50, waves: 2, memory: 512, seed: 1, open: true}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}
