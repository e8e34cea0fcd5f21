package check

import (
	"errors"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

// A finding that may pass by itself decides nothing: the plan asks again. Beside one that is decided it need not be
// waited for.
func TestAFindingThatMayPassDecidesNothing(t *testing.T) {
	passing, decided := Finding{Object: "a", Saw: "you may not look", Passing: true}, Finding{Object: "b", Saw: "it is full"}
	for name, c := range map[string]struct {
		found []Finding
		want  int
		asks  bool
	}{
		"none": {nil, 0, false}, "one that may pass": {[]Finding{passing}, 0, true}, "one that is decided": {[]Finding{decided}, 1, false}, "both": {[]Finding{passing, decided}, 1, false},
	} {
		got, err := Decided(reasons.NoConsent, c.found)
		var asks ErrPassing
		if len(got) != c.want || errors.As(err, &asks) != c.asks || c.asks && (answers.Of(err) != answers.Passing || reasons.Of(err) != reasons.NoConsent || err.Error() != Words(c.found)) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
