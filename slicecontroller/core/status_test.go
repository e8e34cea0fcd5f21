package core

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheStatusCountsPods(t *testing.T) {
	for _, c := range []struct {
		rule, pods string
		set        []func(*Set)
		want       [5]int32 // replicas, ready, available, current, updated
	}{
		{"ST-1 all", "0 1 2", nil, [5]int32{3, 3, 3, 3, 3}},
		{"ST-1 condemned ones too", "0 1 2 3", nil, [5]int32{4, 4, 4, 4, 4}},
		{"ST-1 not those of this pass", "0 1", nil, [5]int32{2, 2, 2, 2, 2}},
		{"ST-1 terminating ones are replicas, and ready while they are", "0 1 2~", nil, [5]int32{3, 3, 3, 2, 2}},
		{"ST-1 2599-05 2599-21 961-54 ready is not available", "0 1 2", is(minReady(7200)), [5]int32{3, 3, 0, 3, 3}},
		{"AVAIL-1 a failed one is neither", "0 1 2x", is(deleting), [5]int32{3, 2, 2, 3, 3}},
		{"ST-2 during an update", "0o 1o 2!", nil, [5]int32{3, 2, 2, 2, 1}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, c.pods, c.set...)
			s.sync()
			got := s.set.Status
			if diff := cmp.Diff(c.want, [5]int32{got.Replicas, got.ReadyReplicas, got.AvailableReplicas, got.CurrentReplicas, got.UpdatedReplicas}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheStatusIsWrittenWhenItTellsSomethingNew(t *testing.T) {
	s := play(t, "0 1 2")
	foreign := []appsv1.StatefulSetCondition{{Type: "Somebody", Status: "True"}}
	s.set.Status.Conditions = foreign
	s.sync()
	if diff := cmp.Diff(foreign, s.set.Status.Conditions); diff != "" {
		t.Errorf("ST-6: %s", diff)
	}
	no := errors.New("written")
	s.fails["status"] = no
	if s.sync(); s.err != nil {
		t.Errorf("ST-5: written again: %v", s.err)
	}
	s.set.Generation = 2
	if s.sync(); !errors.Is(s.err, no) {
		t.Errorf("ST-4: not written for a new generation: %v", s.err)
	}
	s.set.Generation, s.set.Status.ObservedGeneration = 2, 3 // a late observation
	if s.sync(); s.err != nil {
		t.Errorf("ST-4: it falls: %v", s.err)
	}
}

func TestAvailabilityIsATime(t *testing.T) {
	for _, c := range []struct {
		rule string
		ago  time.Duration
		min  int32
		want bool
		wait time.Duration // until the next reconcile
	}{
		{"AV-1 2599-03 at once", 0, 0, true, 0},
		{"2599-02 2599-11 2599-26 a millisecond before", 10*time.Second - time.Millisecond, 10, false, time.Millisecond},
		{"2599-11 2599-12 at the time", 10 * time.Second, 10, true, 0},
		{"AV-7 2599-28 of a clock that is ahead", -5 * time.Second, 10, false, 15 * time.Second},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, "0 1 2", minReady(c.min))
			for _, p := range s.pods {
				p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon().Add(-c.ago))
			}
			s.sync()
			if got := s.set.Status.AvailableReplicas == 3; got != c.want {
				t.Errorf("available: %t, expected %t", got, c.want)
			}
			if got := s.outcome.Again; got.IsZero() != (c.wait == 0) || !got.IsZero() && got.Sub(noon()) != c.wait {
				t.Errorf("SY-5: looked at again at %s, expected after %s", got, c.wait)
			}
		})
	}
	t.Run("AV-2 2599-27 without a time never", func(t *testing.T) {
		s := play(t, "0 1 2", minReady(1))
		s.pods["web-1"].Status.Conditions[0].LastTransitionTime = metav1.Time{}
		if s.sync(); s.set.Status.AvailableReplicas != 2 || !s.outcome.Again.IsZero() {
			t.Errorf("%+v %v", s.set.Status, s.outcome.Again)
		}
	})
	t.Run("AV-4 2599-19 the field acts on what runs, and restarts nothing", func(t *testing.T) {
		s := play(t, "0 1 2")
		minReady(7200)(s.set)
		if s.expect(""); s.set.Status.AvailableReplicas != 0 {
			t.Errorf("%+v", s.set.Status)
		}
		minReady(0)(s.set)
		if s.expect(""); s.set.Status.AvailableReplicas != 3 {
			t.Errorf("%+v", s.set.Status)
		}
	})
}
