package records

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
)

// All peers name the same one for a key, the keys are shared, and those of a peer that dies go to the others while
// theirs stay.
func TestPeersAgreeOnWhoComesFirst(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	names := []string{"a_1", "b_1", "c_1"}
	var peers []*Peers
	var beats []*Heartbeat
	for _, name := range names {
		peers, beats = append(peers, NewPeers(c, "stsmigrate", name, now)), append(beats, NewHeartbeat(c, c, "stsmigrate", name, "test", now))
	}
	firsts := func(live int) map[string]string {
		t.Helper()
		for range 4 { // longer than a Lease lasts
			for k := range live {
				if err := beats[k].Beat(t.Context()); err != nil {
					t.Fatal(err)
				}
				peers[k].First(t.Context(), "plan")
			}
			clock = clock.Add(heartbeatInterval)
		}
		out := map[string]string{}
		for k := range 60 {
			key := fmt.Sprintf("plan-%d", k)
			out[key] = agreed(t, peers[:live], key)
		}
		return out
	}
	three, share := firsts(3), map[string]int{}
	for _, first := range three {
		share[first]++
	}
	if share["a_1"] < 10 || share["b_1"] < 10 || share["c_1"] < 10 {
		t.Errorf("the shares are %v", share)
	}
	for key, first := range firsts(2) {
		if was := three[key]; first == "c_1" || was != "c_1" && first != was {
			t.Errorf("%s went from %s to %s when c_1 died", key, was, first)
		}
	}
}

// agreed returns the first for a key, which all peers must name.
func agreed(t *testing.T, peers []*Peers, key string) string {
	t.Helper()
	first := peers[0].First(t.Context(), key)
	for _, p := range peers[1:] {
		if other := p.First(t.Context(), key); other != first {
			t.Errorf("of %s, %s names %s, and %s names %s", key, peers[0].me, first, p.me, other)
		}
	}
	return first
}
