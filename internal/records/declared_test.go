package records

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// A request for one plan must not change what is declared of another one that may be under way.
func TestARequestChangesNothingOfAnotherPlan(t *testing.T) {
	home, p, other := fake.NewClientBuilder().Build(), planstest.Named(t, "abc"), planstest.Named(t, "xyz")
	other.Ignored = []string{"images"}
	if err := other.Seal(); err != nil {
		t.Fatal(err)
	}
	pause := func(d *plans.Declaration) error { d.Paused = true; return nil }
	if err := Declare(t.Context(), home, "mall", p, func(*plans.Declaration) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := Declare(t.Context(), home, "mall", other, pause); err == nil || !strings.Contains(err.Error(), "approves a plan with the hash "+p.Hash) {
		t.Errorf("%v", err)
	}
	if d, err := ReadDeclared(t.Context(), home, "mall", "web"); err != nil || d.Spec.ApprovedHash != p.Hash || d.Spec.Paused {
		t.Errorf("declared is %+v, %v", d, err)
	}
	if err := Declare(t.Context(), home, "mall", p, pause); err != nil {
		t.Fatal(err)
	}
	if d, err := ReadDeclared(t.Context(), home, "mall", "web"); err != nil || !d.Spec.Paused {
		t.Errorf("declared is %+v, %v", d, err)
	}
}

// An annotation that any client can set names a user only where admission writes it. Elsewhere what is said of a
// requester is marked as their own claim.
func TestARequesterIsNamedOnlyIfAdmissionNamesThem(t *testing.T) {
	o := NewDeclared("mall", "web")
	o.SetAnnotations(map[string]string{"stsmigrate.dev/direction-by": "anna"})
	var fields metav1.FieldsV1
	fields.SetRawString(`{"f:spec":{"f:direction":{},"f:request":{"f:id":{}}}}`)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1",
		FieldsV1: &fields,
	}})
	d := &Declared{Object: o}
	for _, c := range []struct {
		field   string
		written bool
		want    string
	}{
		{plans.DirectionField, true, "anna"},
		{plans.DirectionField, false, "StatefulSetMigration web (claimed: kubectl-edit)"},
		{plans.RequestField, true, "StatefulSetMigration web (claimed: kubectl-edit)"},
		{plans.PausedField, true, "StatefulSetMigration web"},
	} {
		if got := d.Requester(c.field, c.written); got != c.want {
			t.Errorf("%s, written by admission: %t: %q, expected %q", c.field, c.written, got, c.want)
		}
	}
}

// A status in which another writer has made something else of a field is read as far as it can be. The plan of an ended
// object must not begin again because of it.
func TestAStatusIsReadAsFarAsItCanBe(t *testing.T) {
	o := NewDeclared("mall", "web")
	o.Object["status"] = map[string]any{
		"state": "Aborted", "message": "the set is back", "since": "yesterday", "summary": int64(5), "notified": "all of it", "later": "a field of a later release",
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Aborted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}},
	}
	d := DeclaredIn(o)
	if !d.Over() || d.Status.Message != "the set is back" || d.Status.Since != nil || d.Status.Notified != nil || len(d.Status.Conditions) != 1 || d.Status.Conditions[0].Type != "Ready" {
		t.Errorf("%+v", d.Status)
	}
	o.Object["status"] = "no status at all"
	if d := DeclaredIn(o); d.Over() || d.Status.Message != "" {
		t.Errorf("%+v", d.Status)
	}
}
