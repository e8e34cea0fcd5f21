package preflight

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/records"
)

// The text of many findings has a bounded length.
func TestTheWordsOfManyFindingsHaveALength(t *testing.T) {
	var found []check.Finding
	for o := range 1000 {
		found = append(found, check.Finding{Check: "claims-bound", Object: fmt.Sprintf("claim data-web-%d", o), Saw: strings.Repeat("x", 200)})
	}
	words := check.Words(found)
	if len(words) > 2*records.MaxReasonBytes || !strings.HasPrefix(words, "claims-bound: claim data-web-0") || !strings.Contains(words, "more: `check` lists them") {
		t.Errorf("%d bytes: %s", len(words), words)
	}
	if few := check.Words(found[:3]); strings.Contains(few, "more") || !strings.Contains(few, "data-web-2") {
		t.Errorf("%s", few)
	}
}
