package orchestrator

import (
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// A pod that asks for an hour to end is not overdue before that, whatever --step-timeout says.
func TestAPodHasTheTimeToEndThatItAsksFor(t *testing.T) {
	pod, set := &corev1.Pod{}, &appsv1.StatefulSet{}
	hour, half := int64(3600), int64(1800)
	pod.Spec.TerminationGracePeriodSeconds, set.Spec.Template.Spec.TerminationGracePeriodSeconds = &hour, &half
	deleted := &corev1.Pod{} // whoever deleted it gave it more
	deleted.Spec.TerminationGracePeriodSeconds, deleted.DeletionGracePeriodSeconds = &half, &hour
	for _, c := range []struct {
		op   plans.Op
		seen []client.Object
		want time.Duration
	}{
		{plans.Vacate, []client.Object{pod, set}, time.Hour + kubeletsTurn},
		{plans.Vacate, []client.Object{deleted}, time.Hour + kubeletsTurn},
		{plans.Shrink, []client.Object{set}, time.Hour/2 + kubeletsTurn},
		{plans.Vacate, []client.Object{&corev1.Pod{}, nil}, 10 * time.Minute},
		{plans.Grow, []client.Object{pod}, 10 * time.Minute},
	} {
		g := &glance{}
		g.clear()
		for k, o := range c.seen {
			g.objects[thing{name: string(rune('a' + k))}] = o
		}
		r := run{Engine: &Engine{glance: g}, Options: Options{StepTimeout: 10 * time.Minute}, last: Progress{Step: plans.Step{Op: c.op}}}
		if got := r.timeout(); got != c.want {
			t.Errorf("%s of %v: %s, expected %s", c.op, c.seen, got, c.want)
		}
	}
}

// A step of five pods that come one after the other takes five times as long as one: the clock of a
// step starts anew with every pod of the wave that comes or goes, and with no other news.
func TestAPodOfTheWaveThatComesOrGoesIsProgress(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: name} }
	meta := func(name, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: version}}
	}
	for _, c := range []struct {
		name string
		news func(*watched) error
		want bool
	}{
		{"one comes", func(w *watched) error { return w.Add(meta("web-1", "7")) }, true},
		{"one goes", func(w *watched) error { return w.Delete(meta("web-2", "7")) }, true},
		{"one changes", func(w *watched) error { return w.Update(meta("web-2", "7")) }, false},
		{"one comes, and changes", func(w *watched) error { _ = w.Add(meta("web-1", "7")); return w.Update(meta("web-1", "8")) }, true},
		{"one of another wave goes", func(w *watched) error { return w.Delete(meta("web-0", "7")) }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			wake := NewWake()
			w := &watched{versions: map[types.NamespacedName]string{key("web-2"): "1", key("web-0"): "1"}}
			w.join(func(o types.NamespacedName, news change) {
				wake.ring(thing{plans.Source, "Pod", o.Namespace, o.Name}, news)
			})
			g := &glance{}
			g.clear()
			r := run{
				Engine:   &Engine{glance: g, plan: &plans.Plan{Source: plans.Ref{Name: "web"}, Destination: plans.Ref{Name: "web"}}},
				Options:  Options{StepTimeout: time.Minute, Wake: wake},
				deadline: time.NewTimer(time.Minute),
				last:     Progress{Step: plans.Step{Op: plans.Grow, Ordinals: plans.Slice{Start: 1, Replicas: 2}}},
			}
			time.AfterFunc(50*time.Second, func() {
				if err := c.news(w); err != nil {
					t.Error(err)
				}
			})
			for began := time.Now(); time.Since(began) < 70*time.Second && !r.expired; {
				if err := r.wait(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
			}
			if r.expired == c.want {
				t.Errorf("%s: it is too late after 70 seconds: %t", c.name, r.expired)
			}
		})
	}
}
