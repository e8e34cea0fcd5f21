package rollout

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// rolledSet returns a set of three replicas whose update is complete.
func rolledSet(change ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	n := int32(3)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Generation: 2}}
	set.Spec.Replicas, set.Spec.Selector = &n, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, UpdatedReplicas: 3, CurrentRevision: "web-b", UpdateRevision: "web-b"}
	for _, c := range change {
		c(set)
	}
	return set
}

func parted(n int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) {
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &n}
	}
}

func strategy(kind appsv1.StatefulSetUpdateStrategyType) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = kind }
}

func annotated(name, value string) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, name, value) }
}

// rolls returns a cluster with the set, as a slice or as a StatefulSet.
func rolls(slice bool, set *appsv1.StatefulSet, pods ...client.Object) (Rollout, client.WithWatch) {
	ref := plans.Ref{Namespace: "shop", Name: "web"}
	var there client.Object = set
	if slice {
		ref.Kind, there = plans.SliceKind, v1alpha1.FromNative(set)
	}
	on := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(append(pods, there)...).Build()
	return Rollout{On: on, Set: ref, Kubectl: "kubectl --context my-east -n shop"}, on
}

func (r Rollout) stored(t *testing.T) *appsv1.StatefulSet {
	t.Helper()
	set, err := clusters.ReadSet(t.Context(), clusters.InWordsOf(r.On, r.Set), r.Set)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Resume restores everything that Pause changed of a StatefulSet.
func TestAStatefulSetGetsThePartitionBackThatItHad(t *testing.T) {
	for name, change := range map[string]func(*appsv1.StatefulSet){
		"a partition": parted(2),
		"0":           parted(0),
		"none": func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := rolledSet(change)
			r, _ := rolls(false, set)
			changed, err := r.Pause(t.Context())
			now := r.stored(t)
			if p := now.Spec.UpdateStrategy.RollingUpdate.Partition; err != nil || !changed || p == nil || int64(*p) != protectsAll {
				t.Fatalf("%v %v: %+v", changed, err, now.Spec.UpdateStrategy.RollingUpdate)
			}
			if changed, err := r.Pause(t.Context()); err != nil || changed || r.stored(t).ResourceVersion != now.ResourceVersion {
				t.Errorf("paused again: %v %v", changed, err)
			}
			if changed, err := r.Resume(t.Context()); err != nil || !changed {
				t.Fatalf("%v %v", changed, err)
			}
			back := r.stored(t)
			if len(back.Annotations) > 0 || back.Spec.UpdateStrategy.String() != set.Spec.UpdateStrategy.String() {
				t.Errorf("%v, strategy %+v, expected %+v", back.Annotations, back.Spec.UpdateStrategy, set.Spec.UpdateStrategy)
			}
			if changed, err := r.Resume(t.Context()); err != nil || changed {
				t.Errorf("resumed again: %v %v", changed, err)
			}
		})
	}
}

func TestASliceIsPausedByItsField(t *testing.T) {
	for _, kind := range []appsv1.StatefulSetUpdateStrategyType{v1alpha1.RollingUpdate, v1alpha1.EnforcedRollingUpdate} {
		r, on := rolls(true, rolledSet(strategy(kind), parted(2)))
		paused := func() bool {
			var s v1alpha1.StatefulSetSlice
			if err := on.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &s); err != nil || len(s.Annotations) > 0 || *r.stored(t).Spec.UpdateStrategy.RollingUpdate.Partition != 2 {
				t.Errorf("%v: %v, strategy %+v", err, s.Annotations, s.Spec.UpdateStrategy)
			}
			return s.Spec.Paused
		}
		if changed, err := r.Pause(t.Context()); err != nil || !changed || !paused() {
			t.Errorf("%v %v, paused %v", changed, err, paused())
		}
		if changed, err := r.Pause(t.Context()); err != nil || changed {
			t.Errorf("paused again: %v %v", changed, err)
		}
		if changed, err := r.Resume(t.Context()); err != nil || !changed || paused() {
			t.Errorf("%v %v, paused %v", changed, err, paused())
		}
	}
}

// An impossible request fails with one sentence, and nothing is written.
func TestWhatCannotBeDoneToAnUpdateIsNotBegun(t *testing.T) {
	pause := func(ctx context.Context, r Rollout) error { _, err := r.Pause(ctx); return err }
	resume := func(ctx context.Context, r Rollout) error { _, err := r.Resume(ctx); return err }
	restart := func(ctx context.Context, r Rollout) error {
		return r.Restart(ctx, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	}
	held := func(was string) []func(*appsv1.StatefulSet) {
		return []func(*appsv1.StatefulSet){parted(int32(protectsAll)), annotated(pausedFrom, was)}
	}
	moving := annotated(plans.StampAnnotation, "tidy/1/2")
	for _, c := range []struct {
		name  string
		slice bool
		set   *appsv1.StatefulSet
		do    func(context.Context, Rollout) error
		want  string
	}{
		{"OnDelete", false, rolledSet(strategy("OnDelete")), pause, "there is nothing to pause"},
		{"OnDelete of a slice", true, rolledSet(strategy("OnDelete")), pause, "there is nothing to pause"},
		{"a strategy of a later Kubernetes", false, rolledSet(strategy("Recreate")), pause, "Recreate"},
		{"somebody has set the partition", false, rolledSet(parted(1), annotated(pausedFrom, "2")), resume, "another writer has changed its update strategy since (the partition was 2 before): set the partition that you want, and end the pause: kubectl --context my-east -n shop annotate"},
		{"and pauses again", false, rolledSet(parted(1), annotated(pausedFrom, "2")), pause, "another writer has changed its update strategy since"},
		{"somebody has taken it off", false, rolledSet(strategy("OnDelete"), annotated(pausedFrom, "2")), resume, "another writer has changed its update strategy since"},
		{"the annotation is no number", false, rolledSet(held("two")...), resume, `is "two"`},
		{"nor one below 0", false, rolledSet(held("-1")...), resume, `is "-1"`},
		{"a restart of what is paused", false, rolledSet(held("0")...), restart, "is paused"},
		{"a set that is moved is paused", false, rolledSet(moving), pause, "is being moved by plan tidy"},
		{"a slice that is moved is resumed", true, rolledSet(moving), resume, "is being moved by plan tidy"},
		{"a set that is moved is restarted", false, rolledSet(moving), restart, "is being moved by plan tidy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := rolls(c.slice, c.set)
			was := r.stored(t).ResourceVersion
			if err := c.do(t.Context(), r); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, expected %q in it", err, c.want)
			}
			if r.stored(t).ResourceVersion != was {
				t.Error("something was written")
			}
			none := Rollout{On: r.On, Set: plans.Ref{Namespace: "shop", Name: "none", Kind: r.Set.Kind}}
			if err := c.do(t.Context(), none); err == nil || !strings.Contains(err.Error(), "shop/none does not exist") {
				t.Errorf("of a set that is not there: %v", err)
			}
		})
	}
}

// No change of another writer is overwritten.
func TestWhoeverChangesASetMeanwhileIsHeard(t *testing.T) {
	r, on := rolls(false, rolledSet(parted(0)))
	r.On = interceptor.NewClient(on, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		var other appsv1.StatefulSet
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), &other); err != nil {
			return err
		}
		other.Labels = map[string]string{"a": "b"}
		return errors.Join(c.Update(ctx, &other), c.Patch(ctx, o, p, opts...))
	}})
	if _, err := r.Pause(t.Context()); err == nil || !strings.Contains(err.Error(), "StatefulSet shop/web was changed while this ran") {
		t.Errorf("%v", err)
	}
	r.On = interceptor.NewClient(on, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "statefulsets"}, "web", errors.New("no"))
	}})
	if _, err := r.Pause(t.Context()); err == nil || !strings.Contains(err.Error(), "StatefulSet shop/web: ") || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("%v", err)
	}
}

func TestARestartIsThatOfKubectl(t *testing.T) {
	for _, slice := range []bool{false, true} {
		r, _ := rolls(slice, rolledSet())
		if err := r.Restart(t.Context(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)); err != nil {
			t.Fatal(err)
		}
		if got := r.stored(t).Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]; got != "2026-01-02T03:04:05Z" {
			t.Errorf("slice %v: %q", slice, got)
		}
	}
}

// rolledPod returns a pod of the set, of a revision, ready or not.
func rolledPod(name, revision string, isReady bool) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, Labels: map[string]string{"app": "web", appsv1.ControllerRevisionHashLabelKey: revision},
		OwnerReferences: []metav1.OwnerReference{{UID: "u", Controller: &yes}},
	}, Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if isReady {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return p
}
