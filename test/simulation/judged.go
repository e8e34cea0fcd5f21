package simulation

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/witness"
)

// The witness of the tests on real control planes reads the history of the simulation too, version by version. It
// shares no code with the engine, nor with the checks of this package, so that one mistake cannot be in all of them.

// beJudged shows the judge how things are, and lets it see whatever comes.
func (w *world) beJudged() {
	w.judge = witness.NewJudge(witness.Move{
		Set: setName, Window: int(w.plan.Window), Down: int(w.plan.MaxUnavailable), Source: blue, Dest: green, OneServer: len(w.stores) == 1,
		Templates: slices.DeleteFunc(slices.Clone(w.options.Templates), func(t string) bool { return slices.Contains(w.options.Left, t) }),
	})
	for cluster, s := range w.stores {
		for _, k := range s.order {
			w.judge.See(cluster, s.objects[k], false)
		}
	}
	w.judge.Begin()
	w.listen()
}

// listen shows the judge every version of every object from now on.
func (w *world) listen() {
	for cluster, s := range w.stores {
		s.seen = func(o client.Object, gone bool) {
			for _, found := range w.judge.See(cluster, o, gone) {
				w.judged(found)
			}
		}
	}
}

// judged takes what the judge has found. Of a world in which other writers interfere it counts that no ordinal runs
// twice, and that no pod runs on the disk of one that is up elsewhere: whatever else is broken may be their doing.
func (w *world) judged(found string) {
	id, what, _ := strings.Cut(found, ": ")
	if w.rolls && id == "S3" {
		return
	}
	if !w.foreign || id == "S1" || id == "S20" {
		w.note(id, "the witness saw that "+what)
	}
}
