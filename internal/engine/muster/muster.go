// Package muster notes how the ordinals are. What the application and the checks have answered before a wave leaves is
// void once an ordinal has become unavailable since, also if it is back, and once one is back that was not there when they
// answered (S19). It does not ask what the ordinals are, and compares no clock with that of a node.
package muster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Roll is how the ordinals were when it was called last. The zero value knows of none.
type Roll struct {
	wave   plans.Slice
	called map[place]string
}

type place struct {
	side    plans.Side
	ordinal int32
}

// Call calls the roll before a wave leaves, with the pods of both sides. It returns which ordinal was unavailable at the
// last call or since then, and is no longer as it was, or "". The ordinals of the wave before may have moved since.
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
			now[place{side, o}] = stands(byName[w.Plan.Pod(side, o)])
		}
	}
	was := *r
	r.wave, r.called = wave, now
	if was.called == nil {
		return "", nil
	}
	for o := range w.Plan.Ordinals().All() {
		for _, side := range plans.Sides() {
			at := place{side, o}
			if was.called[at] != now[at] && (was.wave == wave || !was.wave.Has(o)) {
				return fmt.Sprintf("pod %s of %s was unavailable", w.Plan.Pod(side, o), w.Plan.On(side)), nil
			}
		}
	}
	return "", nil
}

// stands tells one time that a pod is up, or down, from another one. It returns "" for a pod that is not there or was
// never up. A pod that is down for another time than before has been up between.
func stands(pod *corev1.Pod) string {
	switch {
	case pod == nil:
		return ""
	case pod.DeletionTimestamp != nil:
		return fmt.Sprintf("%s ends", pod.UID)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return fmt.Sprintf("%s %s %d", pod.UID, c.Status, c.LastTransitionTime.Unix())
		}
	}
	return ""
}
