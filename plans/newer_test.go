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

func TestAJournalOfTheNextReleaseIsWrittenBackWithWhatIsNotKnown(t *testing.T) {
	p, _ := built(t)
	first := NewJournal(p)
	first.Flight = &Flight{Ordinals: Slice{4, 1}, From: Source, Pods: []Pod{{Ordinal: 4, UID: "u"}}}
	first.Blocked = "a reason"
	raw := newer(t, first)
	for range 2 { // read and write twice
		j, err := DecodeJournal(raw, p)
		if err != nil {
			t.Fatal(err)
		}
		j.Epoch, j.Blocked = j.Epoch+1, ""
		if raw, err = json.Marshal(j); err != nil {
			t.Fatal(err)
		}
	}
	for want, is := range map[string]bool{`"mood":{"is":["good"]}`: true, `"slope":7`: true, `"zone":"a"`: true, `"epoch":2`: true, `"blocked"`: false} {
		if strings.Contains(string(raw), want) != is {
			t.Errorf("%s, expected %s in it: %t", raw, want, is)
		}
	}
	if j, err := DecodeJournal(raw, p); err != nil || j.Epoch != 2 || j.Blocked != "" || j.Flight.Pods[0].UID != "u" {
		t.Errorf("%+v, %v", j, err)
	}
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

func TestWhatAReaderHasToKnowOfIsSaidInOneSentence(t *testing.T) {
	p, raw := built(t)
	_, plan := DecodePlan([]byte(raw + "requires: [pairs]\n"))
	doc, err := json.Marshal(NewJournal(p))
	if err != nil {
		t.Fatal(err)
	}
	_, journal := DecodeJournal([]byte(strings.Replace(string(doc), "{", `{"requires":["pairs"],`, 1)), p)
	for kind, err := range map[string]error{PlanKind: plan, JournalKind: journal} {
		want := "this " + kind + ` was written by a newer stsmigrate and requires support for ["pairs"], which this release does not have: use the newer release`
		if err == nil || err.Error() != want {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}
