package orchestrator

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// The timeline names who has approved a plan, who has paused it, and who has asked for what was refused: each as
// admission has written it down for that very field.
func TestTheTimelineNamesWhoHasAsked(t *testing.T) {
	h, p := fixture(t)
	h.ending, h.Requesters = true, true // runs are not part of this test
	if err := h.Live.Delete(t.Context(), journalOf(p)); err != nil {
		t.Fatal(err)
	}
	declare(t, h.Live, p, func(d *plans.Declaration) {
		d.Paused, d.Request = true, &plans.Request{ID: "1", SourceGone: "another"}
	})
	d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
	if err != nil {
		t.Fatal(err)
	}
	d.Object.SetAnnotations(map[string]string{
		records.RequesterAnnotation(plans.ApprovalField): "anna", records.RequesterAnnotation(plans.PausedField): "ben", records.RequesterAnnotation(plans.RequestField): "eve",
	})
	if err := h.Live.Update(t.Context(), d.Object); err != nil {
		t.Fatal(err)
	}
	pass := func() {
		if _, err := h.Reconcile(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	pass()
	declare(t, h.Live, p, func(d *plans.Declaration) { d.Paused = false })
	pass()
	j, _, err := records.NewStore(h.Live, h.Namespace, p.Name).Journal(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range j.Timeline.Events {
		said = append(said, e.By+": "+e.What)
	}
	want := []string{"anna: approved the plan", "eve: refused: spec.request.sourceGone", "ben: no pause any more"}
	if !slices.EqualFunc(said, want, strings.HasPrefix) {
		t.Errorf("%q, expected %q", said, want)
	}
}

// The user of a direction or a request goes with the command, and so into the timeline.
func TestACommandNamesWhoHasAsked(t *testing.T) {
	h, p := fixture(t)
	j := journal.New(p)
	j.Detached, j.Observed.Direction, j.Epoch = true, plans.Move, 1
	for name, c := range map[string]struct {
		change  func(*plans.Declaration)
		written bool
		by      string
	}{
		"a direction": {func(d *plans.Declaration) { d.Direction = plans.Abort }, true, "anna"},
		"a request":   {func(d *plans.Declaration) { d.Request = &plans.Request{ID: "1", Resume: true} }, true, "ben"},
		"both": {func(d *plans.Declaration) {
			d.Direction, d.Request = plans.Abort, &plans.Request{ID: "1", MaxUnavailable: 2}
		}, true, "anna and ben"},
		"nothing that is proven": {func(d *plans.Declaration) { d.Direction = plans.Abort }, false, "StatefulSetMigration web"},
		"nothing":                {func(*plans.Declaration) {}, true, ""},
	} {
		h.Requesters = c.written
		spec := p.Declared()
		c.change(&spec)
		o := records.NewDeclared("stsmigrate", p.Name)
		o.SetAnnotations(map[string]string{records.RequesterAnnotation(plans.DirectionField): "anna", records.RequesterAnnotation(plans.RequestField): "ben"})
		if _, asked := actionFor(p, j, h.said(j, &records.Declared{Object: o, Spec: &spec})); asked.By != c.by {
			t.Errorf("%s: %q, expected %q", name, asked.By, c.by)
		}
	}
}

// A run that was begun from the cache carries its request out, whatever else the API server knows of who has asked:
// the cache is older, and has no managed fields.
func TestWhoHasAskedMakesNoOtherRequest(t *testing.T) {
	h, p := fixture(t)
	h.Requesters = true
	declare(t, h.Live, p, func(d *plans.Declaration) { d.Direction = plans.Abort })
	read := func() *records.Declared {
		d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	j := journal.New(p)
	j.Detached, j.Observed.Direction, j.Epoch = true, plans.Move, 1
	what, asked := actionFor(p, j, h.said(j, read()))
	now := read()
	now.Object.SetAnnotations(map[string]string{records.RequesterAnnotation(plans.DirectionField): "anna"})
	if err := h.Live.Update(t.Context(), now.Object); err != nil {
		t.Fatal(err)
	}
	r := &run{orchestrator: h, plan: p, what: what, command: asked.Command}
	if err := r.still(t.Context(), j); err != nil {
		t.Error(err)
	}
	if _, asked = actionFor(p, j, h.said(j, read())); asked.By != "anna" || !r.suits(carry, p, asked) {
		t.Errorf("%+v ends the run", asked.Command)
	}
}

// The cache keeps what names the program that has written a request, and nothing of the kind of other objects.
func TestTheCacheKnowsWhoHasAsked(t *testing.T) {
	for kind, o := range map[string]client.Object{"a request": records.NewDeclared("mall", "web"), "a ConfigMap": &corev1.ConfigMap{}, "a Secret": &corev1.Secret{}} {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl-edit"}})
		out, err := cached("mall", nil).DefaultTransform(o)
		if err != nil {
			t.Fatal(err)
		}
		if has := len(out.(client.Object).GetManagedFields()) > 0; has != (kind == "a request") {
			t.Errorf("%s: managed fields in the cache: %t", kind, has)
		}
	}
}

// Runs that are overtaken again and again are delayed, and the plan says why.
func TestARunThatIsAlwaysOvertakenIsDelayed(t *testing.T) {
	h, p := fixture(t)
	r := &run{orchestrator: h, plan: p}
	waits := func() string {
		j, _, err := r.store().Journal(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return j.Waiting
	}
	ends := func() (reason string, until time.Duration) {
		err := r.overtaken(t.Context())
		if !errors.Is(err, errOvertaken) {
			t.Fatal(err)
		}
		h.lock.Lock()
		defer h.lock.Unlock()
		before := h.Now()
		h.state(p.Name).delay(h.Now(), err)
		return waits(), h.state(p.Name).tried().after.Sub(before)
	}
	for i := range maxOvertaken {
		if reason, until := ends(); reason != "" || until > time.Second/2 {
			t.Fatalf("overtaken for the %d. time, the plan waits for %q, and %s", i+1, reason, until)
		}
	}
	if reason, until := ends(); !strings.Contains(reason, "5 times in a row") || until < time.Second {
		t.Errorf("the plan waits for %q, and %s", reason, until)
	}
}
