package engine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Requests are urgent only while an ordinal is, or is about to be, on neither side.
func TestAWaveIsUrgent(t *testing.T) {
	tight := metav1.NewTime(time.Unix(1700000000, 0))
	for name, c := range map[string]struct {
		journal *journal.Journal
		want    bool
	}{
		"before the journal is read": {nil, false},
		"between two waves":          {&journal.Journal{}, false},
		"in a wave":                  {&journal.Journal{TightSince: &tight}, true},
	} {
		e := &Engine{memory: memory{journal: c.journal}}
		if got := clusters.IsUrgent(e.hurry(t.Context())); got != c.want {
			t.Errorf("%s: %v, expected %v", name, got, c.want)
		}
	}
}
