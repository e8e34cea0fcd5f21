package storage

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
)

// plansOf returns a plan of each mode by which volumes move. A mode that is added needs one here.
func plansOf(t *testing.T) map[plans.Mode]func() *plans.Plan {
	t.Helper()
	out := map[plans.Mode]func() *plans.Plan{plans.Rebind: rebind, plans.Reimport: apart}
	for mode := range modes() {
		if _, there := out[mode]; mode.Moved() && !there {
			t.Fatalf("no plan has volumes of the mode %s", mode)
		}
	}
	return out
}

func TestAModeHasAllOfAHandoverOrNothing(t *testing.T) {
	for mode, of := range modes() {
		by, only := reflect.ValueOf(of(keeper{})), []string{"prepare"}
		if mode.OneObject() {
			only = append(only, "missing")
		}
		for i := range by.NumField() {
			name := by.Type().Field(i).Name
			if left := by.Field(i).IsNil(); left == mode.Moved() && !slices.Contains(only, name) {
				t.Errorf("mode %s moves volumes: %t, and has no %s: %t", mode, mode.Moved(), name, left)
			}
		}
	}
}

// What S4 and S5 demand of a volume is asked whatever its mode: no step goes on with a volume that is not Retain, that
// means another disk, that has lost the marks of the plan, or that any claim may take.
func TestWhatAVolumeMustBeIsAskedInEveryMode(t *testing.T) {
	var rows []row
	for mode, plan := range plansOf(t) {
		for name, fault := range map[string]func(*corev1.PersistentVolume){
			"not Retain": unprotected, "another disk": otherDisk, "without marks": unmarked,
			"for any claim": func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil },
		} {
			stops := func(op plans.Op, where string, here, there []client.Object) {
				if mode.OneObject() {
					here, there = append(here, there...), nil
				}
				rows = append(rows, row{name: strings.Join([]string{string(mode), string(op), where, name}, ", "), plan: plan, moment: at(op), world: here, there: there, want: plans.Conflict})
			}
			leaving := []client.Object{volume("shop", "old")}
			if name != "for any claim" { // until its claim is gone, a volume is bound
				stops(plans.Release, "the volume that leaves", []client.Object{claimIn("shop", "old"), volume("shop", "old", isBound, fault)}, nil)
			}
			stops(plans.Reserve, "the volume that leaves", []client.Object{volume("shop", "old", fault)}, nil)
			if !mode.OneObject() {
				stops(plans.Reserve, "the other object of it", leaving, []client.Object{volume("mall", "", fault)})
				stops(plans.Reserve, "the volume that leaves, which has another object", []client.Object{volume("shop", "old", fault)}, []client.Object{volume("mall", "")})
				stops(plans.Claim, "the volume that arrives", leaving, []client.Object{volume("mall", "", fault)})
			} else {
				stops(plans.Claim, "the volume that arrives", []client.Object{volume("mall", "", fault)}, nil)
			}
		}
	}
	check(t, rows)
}

// A mode of which this program knows nothing is not taken for another one.
func TestAVolumeOfAnUnknownModeIsLeftAlone(t *testing.T) {
	p := apart()
	p.Claims[0].Mode = "copy"
	for _, op := range []plans.Op{plans.Release, plans.Reserve, plans.Settle} {
		here := fake.NewClientBuilder().WithObjects(claimIn("shop", "old"), volume("shop", "old", isBound)).Build()
		there := fake.NewClientBuilder().WithObjects(claimIn("mall", "new")).Build()
		s, err := Looks(p, map[plans.Side]client.Client{plans.Source: here, plans.Destination: there}, nil)[op](t.Context(), at(op))
		if err == nil || !strings.Contains(err.Error(), `claim template data: no volume moves by the mode "copy"`) {
			t.Errorf("%s: %s (%s), %v", op, s.Standing, s.Reason, err)
		}
	}
	if Prepares(p) {
		t.Error("such a volume is prepared")
	}
}

// Where each side has a volume object of its own, no control plane keeps the disk from two nodes: that is asked unless a
// mode is known to have one object (S1).
func TestOnlyOneObjectKeepsADiskFromTwoNodes(t *testing.T) {
	for mode, want := range map[plans.Mode]bool{plans.Rebind: true, plans.Reimport: false, plans.Empty: false, "": false, "copy": false} {
		if got := mode.OneObject(); got != want {
			t.Errorf("%q: %t, expected %t", mode, got, want)
		}
	}
}
