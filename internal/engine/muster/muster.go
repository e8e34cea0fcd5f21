// Package muster notes which ordinals are up. What the application and the checks have answered before a wave leaves is
// void once an ordinal has become unavailable since, also if it is back (S19). It does not ask what the ordinals are, and
// compares no clock with that of a node.
package muster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Roll is who was up when it was called last. The zero value knows of none.
type Roll struct {
	wave plans.Slice
	up   map[place]string
}

type place struct {
	side    plans.Side
	ordinal int32
}

// Call calls the roll before a wave leaves, with the pods of both sides. It returns which ordinal was up at the last call
// and has become unavailable since, or "". The ordinals of the wave before may have moved since.
func (r *Roll) Call(ctx context.Context, w clusters.Pair, wave plans.Slice) (gone string, err error) {
	now := map[place]string{}
	for _, side := range plans.Sides() {
		pods, err := w.EveryPod(ctx, side)
		if err != nil {
			return "", err
		}
		byName := map[string]*corev1.Pod{}
		for i := range pods {
			byName[pods[i].Name] = &pods[i]
		}
		for o := range w.Plan.Ordinals().All() {
			if since := upSince(byName[w.Plan.Pod(o)]); since != "" {
				now[place{side, o}] = since
			}
		}
	}
	was := *r
	r.wave, r.up = wave, now
	for o := range w.Plan.Ordinals().All() {
		for _, side := range plans.Sides() {
			at := place{side, o}
			if before, up := was.up[at]; up && before != now[at] && (was.wave == wave || !was.wave.Has(o)) {
				return fmt.Sprintf("pod %s of %s was unavailable", w.Plan.Pod(o), w.Plan.On(side)), nil
			}
		}
	}
	return "", nil
}

// upSince tells one time that a pod is up from another one, or returns "" while it is not up.
func upSince(pod *corev1.Pod) string {
	if pod == nil || pod.DeletionTimestamp != nil {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return fmt.Sprintf("%s %d", pod.UID, c.LastTransitionTime.Unix())
		}
	}
	return ""
}
