package plans

import (
	"encoding/json"
	"strings"
	"testing"
)

// newer returns a JSON document as the next release might write it, with fields that this release
// does not know, at every depth.
func newer(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out := strings.Replace(string(raw), "{", `{"mood":{"is":["good"]},`, 1)
	out = strings.Replace(out, `"lowest":`, `"slope":7,"lowest":`, 1)
	return []byte(strings.Replace(out, `"ordinal":4,`, `"ordinal":4,"zone":"a",`, 1))
}

func TestAPlanOfTheNextReleaseIsStillTheOneThatWasMade(t *testing.T) {
	p, _ := built(t)
	p.Read = newer(t, p) // as the next release would write it
	raw := sealed(t, p)
	if !strings.Contains(string(raw), "mood:") {
		t.Fatalf("the test has lost the field: %s", raw)
	}
	again, err := DecodePlan(raw)
	if err != nil || again.Hash != p.Hash {
		t.Fatalf("%+v, %v", again, err)
	}
	if back, err := Encode(again); err != nil || string(back) != string(raw) {
		t.Errorf("it is written back as %s, %v", back, err)
	}
	for _, edited := range []string{strings.Replace(string(raw), "good", "bad", 1), strings.Replace(string(raw), "count: 3", "count: 2", 1)} {
		if _, err := DecodePlan([]byte(edited)); err == nil || !strings.Contains(err.Error(), "was edited") {
			t.Errorf("an edited one: %v", err)
		}
	}
}
