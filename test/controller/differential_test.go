package controller_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/today"
)

// aDay is how many scripts are run by default, other ones every day. allSeeds is how many were found to be clean
// together.
const aDay, allSeeds = 6, 500

// seeds returns the seeds of the scripts: those of the day (DIFFERENTIAL_DAY plays another one), or as many as
// DIFFERENTIAL_SEEDS says.
func seeds(t *testing.T) []uint64 {
	t.Helper()
	first, n := uint64(today.Day("DIFFERENTIAL_DAY"))*aDay, uint64(aDay)
	if asked, err := strconv.ParseUint(os.Getenv("DIFFERENTIAL_SEEDS"), 10, 32); err == nil {
		first, n = 0, asked
	}
	var out []uint64
	for k := range n {
		out = append(out, (first+k)%max(n, allSeeds))
	}
	return out
}

// Both controllers get the same script. They must do the same in the same order, and leave the same
// objects: with a start that is set, raised and lowered (3335-49), and without one (3335-03, 3335-40).
func TestDoesWhatTheBuiltInControllerDoes(t *testing.T) {
	t.Parallel()
	minor := minorOf(t)
	var met sync.Map // by rule, the differences that were met
	t.Run("scripts", func(t *testing.T) {
		for _, seed := range seeds(t) {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(seed, 961))
				tw := newTwins(t, fmt.Sprintf("seed-%d", seed))
				tw.minor, tw.met = minor, &met
				tw.script(r)
				tw.both(func(s *side) error {
					return s.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
				})
			})
		}
	})
	for _, d := range differences() {
		if times, ok := met.Load(d.rule); ok {
			t.Logf("%s was met %d times", d.rule, times.(*atomic.Int64).Load())
		} else if len(seeds(t)) >= allSeeds && minor >= d.from {
			t.Errorf("%s was never met: it is no difference any more, or the scripts do not go there", d.rule)
		}
	}
}

// script creates a set and changes it at random.
func (tw *twins) script(r *rand.Rand) {
	tw.t.Helper()
	set := randomSet(r)
	tw.play("create "+words(set), func(s *side) error {
		set := set.DeepCopy()
		set.Namespace = s.namespace
		return s.Create(tw.t.Context(), set)
	})
	for range 8 {
		if tw.t.Failed() || tw.parted {
			return
		}
		tw.act(r)
	}
	if tw.t.Failed() || tw.parted {
		return
	}
	var builtIn, ours facts
	set = tw.set()
	_ = wait.PollUntilContextTimeout(tw.t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		builtIn, ours = tw.told()
		return !slices.ContainsFunc(apart(builtIn, ours), func(about string) bool {
			_, ok := tw.meant(about, set, builtIn, ours)
			return !ok
		}), nil
	}) // events arrive late; remaining differences are compared
	tw.compare("the events", set, builtIn, ours)
}

// minorOf returns the minor version of the clusters.
func minorOf(t *testing.T) int {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(bed.East.Config())
	if err != nil {
		t.Fatal(err)
	}
	v, err := d.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	minor, err := strconv.Atoi(v.Minor)
	if err != nil {
		t.Fatal(err)
	}
	return minor
}

// play runs do on both sides, and compares the results.
func (tw *twins) play(what string, do func(*side) error) {
	tw.t.Helper()
	tw.both(do)
	tw.rest()
	set := tw.set()
	var left [2]facts
	// A status that a busy machine has written late may still look as it did before the last pod went. It is only
	// late if it becomes the same; pods and everything else are compared as they are.
	_ = wait.PollUntilContextTimeout(tw.t.Context(), quiet, 3*time.Second, true, func(context.Context) (bool, error) {
		left = tw.left()
		return !slices.ContainsFunc(apart(left[0], left[1]), func(about string) bool { return strings.HasPrefix(about, "status ") }), nil
	})
	for k, s := range tw.sides {
		trace := s.taken()
		if set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
			slices.Sort(trace)
		}
		left[k]["did"] = strings.Join(trace, " ")
	}
	tw.t.Logf("%s: %s", what, left[0]["did"])
	tw.compare(what, set, left[0], left[1])
}

// left returns what both sides have now.
func (tw *twins) left() (left [2]facts) {
	tw.t.Helper()
	for k, s := range tw.sides {
		var err error
		if left[k], err = s.facts(tw.t.Context()); err != nil {
			tw.t.Fatal(err)
		}
	}
	return left
}

// compare fails for differences that are not intended.
func (tw *twins) compare(what string, set *appsv1.StatefulSet, builtIn, ours facts) {
	tw.t.Helper()
	for _, about := range apart(builtIn, ours) {
		d, ok := tw.meant(about, set, builtIn, ours)
		if !ok {
			tw.t.Errorf("%s: %s is under the built-in controller (-) and ours (+)\n- %s\n+ %s", strings.SplitN(what, ",", 2)[0], about, builtIn[about], ours[about])
			continue
		}
		times, _ := tw.met.LoadOrStore(d.rule, new(atomic.Int64))
		times.(*atomic.Int64).Add(1)
		tw.parted = tw.parted || d.parts
	}
}

// meant returns the intended difference that the one about a fact is, and whether there is one.
func (tw *twins) meant(about string, set *appsv1.StatefulSet, builtIn, ours facts) (difference, bool) {
	return meant(tw.minor, about, seen{set, builtIn[about], ours[about], phaseOfPod(about, builtIn) == "", stuck(ours), phaseOfPod(about, builtIn) == string(corev1.PodPending), outrun(builtIn)})
}

// stuck reports whether a claim was deleted and remains.
func stuck(f facts) bool {
	for about, what := range f {
		if strings.HasPrefix(about, "claim ") && strings.HasSuffix(about, " going") && what == "true" {
			return true
		}
	}
	return false
}

// outrun reports whether a controller reported a conflict with a newer object. It then does
// not report what it did before.
func outrun(f facts) bool { return slices.ContainsFunc(slices.Collect(maps.Keys(f)), outrunning) }

// outrunning reports whether a fact is an event about a conflict with a newer object.
func outrunning(about string) bool {
	return strings.HasPrefix(about, "event Failed") && strings.Contains(about, "the object has been modified")
}

// phaseOfPod returns the phase of the pod of the claim that a fact is about, or "" if there is none.
func phaseOfPod(about string, f facts) string {
	claim, found := strings.CutPrefix(about, "claim ")
	_, pod, _ := strings.Cut(strings.SplitN(claim, " ", 2)[0], "-")
	if !found {
		return "no claim"
	}
	return f["pod "+pod+" phase"]
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func randomSet(r *rand.Rand) *appsv1.StatefulSet {
	labels := map[string]string{"app": "web"}
	n := r.Int32N(4)
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"team": "shop"}, Annotations: map[string]string{"a": "b"}},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &n, ServiceName: "web", Selector: &metav1.LabelSelector{MatchLabels: labels},
			PodManagementPolicy: pick(r, appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"of": "the pod template"}},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "web", Image: "web"}},
					Volumes:    []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				},
			},
			UpdateStrategy:                       randomStrategy(r),
			PersistentVolumeClaimRetentionPolicy: randomRetention(r),
			MinReadySeconds:                      pick[int32](r, 0, 0, soonAvailable),
		},
	}
	if r.IntN(2) == 0 {
		set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: r.Int32N(3)}
	}
	if r.IntN(2) == 0 {
		limit := r.Int32N(3)
		set.Spec.RevisionHistoryLimit = &limit
	}
	for _, name := range pick(r, nil, []string{"data"}, []string{"data", "log"}) {
		claim := claimOf(name)
		claim.Annotations, claim.Finalizers = map[string]string{"of": name}, pick(r, nil, []string{kept})
		set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, claim)
		set.Spec.Template.Spec.Containers[0].VolumeMounts = append(set.Spec.Template.Spec.Containers[0].VolumeMounts, mountOf(name)...)
	}
	return set
}

// kept is a finalizer that no controller removes while a script runs.
const kept = "test.stsmigrate.dev/kept"

func mountOf(claim string) []corev1.VolumeMount {
	return []corev1.VolumeMount{{Name: claim, MountPath: "/" + claim}}
}

func claimOf(name string) corev1.PersistentVolumeClaim {
	class := cluster.SharedClass
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": name}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func randomStrategy(r *rand.Rand) appsv1.StatefulSetUpdateStrategy {
	partition := r.Int32N(3)
	many := pick(r, intstr.FromInt32(2), intstr.FromString("50%"))
	rolling := func(block *appsv1.RollingUpdateStatefulSetStrategy) appsv1.StatefulSetUpdateStrategy {
		return appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: block}
	}
	return pick(r,
		appsv1.StatefulSetUpdateStrategy{},
		rolling(nil), // RV-12
		rolling(&appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition}),
		rolling(&appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &many}),
		rolling(&appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition, MaxUnavailable: &many}),
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

// act makes one random change.
func (tw *twins) act(r *rand.Rand) {
	tw.t.Helper()
	_, pods, err := tw.sides[0].read(tw.t.Context())
	if err != nil {
		tw.t.Fatal(err)
	}
	acts := []func(*rand.Rand){tw.scale, tw.scale, tw.retemplate, tw.retemplate, tw.restrategize, tw.reretain, tw.reready, tw.refuse}
	if len(pods) > 0 {
		pod := pick(r, pods...)
		acts = append(acts,
			func(*rand.Rand) { tw.remove(pod) },
			func(*rand.Rand) { tw.end(pod, pick(r, corev1.PodFailed, corev1.PodSucceeded)) },
			func(*rand.Rand) { tw.orphan(pod) },
			func(*rand.Rand) { tw.unclaim(pod) },
			func(*rand.Rand) { tw.mark("break", []corev1.Pod{pod}, `"true"`) },
			func(*rand.Rand) { tw.mark("heal all", pods, "null") },
		)
	}
	pick(r, acts...)(r)
}

func (tw *twins) scale(r *rand.Rand) {
	n, k := r.Int32N(5), r.Int32N(3)
	tw.edit(fmt.Sprintf("range %d+%d", k, n), func(s *appsv1.StatefulSet) {
		s.Spec.Replicas, s.Spec.Ordinals = &n, &appsv1.StatefulSetOrdinals{Start: k}
	})
}

// retemplate changes the template. One in five templates fits no node.
func (tw *twins) retemplate(r *rand.Rand) {
	version, nowhere := fmt.Sprint(r.IntN(4)), r.IntN(5) == 0
	tw.edit(fmt.Sprintf("template %s, nowhere %t", version, nowhere), func(s *appsv1.StatefulSet) {
		s.Spec.Template.Annotations["version"], s.Spec.Template.Spec.NodeSelector = version, nil
		if nowhere {
			s.Spec.Template.Spec.NodeSelector = map[string]string{"there": "is-none"}
		}
	})
}

func (tw *twins) restrategize(r *rand.Rand) {
	next := randomStrategy(r)
	tw.edit(fmt.Sprintf("strategy %s", text(next)), func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy = next })
}

func (tw *twins) reretain(r *rand.Rand) {
	next := randomRetention(r)
	tw.edit(fmt.Sprintf("retention %v", next), func(s *appsv1.StatefulSet) { s.Spec.PersistentVolumeClaimRetentionPolicy = next })
}

func (tw *twins) reready(r *rand.Rand) {
	next := pick[int32](r, 0, soonAvailable, neverAvailable)
	tw.edit(fmt.Sprintf("minReadySeconds %d", next), func(s *appsv1.StatefulSet) { s.Spec.MinReadySeconds = next })
}

// refused marks sets in whose namespace no pod can be created.
const refused = "test.stsmigrate.dev/refused"

// refuse makes a namespace refuse all pods, or accept them again. A quota is no
// alternative: its counts arrive late.
func (tw *twins) refuse(*rand.Rand) {
	limit := func(s *side) *corev1.LimitRange {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "none"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypePod, Min: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		}}}
	}
	no := tw.set().Annotations[refused] == ""
	tw.play(fmt.Sprintf("no pod is let in: %t", no), func(s *side) error {
		set, _, err := s.read(tw.t.Context())
		if err != nil {
			return err
		}
		after := set.DeepCopy()
		if no {
			after.Annotations[refused], err = "true", s.Create(tw.t.Context(), limit(s))
		} else {
			delete(after.Annotations, refused)
			err = s.Delete(tw.t.Context(), limit(s))
		}
		if err != nil {
			return err
		}
		if err := s.refuses(tw.t.Context(), no); err != nil {
			return err
		}
		return s.Patch(tw.t.Context(), after, client.MergeFrom(set))
	})
}

// refuses waits until the API server refuses pods, or accepts them again.
func (s *side) refuses(ctx context.Context, no bool) error {
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "probe"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}}
		err := s.Create(ctx, probe, client.DryRunAll)
		if err != nil && !apierrors.IsForbidden(err) {
			return false, err
		}
		return (err != nil) == no, nil
	})
}

func (tw *twins) remove(pod corev1.Pod) {
	tw.play("delete "+pod.Name, func(s *side) error {
		return s.Delete(tw.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: pod.Name}})
	})
}

// end ends a pod with a phase, as an eviction by its kubelet does.
func (tw *twins) end(pod corev1.Pod, phase corev1.PodPhase) {
	tw.play(fmt.Sprintf("%s is %s", pod.Name, phase), func(s *side) error {
		return s.Status().Patch(tw.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: pod.Name}}, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"`+string(phase)+`"}}`)))
	})
}

// orphan removes the owner of a pod. Its set adopts the pod again.
func (tw *twins) orphan(pod corev1.Pod) {
	tw.play("orphan "+pod.Name, func(s *side) error {
		return s.Patch(tw.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: pod.Name}}, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`)))
	})
}

// unclaim deletes the claims of a pod. They are gone when no running pod mounts them.
func (tw *twins) unclaim(pod corev1.Pod) {
	tw.play("delete the claims of "+pod.Name, func(s *side) error {
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim == nil {
				continue
			}
			claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: v.PersistentVolumeClaim.ClaimName}}
			err := s.Get(tw.t.Context(), client.ObjectKeyFromObject(&claim), &claim)
			if err == nil && !slices.Contains(claim.Finalizers, kept) {
				err = s.Delete(tw.t.Context(), &claim)
			}
			if client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return nil
	})
}

// edit changes the set on both sides.
func (tw *twins) edit(what string, change func(*appsv1.StatefulSet)) {
	tw.t.Helper()
	tw.play(what, func(s *side) error {
		set, _, err := s.read(tw.t.Context())
		if err != nil {
			return err
		}
		after := set.DeepCopy()
		change(after)
		return s.Patch(tw.t.Context(), after, client.MergeFrom(set))
	})
}

// set returns the set as it is in the east.
func (tw *twins) set() *appsv1.StatefulSet {
	tw.t.Helper()
	set, _, err := tw.sides[0].read(tw.t.Context())
	if err != nil {
		tw.t.Fatal(err)
	}
	return set
}

// mark breaks pods, or repairs them.
func (tw *twins) mark(what string, pods []corev1.Pod, value string) {
	tw.t.Helper()
	for _, p := range pods {
		what += " " + p.Name
	}
	tw.play(what, func(s *side) error {
		for _, p := range pods {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+cluster.NeverReady+`":`+value+`}}}`))
			if err := s.Patch(context.WithoutCancel(tw.t.Context()), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: p.Name}}, patch); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return nil
	})
}
