package clusters

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/reads"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Live returns the reader of a side whose answers are of this moment.
func (c Clusters) Live(side plans.Side) reads.Live { return reads.From(c[side]) }

// LivePair reads the objects of a plan as they are at this moment. Every other read is at most half a second old (Recent).
type LivePair struct{ pair Pair }

// Live returns the live reader of a pair.
func (w Pair) Live() LivePair { return LivePair{w} }

// Set reads the StatefulSet of a side.
func (l LivePair) Set(ctx context.Context, side plans.Side) (reads.Seen[*appsv1.StatefulSet], error) {
	set := l.pair.Plan.On(side)
	seen, err := reads.Get(ctx, l.pair.On.Live(side), client.ObjectKey{Namespace: set.Namespace, Name: set.Name}, &appsv1.StatefulSet{})
	_, err = FoundSet(seen.Object(), set, err)
	return seen, err
}

// Pod reads the pod of an ordinal.
func (l LivePair) Pod(ctx context.Context, side plans.Side, ordinal int32) (reads.Seen[*corev1.Pod], error) {
	ref := l.pair.Plan.On(side)
	return see(ctx, l.pair.On.Live(side), client.ObjectKey{Namespace: ref.Namespace, Name: l.pair.Plan.Pod(side, ordinal)}, ref.String(), &corev1.Pod{})
}

// Claim reads a claim of a side.
func (l LivePair) Claim(ctx context.Context, side plans.Side, name string) (reads.Seen[*corev1.PersistentVolumeClaim], error) {
	ref := l.pair.Plan.On(side)
	return see(ctx, l.pair.On.Live(side), client.ObjectKey{Namespace: ref.Namespace, Name: name}, ref.String(), &corev1.PersistentVolumeClaim{})
}

// Volume reads a volume of the cluster of a side.
func (l LivePair) Volume(ctx context.Context, side plans.Side, name string) (reads.Seen[*corev1.PersistentVolume], error) {
	return see(ctx, l.pair.On.Live(side), client.ObjectKey{Name: name}, "the "+string(side), &corev1.PersistentVolume{})
}

// Dependency reads a dependency on a side.
func (l LivePair) Dependency(ctx context.Context, side plans.Side, d plans.Dependency) (reads.Seen[client.Object], error) {
	o, namespace := object(d), l.pair.Plan.On(side).Namespace
	if o == nil {
		return reads.Seen[client.Object]{}, unknownKind(d)
	}
	seen, err := reads.Get(ctx, l.pair.On.Live(side), client.ObjectKey{Namespace: namespace, Name: d.Name}, o)
	if err != nil {
		err = fmt.Errorf("reading %s in namespace %s: %w", d, namespace, err)
	}
	return seen, err
}

// see reads an object. where names its owner in errors, as for Get.
func see[O client.Object](ctx context.Context, on reads.Live, key client.ObjectKey, where string, o O) (reads.Seen[O], error) {
	seen, err := reads.Get(ctx, on, key, o)
	if err != nil {
		err = fmt.Errorf("reading %s %s of %s: %w", strings.ToLower(KindOf(o)), key.Name, where, err)
	}
	return seen, err
}
