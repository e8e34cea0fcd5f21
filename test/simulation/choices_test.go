package simulation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A controller that goes through its objects, and for each through others, does each thing that it could do once.
func TestEveryWayIsChosenOnce(t *testing.T) {
	t.Parallel()
	asks := map[string]bool{"a2": true, "a3": true, "c1": true, "late": true}
	act := func(w *world) string {
		for outer := range shuffle(w, []string{"a", "b", "c"}) {
			for inner := range shuffle(w, []string{"1", "2", "3"}) {
				if asks[outer+inner] {
					return outer + inner
				}
			}
		}
		return ""
	}
	var did []string
	w := &world{choices: &choices{}}
	for {
		patient := w.chance(4)
		what := act(w)
		if !w.choices.repeated {
			did = append(did, map[bool]string{true: "at once ", false: "then "}[patient]+what)
		}
		if !w.choices.next() {
			break
		}
	}
	want := []string{"at once a2", "at once a3", "at once c1", "then a2", "then a3", "then c1"}
	if diff := cmp.Diff(want, did); diff != "" {
		t.Errorf("what a controller did in turn (-want +got):\n%s", diff)
	}
	clear(asks)
	w.choices = &choices{}
	if what := act(w); what != "" || w.choices.next() {
		t.Errorf("a controller that has nothing to do did %q, or is asked again", what)
	}
}
