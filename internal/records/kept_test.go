package records

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// Whatever a tenant writes into an object, a few KiB of it are kept in memory.
func TestLittleIsKeptOfAnObject(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	many := map[string]string{}
	for k := range 10_000 {
		many[fmt.Sprint("a", k)] = "b"
	}
	meta := func(name string) metav1.ObjectMeta {
		labels := map[string]string{plans.PlanLabel: "web"}
		for k := range many {
			labels[k] = "b"
		}
		return metav1.ObjectMeta{Namespace: "home", Name: name, UID: "uid", ResourceVersion: "7", Labels: labels, Annotations: map[string]string{"a": big[:1<<18], EndedLabel: big[:1<<18]}, Finalizers: []string{UnderWay, "a/" + big}}
	}
	declared := func(change func(map[string]any)) client.Object {
		o := NewDeclared("home", "web")
		m := meta("web")
		o.SetLabels(m.Labels)
		o.SetAnnotations(m.Annotations)
		o.SetFinalizers(m.Finalizers)
		o.SetGeneration(2)
		change(o.Object)
		return o
	}
	for name, o := range map[string]client.Object{
		"a plan":               &corev1.ConfigMap{ObjectMeta: meta("stsmigrate-web"), Data: map[string]string{planKey: big}},
		"a journal":            &corev1.ConfigMap{ObjectMeta: meta("stsmigrate-web-journal"), Data: map[string]string{journalKey: big}},
		"a journal and more":   &corev1.ConfigMap{ObjectMeta: meta("stsmigrate-web-journal"), Data: map[string]string{journalKey: "{}", "more": big}, BinaryData: map[string][]byte{"a": []byte(big)}},
		"the journal of none":  &corev1.ConfigMap{ObjectMeta: meta("web"), Data: map[string]string{journalKey: big[:mostKept]}},
		"a timeline":           &corev1.ConfigMap{ObjectMeta: meta("stsmigrate-web-timeline"), Data: map[string]string{timelineKey: big}},
		"another ConfigMap":    &corev1.ConfigMap{ObjectMeta: meta("a"), Data: map[string]string{"a": big}},
		"a spec":               declared(func(o map[string]any) { o["spec"] = map[string]any{"a": big} }),
		"a spec of many parts": declared(func(o map[string]any) { o["spec"] = map[string]any{"a": make([]any, 100_000)} }),
		"what nobody knows":    declared(func(o map[string]any) { o["more"] = big }),
		"a status":             declared(func(o map[string]any) { o["status"] = map[string]any{"summary": big} }),
		"what has ended": declared(func(o map[string]any) {
			o["status"] = map[string]any{"state": "Finalized", "observedGeneration": int64(2), "summary": big}
		}),
	} {
		for range 2 { // a cache may ask twice
			if _, err := Keep(o); err != nil {
				t.Fatal(err)
			}
			if n := weight.Of(o); n > 4<<10 {
				t.Errorf("%s: %d bytes are kept", name, n)
			}
			if whole := name == "a journal and more"; LeftOut(o) == whole {
				t.Errorf("%s: left out: %t", name, !whole)
			}
			if o.GetName() == "" || o.GetUID() == "" && o.GetObjectKind().GroupVersionKind().Kind == "" || !strings.Contains(fmt.Sprint(o.GetFinalizers()), UnderWay) {
				t.Errorf("%s: %+v", name, o)
			}
			if KeptAsEnded(o) != (name == "what has ended") {
				t.Errorf("%s: ended: %t", name, KeptAsEnded(o))
			}
		}
	}
}

// A journal is as it ends, whatever its labels say: the content of one that is under way is kept.
func TestTheContentOfAJournalSaysWhetherItIsKept(t *testing.T) {
	for raw, kept := range map[string]bool{
		`{"kind":"StatefulSetMigrationJournal","outcome":"Finalized"}`:                  false,
		`{"kind":"StatefulSetMigrationJournal","outcome":"Aborted"}`:                    false,
		`{"kind":"StatefulSetMigrationJournal","outcome":"Finalized","keepNames":true}`: true,
		`{"kind":"StatefulSetMigrationJournal","outcome":"Moved"}`:                      true,
		`{"kind":"StatefulSetMigrationJournal"}`:                                        true,
		`{"kind":"a","outcome":"Finalized"}`:                                            true,
		`{`:                                                                             true,
	} {
		raw = strings.Replace(raw, "StatefulSetMigrationJournal", plans.JournalKind, 1)
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "stsmigrate-web-journal", Labels: map[string]string{plans.PlanLabel: "web", EndedLabel: "Finalized"}},
			Data:       map[string]string{journalKey: raw},
		}
		if _, err := Keep(cm); err != nil {
			t.Fatal(err)
		}
		if (cm.Data[journalKey] == raw) != kept || KeptAsEnded(cm) == kept {
			t.Errorf("%s: %+v", raw, cm)
		}
	}
}
