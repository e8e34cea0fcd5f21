package plans_test

import (
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func TestAPlanOfTheNextReleaseIsStillTheOneThatWasMade(t *testing.T) {
	p, _ := built(t)
	p.Read = planstest.Newer(t, p) // as the next release would write it
	raw := planstest.Sealed(t, p)
	if !strings.Contains(string(raw), "mood:") {
		t.Fatalf("the test has lost the field: %s", raw)
	}
	again, err := plans.DecodePlan(raw)
	if err != nil || again.Hash != p.Hash {
		t.Fatalf("%+v, %v", again, err)
	}
	if back, err := plans.Encode(again); err != nil || string(back) != string(raw) {
		t.Errorf("it is written back as %s, %v", back, err)
	}
	for _, edited := range []string{strings.Replace(string(raw), "good", "bad", 1), strings.Replace(string(raw), "count: 3", "count: 2", 1)} {
		if _, err := plans.DecodePlan([]byte(edited)); err == nil || !strings.Contains(err.Error(), "was edited") {
			t.Errorf("an edited one: %v", err)
		}
	}
}
