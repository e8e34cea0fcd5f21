package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/preview"
)

// What a plan says that it writes is what is written, and nothing else: verb, cluster, kind and name of every object,
// in the move and when it is finalized.
func TestThePlanListsEveryWrite(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for name, change := range map[string]func(*options){
			"plain":                func(*options) {},
			"in waves":             func(o *options) { *o = inWaves(o.Mode) },
			"with gates":           func(o *options) { *o = withGates(*o) },
			"existing destination": func(o *options) { o.Existing, o.Delete = true, true },
			"no budget, shared":    func(o *options) { o.Budget, o.Shared, o.Start = nil, true, 2 },
			"no volumes":           func(o *options) { o.Templates = nil },
		} {
			sc := threeOrdinals(plans.Mode(mode))
			change(&sc)
			t.Run(fmt.Sprintf("%s, %s", mode, name), func(t *testing.T) {
				t.Parallel()
				w := newWorld(sc)
				claims := w.claimsOfVolumes()
				leg := w.plan.FirstLeg()
				w.writesOnly(t, leg, claims)
				leg = plans.Leg{Direction: plans.Finalize, First: 1}
				w.writesOnly(t, leg, claims)
			})
		}
	}
}

// claimsOfVolumes returns the names of the claims of all ordinals, by the names of their volumes.
func (w *world) claimsOfVolumes() map[string]string {
	out := map[string]string{}
	for _, pv := range all[*corev1.PersistentVolume](w.on[plans.Source]) {
		if c := pv.Spec.ClaimRef; c != nil && c.Name != media {
			out[pv.Name] = c.Name
		}
	}
	return out
}

// writesOnly carries out a leg without any fault, and requires that it writes what the plan lists.
func (w *world) writesOnly(t *testing.T, leg plans.Leg, claims map[string]string) {
	t.Helper()
	before := len(w.acts)
	r := w.process()
	saves := 0
	r.at = func(int) fault {
		if r.now.kind == "ConfigMap" && strings.HasSuffix(r.now.name, "-journal") {
			saves++
		}
		return ""
	}
	if e, err := r.run(t.Context(), leg.Direction, nil); err != nil || len(w.broken) > 0 {
		t.Fatalf("%s: %v %v", e, err, w.broken)
	}
	listed, most := w.listed(leg)
	written := w.written(before, claims)
	for _, one := range slices.Sorted(maps.Keys(written)) {
		if !listed[one] {
			t.Errorf("%s: %s is not listed", leg.Direction, one)
		}
	}
	for _, one := range slices.Sorted(maps.Keys(listed)) {
		if !written[one] {
			t.Errorf("%s: %s is listed, and not written", leg.Direction, one)
		}
	}
	if saves > most {
		t.Errorf("%s: %d saves of the journal, expected at most %d", leg.Direction, saves, most)
	}
}

// listed returns the writes that the plan lists for a leg, without those of its record, and how often at most it says
// that the journal is saved.
func (w *world) listed(leg plans.Leg) (out map[string]bool, saves int) {
	out = map[string]bool{}
	for _, one := range preview.Writes(w.plan, leg) {
		if strings.HasPrefix(one.Name, "stsmigrate-"+planName) { // the record and its Lease
			saves += one.Times
			continue
		}
		k := key{one.Kind, one.Namespace, strings.TrimSuffix(one.Name, "-*")}
		if one.Kind == "PersistentVolume" {
			k.namespace = ""
		}
		out[fmt.Sprintf("%s on %s of %s", one.Verb, w.on[one.Side].name, k)] = true
	}
	return out, saves
}

// written returns the writes since one of them. A volume has the name of its claim, and a revision that of its set.
func (w *world) written(since int, claims map[string]string) map[string]bool {
	out := map[string]bool{}
	for _, a := range w.acts[since:] {
		k := a.key
		if claim, ok := claims[k.name]; ok && k.kind == "PersistentVolume" {
			k.name = claim
		}
		if k.kind == "ControllerRevision" {
			k.name = setName
		}
		out[fmt.Sprintf("%s on %s of %s", a.verb, a.on, k)] = true
	}
	return out
}
