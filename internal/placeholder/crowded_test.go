package placeholder

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// exceeded refuses a pod as a quota does.
func exceeded() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-0-place", &apierrors.StatusError{ErrStatus: metav1.Status{Message: "exceeded quota: three"}})
}

// A quota that is full with an anchor, and a moment after that is gone, is no reason to stop.
func TestAPlaceholderWaitsForTheRoomOfAnAnchor(t *testing.T) {
	now, full := time.Unix(1000, 0), true
	s := staged(t, plans.Source, func(*corev1.Pod) error {
		if full {
			return exceeded()
		}
		return nil
	})
	s.moment.Ordinals = plans.Slice{Replicas: 1}
	anchor := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web-1-anchor", Labels: map[string]string{Label: "web", AnchorLabel: "web"}}}
	s.moment.Stamp.Put(anchor)
	full = false
	if err := s.at.Create(t.Context(), anchor); err != nil {
		t.Fatal(err)
	}
	full, s.creates = true, 0
	by := s.process()
	by.Now, by.Crowded, by.Anchors = func() time.Time { return now }, &Crowded{}, &Anchors{}
	s.pass(t, by) // is refused
	if o := s.pass(t, by); o.Standing != plans.Before || !by.Anchors.refused(plans.Destination) {
		t.Fatalf("the anchor stays: %+v", o)
	}
	if o := s.pass(t, by); o.Standing != plans.During || o.ID != reasons.PlaceNotReady || o.Again <= 0 {
		t.Fatalf("it is sent again at once: %+v", o)
	}
	full, now = false, now.Add(2*crowdedPause)
	if s.pass(t, by); s.pod(t) == nil || s.creates != 2 {
		t.Errorf("it was sent %d times", s.creates)
	}
}

// A quota that stays full is told.
func TestAQuotaThatStaysFullIsTold(t *testing.T) {
	now := time.Unix(1000, 0)
	s := staged(t, plans.Source, func(*corev1.Pod) error { return exceeded() })
	by := s.process()
	by.Now, by.Crowded = func() time.Time { return now }, &Crowded{}
	for range 100 {
		o, err := by.Prepare(t.Context(), s.moment)
		if err != nil {
			t.Fatal(err)
		}
		if o.Standing == plans.Before {
			if err := o.Write(t.Context()); err != nil {
				if now.Sub(time.Unix(1000, 0)) < crowdedFor || s.creates > 20 {
					t.Errorf("after %s and %d attempts: %v", now.Sub(time.Unix(1000, 0)), s.creates, err)
				}
				return
			}
			continue
		}
		now = now.Add(o.Again)
	}
	t.Error("it is never told")
}
