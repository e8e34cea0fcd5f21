package rollout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// Rollout controls the update of a set of either kind on behalf of a user, as `kubectl rollout` does for
// Deployments. Every write is bound to the version of the set that was read.
type Rollout struct {
	On  client.Client
	Set plans.Ref
	// Kubectl is the beginning of a command line for the set's namespace, for messages that say what to type.
	Kubectl string
	// Again has the flags with which a later command of this program finds the set, for such messages.
	Again string
}

// A StatefulSet has no field that pauses it. So Pause sets a partition that protects all of its pods, and an
// annotation keeps the former partition.
const (
	pausedFrom = sets.PausedFrom
	// noPartition is the value of the annotation if the set had no partition.
	noPartition = "none"
	// protectsAll is a partition that no set outgrows. The partition is an offset from the first ordinal:
	// one equal to the number of replicas would not protect pods that are added later.
	protectsAll int64 = math.MaxInt32
)

// restartedAt is the annotation of a pod template that `kubectl rollout restart` sets.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// Pause prevents the controller of the set from replacing pods for an update. It reports whether it changed
// the set.
func (r Rollout) Pause(ctx context.Context) (changed bool, err error) {
	set, err := r.read(ctx)
	if err != nil {
		return false, err
	}
	held, err := r.paused(set)
	if err != nil || held {
		return false, err
	}
	switch kind := strategyOf(set); kind {
	case appsv1.OnDeleteStatefulSetStrategyType:
		return false, fmt.Errorf("%s has the update strategy OnDelete: its pods are replaced when a user deletes them, and there is nothing to pause", r.Set.Set())
	case appsv1.RollingUpdateStatefulSetStrategyType, v1alpha1.EnforcedRollingUpdate:
	default:
		return false, fmt.Errorf("%s has the update strategy %s, which this release does not know how to pause: expected RollingUpdate", r.Set.Set(), kind)
	}
	return true, r.change(ctx, set, func(next *unstructured.Unstructured) error {
		if r.Set.IsSlice() {
			return unstructured.SetNestedField(next.Object, true, "spec", "paused")
		}
		was := noPartition
		if p, there := partitionOf(set); there {
			was = strconv.FormatInt(p, 10)
		}
		annotate(next, pausedFrom, was)
		return unstructured.SetNestedField(next.Object, protectsAll, partitionPath()...)
	})
}

// Resume lets the controller continue, and reports whether it changed the set. A StatefulSet gets its former
// partition back.
func (r Rollout) Resume(ctx context.Context) (changed bool, err error) {
	set, err := r.read(ctx)
	if err != nil {
		return false, err
	}
	held, err := r.paused(set)
	if err != nil || !held {
		return false, err
	}
	return true, r.change(ctx, set, func(next *unstructured.Unstructured) error {
		if r.Set.IsSlice() {
			unstructured.RemoveNestedField(next.Object, "spec", "paused")
			return nil
		}
		was := set.GetAnnotations()[pausedFrom]
		annotate(next, pausedFrom, "")
		if was == noPartition {
			unstructured.RemoveNestedField(next.Object, partitionPath()...)
			return nil
		}
		partition, err := strconv.ParseInt(was, 10, 32)
		if err != nil || partition < 0 {
			return fmt.Errorf("annotation %s of %s is %q: expected the partition that it had before it was paused, or %s; put that right, or set the partition and take the annotation off", pausedFrom, r.Set.Set(), was, noPartition)
		}
		return unstructured.SetNestedField(next.Object, partition, partitionPath()...)
	})
}

// Restart sets an annotation with the time on the pod template, as kubectl does, so that every pod is
// replaced. It fails for a set that is paused.
func (r Rollout) Restart(ctx context.Context, now time.Time) error {
	set, err := r.read(ctx)
	if err != nil {
		return err
	}
	held, err := r.paused(set)
	if err != nil {
		return err
	}
	if held {
		return fmt.Errorf("%s is paused: resume it first (rollout resume), and run the command again", r.Set.Set())
	}
	return r.change(ctx, set, func(next *unstructured.Unstructured) error {
		return unstructured.SetNestedField(next.Object, now.Format(time.RFC3339), "spec", "template", "metadata", "annotations", restartedAt)
	})
}

func (r Rollout) read(ctx context.Context) (*unstructured.Unstructured, error) {
	set, err := entire(ctx, r.On, r.Set)
	if err != nil {
		return nil, err
	}
	if set == nil {
		return nil, fmt.Errorf("%s does not exist: check name, --namespace and --context", r.Set.Set())
	}
	if s, marked := plans.Stamped(set); marked {
		return nil, fmt.Errorf("%s is being moved by plan %s, and is left unchanged until the move ends: finish that first", r.Set.Set(), s.Plan)
	}
	return set, nil
}

// paused reports whether the set is paused. It fails if another writer has changed the partition of a paused
// StatefulSet.
func (r Rollout) paused(set *unstructured.Unstructured) (bool, error) {
	if r.Set.IsSlice() {
		held, _, err := unstructured.NestedBool(set.Object, "spec", "paused")
		return held, err
	}
	was, noted := set.GetAnnotations()[pausedFrom]
	if !noted {
		return false, nil
	}
	if p, there := partitionOf(set); !there || p != protectsAll {
		return false, fmt.Errorf("%s was paused with partition %d, and another writer has changed its update strategy since (the partition was %s before): set the partition that you want, and end the pause: %s annotate statefulset %s %s-",
			r.Set.Set(), protectsAll, was, r.Kubectl, r.Set.Name, pausedFrom)
	}
	return true, nil
}

// change writes the set that how makes of was, unless the set has changed since it was read.
func (r Rollout) change(ctx context.Context, was *unstructured.Unstructured, how func(*unstructured.Unstructured) error) error {
	next := was.DeepCopy()
	if err := how(next); err != nil {
		return err
	}
	err := writes.Change(ctx, r.On, was, next)
	switch {
	case apierrors.IsConflict(err):
		return changedMeanwhile(r.Set)
	case err != nil:
		return fmt.Errorf("%s: %w", r.Set.Set(), err)
	}
	return nil
}

func changedMeanwhile(set plans.Ref) error {
	return errors.New(set.Set() + " was changed while this ran: check it, and run the command again")
}

// entire reads a set as its own kind, with the fields that this program does not know. It returns nil if
// there is no such set.
func entire(ctx context.Context, on client.Client, set plans.Ref) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(plans.NativeKind))
	if set.IsSlice() {
		u.SetGroupVersionKind(v1alpha1.Kind())
	}
	err := on.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: set.Name}, u)
	return clusters.FoundSet(u, set, err)
}

func partitionPath() []string {
	return []string{"spec", "updateStrategy", "rollingUpdate", "partition"}
}

// partitionOf returns the partition of a StatefulSet, and whether it has one.
func partitionOf(set *unstructured.Unstructured) (partition int64, there bool) {
	partition, there, err := unstructured.NestedInt64(set.Object, partitionPath()...)
	return partition, there && err == nil
}

// strategyOf returns the update strategy of a set of either kind.
func strategyOf(set *unstructured.Unstructured) appsv1.StatefulSetUpdateStrategyType {
	kind, _, _ := unstructured.NestedString(set.Object, "spec", "updateStrategy", "type")
	if kind == "" {
		return appsv1.RollingUpdateStatefulSetStrategyType
	}
	return appsv1.StatefulSetUpdateStrategyType(kind)
}

// annotate sets an annotation; an empty value removes it.
func annotate(o client.Object, name, value string) {
	notes := o.GetAnnotations()
	if value == "" {
		delete(notes, name)
	} else {
		if notes == nil {
			notes = map[string]string{}
		}
		notes[name] = value
	}
	o.SetAnnotations(notes)
}
