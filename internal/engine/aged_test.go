package engine

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/engine/wavecheck"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// A process may end between the record of a departure and its write, and another one go on days later: the wave is there
// all the same, and is checked. One that has left is not.
func TestADepartureThatWasOnlyRecordedIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		stands plans.Observation
		kind   Kind
	}{
		"it is there": {plans.Write("scale down", plans.Undo{}, func(context.Context) error { t.Error("the ordinal leaves"); return nil }), Blocked},
		"it has left": {plans.Done(), Advanced},
	} {
		e, shrink := scripted(t, plans.Shrink, see(c.stands))
		changed(t, e, func(j *journal.Journal) { j.Begun = shrink.Seq })
		e.CheckWave = func(context.Context, *journal.Journal, plans.Slice) (wavecheck.Answer, error) {
			return wavecheck.Answer{Why: "consent was withdrawn"}, nil
		}
		if p, err := e.Advance(t.Context()); err != nil || p.Kind != c.kind {
			t.Errorf("%s: %+v, %v; expected %s", name, p, err, c.kind)
		}
	}
}

// A check that passed before an ordinal became unavailable does not count, however new it is, and although the ordinal is
// back.
func TestAnOrdinalThatWasUnavailableVoidsTheChecks(t *testing.T) {
	up := func(since int64) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "a"}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(since, 0)}}
		return pod
	}
	e, _ := scripted(t, plans.Tighten, see(plans.Done()), up(100))
	e.Now = func() time.Time { return time.Unix(1000, 0) }
	asked, voided, left := 0, 0, false
	e.CheckWave = func(context.Context, *journal.Journal, plans.Slice) (wavecheck.Answer, error) {
		asked++
		return wavecheck.Answer{}, nil
	}
	e.Voided = func() { voided++ }
	if p, err := e.Advance(t.Context()); err != nil || p.Kind != Advanced {
		t.Fatalf("%+v, %v", p, err)
	}
	var pod corev1.Pod
	if err := e.on[plans.Source].Get(t.Context(), client.ObjectKeyFromObject(up(0)), &pod); err != nil {
		t.Fatal(err)
	}
	pod.Status = up(101).Status
	if err := e.on[plans.Source].Status().Update(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	e.observer.looks[plans.Shrink] = see(plans.Write("scale down", plans.Undo{}, func(context.Context) error { left = true; return nil }))
	p, err := e.Advance(t.Context())
	if err != nil || left || p.Kind != Waiting || voided != 1 {
		t.Fatalf("%+v, %v; the ordinal has left: %t; void %d times", p, err, left, voided)
	}
	before := asked
	if p, err = e.Advance(t.Context()); err != nil || !left || asked != before+1 || voided != 1 {
		t.Errorf("%+v, %v; the ordinal has left: %t; asked %d times before and %d after", p, err, left, before, asked)
	}
}

// An ordinal that is seen to be down when its wave would leave is missed, although its pod says nothing of it when it is back:
// a pod knows no more than the second.
func TestAnOrdinalThatIsSeenDownAtTheDepartureVoidsTheChecks(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "a"}}
	is := func(status corev1.ConditionStatus) *corev1.Pod {
		out := pod.DeepCopy()
		out.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Unix(100, 0)}}
		return out
	}
	e, _ := scripted(t, plans.Tighten, see(plans.Done()), is(corev1.ConditionTrue))
	e.Now = func() time.Time { return time.Unix(1000, 0) }
	voided, left := 0, false
	e.CheckWave = func(context.Context, *journal.Journal, plans.Slice) (wavecheck.Answer, error) {
		return wavecheck.Answer{}, nil
	}
	e.Voided = func() { voided++ }
	advance := func(kind Kind, void int) {
		t.Helper()
		if p, err := e.Advance(t.Context()); err != nil || p.Kind != kind || voided != void {
			t.Fatalf("%+v, %v; void %d times; expected %s, %d", p, err, voided, kind, void)
		}
	}
	turns := func(status corev1.ConditionStatus) {
		t.Helper()
		next := is(status)
		var now corev1.Pod
		if err := e.on[plans.Source].Get(t.Context(), client.ObjectKeyFromObject(pod), &now); err != nil {
			t.Fatal(err)
		}
		now.Status = next.Status
		if err := e.on[plans.Source].Status().Update(t.Context(), &now); err != nil {
			t.Fatal(err)
		}
	}
	advance(Advanced, 0)
	turns(corev1.ConditionFalse)
	e.observer.looks[plans.Shrink] = see(plans.Wait(reasons.OrdinalDown, "pod web-0 is not Ready"))
	advance(Waiting, 1)
	advance(Waiting, 1) // once
	turns(corev1.ConditionTrue)
	e.observer.looks[plans.Shrink] = see(plans.Write("scale down", plans.Undo{}, func(context.Context) error { left = true; return nil }))
	advance(Waiting, 2)
	advance(Wrote, 2)
	if !left {
		t.Error("the ordinal does not leave")
	}
}
