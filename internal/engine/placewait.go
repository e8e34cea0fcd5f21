package engine

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/placeholder"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// While a wave waits for its places, everything is up, and the status of its placeholders changes again and again: they find
// a node, pull images, start. Such a change is answered by one read. Only when that shows more than that the place still
// waits, the step is looked at, with all that it depends on.

// besidePlaces returns the changes without those of placeholders that still wait.
func besidePlaces(ctx context.Context, r *run, news clusters.Changes) clusters.Changes {
	if r.last.Kind != Waiting || r.last.ID != reasons.PlaceNotReady {
		return news
	}
	wave := r.preparation.lacking
	for o := range wave.Ordinals.All() {
		key := clusters.PodKey(r.plan, wave.To(), r.plan.Place(wave.To(), o))
		news = news.Without(key, func() bool { return placeWaits(ctx, r, wave, o, key) })
	}
	return news
}

// placeWaits reports whether the place of an ordinal of a wave still waits, as far as its placeholder alone shows that. It
// reports what it waits for now.
func placeWaits(ctx context.Context, r *run, wave plans.Step, ordinal int32, key clusters.ObjectKey) bool {
	was, looked := r.observer.reads.Objects[key].(*corev1.Pod)
	if !looked {
		return false
	}
	now, err := clusters.Get[corev1.Pod](ctx, r.on[wave.To()], key.Namespace, key.Name, r.plan.On(wave.To()).String())
	if err != nil || now == nil || !placeholder.StillWaits(r.plan, was, now) {
		return false
	}
	r.observer.reads.Objects[key] = now
	says := func(pod *corev1.Pod) string {
		return placeholder.Waits(r.plan, wave, ordinal, placeholder.Read(pod).Words())
	}
	if r.last.Reason == says(was) { // else another ordinal of the wave is what it waits for
		r.report(Progress{Kind: Waiting, Step: r.last.Step, ID: r.last.ID, Reason: says(now)})
	}
	return true
}
