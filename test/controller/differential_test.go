package controller_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/cluster"
)

// seeds is how many scripts are played; DIFFERENTIAL_SEEDS asks for more.
func seeds(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv("DIFFERENTIAL_SEEDS"), 10, 32)
	if err != nil {
		return 16
	}
	return n
}

// Both controllers get the same script, and must do the same in the same order. What is
// meant to differ is listed in docs/slicecontroller.md.
func TestDoesWhatTheBuiltInControllerDoes(t *testing.T) {
	for seed := range seeds(t) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 961))
			tw := newTwins(t, fmt.Sprintf("seed-%d", seed))
			set := randomSet(r)
			tw.play("create "+words(set), set, func(s *side) error {
				set := set.DeepCopy()
				set.Namespace = s.namespace
				return s.Create(t.Context(), set)
			})
			for range 8 {
				tw.act(r)
				if t.Failed() {
					return
				}
			}
			tw.compareEvents()
			tw.both(func(s *side) error {
				return s.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
			})
		})
	}
}

// play does something on both sides, and compares what comes of it.
func (tw *twins) play(what string, set *appsv1.StatefulSet, do func(*side) error) {
	tw.t.Helper()
	tw.both(do)
	tw.rest()
	var traces, states [2][]string
	for k, s := range tw.sides {
		traces[k] = s.taken()
		if set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
			slices.Sort(traces[k])
		}
		var err error
		if states[k], err = s.state(tw.t.Context()); err != nil {
			tw.t.Fatal(err)
		}
	}
	tw.t.Logf("%s: %s", what, strings.Join(traces[0], " "))
	if diff := cmp.Diff(traces[0], traces[1]); diff != "" {
		tw.t.Errorf("%s: the built-in controller (-) and ours (+) did\n%s", what, diff)
	}
	if diff := cmp.Diff(states[0], states[1]); diff != "" {
		tw.t.Errorf("%s: under the built-in controller (-) and ours (+) there is\n%s", what, diff)
	}
}

func (tw *twins) compareEvents() {
	tw.t.Helper()
	var told [2][]string
	for k, s := range tw.sides {
		var err error
		if told[k], err = s.told(tw.t.Context()); err != nil {
			tw.t.Fatal(err)
		}
	}
	if diff := cmp.Diff(told[0], told[1]); diff != "" {
		tw.t.Errorf("the built-in controller (-) and ours (+) have told\n%s", diff)
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func randomSet(r *rand.Rand) *appsv1.StatefulSet {
	labels := map[string]string{"app": "web"}
	n := r.Int32N(4)
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"team": "shop"}, Annotations: map[string]string{"a": "b"}},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &n, ServiceName: "web", Selector: &metav1.LabelSelector{MatchLabels: labels},
			PodManagementPolicy: pick(r, appsv1.OrderedReadyPodManagement, appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}, Volumes: []corev1.Volume{{Name: "scratch"}}},
			},
			UpdateStrategy:                       randomStrategy(r),
			PersistentVolumeClaimRetentionPolicy: randomRetention(r),
		},
	}
	if r.IntN(2) == 0 {
		set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: r.Int32N(3)}
	}
	if r.IntN(2) == 0 {
		limit := r.Int32N(3)
		set.Spec.RevisionHistoryLimit = &limit
	}
	if r.IntN(2) == 0 {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimOf("data")}
		set.Spec.Template.Spec.Containers[0].VolumeMounts = mountOf("data")
	}
	return set
}

func mountOf(claim string) []corev1.VolumeMount {
	return []corev1.VolumeMount{{Name: claim, MountPath: "/" + claim}}
}

func claimOf(name string) corev1.PersistentVolumeClaim {
	class := cluster.SharedClass
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": name}, Annotations: map[string]string{"kept": name}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func randomStrategy(r *rand.Rand) appsv1.StatefulSetUpdateStrategy {
	partition := r.Int32N(3)
	return pick(r,
		appsv1.StatefulSetUpdateStrategy{},
		appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}, // without the block: RV-12
		appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition}},
		appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
	)
}

func randomRetention(r *rand.Rand) *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	policy := func() appsv1.PersistentVolumeClaimRetentionPolicyType {
		return pick(r, appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
	}
	return &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: policy(), WhenScaled: policy()}
}

func words(s *appsv1.StatefulSet) string {
	start := int32(0)
	if s.Spec.Ordinals != nil {
		start = s.Spec.Ordinals.Start
	}
	return fmt.Sprintf("%s, start %d, replicas %d, %s, retention %v, %d claims", s.Spec.PodManagementPolicy, start, *s.Spec.Replicas, strategy(s), s.Spec.PersistentVolumeClaimRetentionPolicy, len(s.Spec.VolumeClaimTemplates))
}

func strategy(s *appsv1.StatefulSet) string {
	if ru := s.Spec.UpdateStrategy.RollingUpdate; ru != nil && ru.Partition != nil {
		return fmt.Sprintf("%s from %d", s.Spec.UpdateStrategy.Type, *ru.Partition)
	}
	return string(s.Spec.UpdateStrategy.Type)
}

// act does one thing at random.
func (tw *twins) act(r *rand.Rand) {
	tw.t.Helper()
	set, pods, err := tw.sides[0].read(tw.t.Context())
	if err != nil {
		tw.t.Fatal(err)
	}
	broken := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !isReady(&p) })
	switch op := r.IntN(10); {
	case op < 3 || len(pods) == 0:
		n, k := r.Int32N(5), r.Int32N(3)
		tw.edit(fmt.Sprintf("range %d+%d", k, n), func(s *appsv1.StatefulSet) {
			s.Spec.Replicas, s.Spec.Ordinals = &n, &appsv1.StatefulSetOrdinals{Start: k}
		})
	case op < 5:
		if broken && set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
			tw.mark("heal all", pods, "null") // MU-8: ours does not wait for broken pods of an old revision
		}
		version := fmt.Sprint(r.IntN(4))
		tw.edit("template "+version, func(s *appsv1.StatefulSet) {
			s.Spec.Template.Annotations = map[string]string{"version": version}
		})
	case op < 6:
		next := randomStrategy(r)
		tw.edit(fmt.Sprintf("strategy %s", next.Type), func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy = next })
	case op < 7:
		if broken {
			tw.mark("heal all", pods, "null") // CP-5: ours does not wait for pods to take references off their claims
		}
		next := randomRetention(r)
		tw.edit(fmt.Sprintf("retention %v", next), func(s *appsv1.StatefulSet) { s.Spec.PersistentVolumeClaimRetentionPolicy = next })
	case op < 8:
		pod := pick(r, pods...)
		tw.play("delete "+pod.Name, set, func(s *side) error {
			return s.Delete(tw.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: pod.Name}})
		})
	case op < 9 && set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement:
		tw.mark("break", []corev1.Pod{pick(r, pods...)}, `"true"`)
	default:
		tw.mark("heal all", pods, "null")
	}
}

// edit changes the sets.
func (tw *twins) edit(what string, change func(*appsv1.StatefulSet)) {
	tw.t.Helper()
	var after *appsv1.StatefulSet
	tw.play(what, &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{PodManagementPolicy: tw.policy()}}, func(s *side) error {
		set, _, err := s.read(tw.t.Context())
		if err != nil {
			return err
		}
		after = set.DeepCopy()
		change(after)
		return s.Patch(tw.t.Context(), after, client.MergeFrom(set))
	})
}

func (tw *twins) policy() appsv1.PodManagementPolicyType {
	set, _, err := tw.sides[0].read(tw.t.Context())
	if err != nil {
		tw.t.Fatal(err)
	}
	return set.Spec.PodManagementPolicy
}

// mark breaks pods, or heals them.
func (tw *twins) mark(what string, pods []corev1.Pod, value string) {
	tw.t.Helper()
	for _, p := range pods {
		what += " " + p.Name
	}
	tw.play(what, &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{PodManagementPolicy: tw.policy()}}, func(s *side) error {
		for _, p := range pods {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+cluster.NeverReady+`":`+value+`}}}`))
			if err := s.Patch(context.WithoutCancel(tw.t.Context()), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: p.Name}}, patch); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return nil
	})
}
