package witness

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	east = "shop"
	west = "shop-new"
)

// history returns a record of one cluster with two namespaces, at the start of a move of two ordinals.
func history() *record {
	r := newRecord("web", 1, [2]place{{0, east}, {0, west}})
	tell(r, set(east, 0, 2), set(west, 2, 0), pod(east, 0), pod(east, 1), volume("a", nil))
	r.begin()
	return r
}

func tell(r *record, objects ...runtime.Object) {
	for _, o := range objects {
		r.take(event{object: o, at: time.Now()})
	}
}

func end(r *record, objects ...runtime.Object) {
	for _, o := range objects {
		r.take(event{object: o, at: time.Now(), gone: true})
	}
}

func set(namespace string, start, replicas int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, Ordinals: &appsv1.StatefulSetOrdinals{Start: start}},
	}
}

func pod(namespace string, o int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("web-%d", o)},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	}
}

func dying(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return p
}

func volume(name string, change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{held: "Delete"}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: east, Name: "data-web-0"},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}},
		},
	}
	if change != nil {
		change(pv)
	}
	return pv
}

func budget(namespace string, allowed int32, change func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Annotations: map[string]string{stamp: "x"}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
	if change != nil {
		change(b)
	}
	return b
}

func TestSeesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*record)
		want    []string
	}{
		"a proper move": {func(r *record) {
			tell(r, set(east, 0, 1), dying(pod(east, 1)))
			end(r, pod(east, 1))
			tell(r, volume("a", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.Namespace = west }), set(west, 1, 1), pod(west, 1))
		}, nil},
		"a pod that is terminating on the source while the destination has it": {func(r *record) {
			tell(r, dying(pod(east, 1)), pod(west, 1))
			end(r, pod(east, 1))
		}, []string{"S1: pod web-1 exists on both sides (terminating: source)"}},
		"a pod that has failed is not in the way": {func(r *record) {
			failed := pod(east, 1)
			failed.Status.Phase = corev1.PodFailed
			tell(r, failed, pod(west, 1))
		}, nil},
		"an ordinal in both ranges": {
			func(r *record) { tell(r, set(west, 1, 1)) },
			[]string{"S7: ordinals [1,2) are in the ranges of both sets ([0,2) and [1,2))"},
		},
		"two ordinals in neither range": {
			func(r *record) { tell(r, set(east, 0, 0)) },
			[]string{"S7: 2 ordinals are in the range of neither set ([0,0) and [2,2))"},
		},
		"an empty claimRef": {func(r *record) {
			tell(r, volume("a", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }))
		}, []string{"S5: volume a has an empty claimRef"}},
		"a claimRef to somebody else": {func(r *record) {
			tell(r, volume("a", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.Namespace = "other" }))
		}, []string{"S5: volume a is promised to claim other/data-web-0"}},
		"somebody else's volume": {func(r *record) {
			tell(r, volume("b", func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.Namespace = "other" }))
		}, nil},
		"a protected volume that is not Retain": {func(r *record) {
			tell(r, volume("a", func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			}))
		}, []string{"S4: volume a is protected and its reclaim policy is Delete"}},
		"a volume that is given back": {func(r *record) {
			tell(r, volume("a", func(v *corev1.PersistentVolume) {
				v.Annotations, v.Spec.PersistentVolumeReclaimPolicy = nil, corev1.PersistentVolumeReclaimDelete
			}))
		}, nil},
		"a protected volume that is deleted while it is bound": {func(r *record) {
			end(r, volume("a", func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }))
		}, []string{"S4: volume a was deleted while it was protected and Bound"}},
		"another disk": {func(r *record) {
			tell(r, volume("a", func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "i" }))
		}, []string{"S4: volume a meant disk d/h and means d/i"}},
		"two volumes of one disk": {
			func(r *record) { tell(r, volume("b", nil)) },
			[]string{"S5: volumes a and b of one cluster mean the same disk d/h"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := history()
			c.happens(r)
			if diff := cmp.Diff(c.want, r.report().Violations); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCountsWhatIsDown(t *testing.T) {
	r := history()
	tell(r, pod(west, 7)) // not present at the start, so not counted
	end(r, pod(west, 7))
	tell(r, dying(pod(east, 1)))
	if got := r.report().MaxUnavailable; got != 1 {
		t.Errorf("one pod terminating: %d unavailable, want 1", got)
	}
	end(r, pod(east, 1))
	tell(r, pod(west, 1))
	end(r, pod(east, 0))
	if got := r.report().MaxUnavailable; got != 1 {
		t.Errorf("one after the other: %d unavailable, want 1", got)
	}
	end(r, pod(west, 1))
	if got := r.report().MaxUnavailable; got != 2 {
		t.Errorf("both down: %d unavailable, want 2", got)
	}
}

// atRisk returns MaxAtRisk of a witness that is stopped at that time.
func atRisk(r *record, at time.Time) int {
	r.risk(0, at)
	return r.report().MaxAtRisk
}

func TestAddsWhatTheBudgetsAllowToWhatIsDown(t *testing.T) {
	r := history()
	tell(r, budget(east, 5, func(b *policyv1.PodDisruptionBudget) { b.Annotations = nil }), budget(west, 0, nil))
	if got := atRisk(r, time.Now().Add(lag)); got != 0 {
		t.Errorf("a budget without mark counts: %d", got)
	}
	tell(r, budget(east, 5, func(b *policyv1.PodDisruptionBudget) { b.Generation = 1 }))
	if got := atRisk(r, time.Now().Add(lag)); got != 0 {
		t.Errorf("a spec that the controller has not seen counts: %d", got)
	}
	tell(r, budget(east, 1, nil), dying(pod(east, 1)))
	if got := atRisk(r, time.Now().Add(lag)); got != 2 {
		t.Errorf("one allowed and one down: %d, want 2", got)
	}

	r = history()
	now := time.Unix(0, 0)
	after := func(d time.Duration, objects ...runtime.Object) {
		now = now.Add(d)
		for _, o := range objects {
			r.take(event{object: o, at: now})
		}
	}
	after(0, budget(east, 1, nil), budget(west, 0, nil))
	after(time.Hour, dying(pod(east, 1)))
	after(lag-1, budget(east, 0, nil)) // it has been so for long, and arrives late
	after(time.Hour, budget(west, 1, nil))
	after(lag-1, pod(west, 1)) // this arrives late too
	if got := atRisk(r, now); got != 1 {
		t.Errorf("two watches that are not in step: %d, want 1", got)
	}
	after(0, dying(pod(east, 0)))
	after(lag, budget(west, 0, nil))
	if got := atRisk(r, now); got != 2 {
		t.Errorf("one allowed and one down for some time: %d, want 2", got)
	}
}

func TestTimesEachOrdinalOnce(t *testing.T) {
	r := history()
	at := func(second int64, gone bool, p *corev1.Pod) {
		r.take(event{object: p, gone: gone, at: time.Unix(second, 0)})
	}
	running := pod(west, 1)
	running.Status.Phase, running.Status.Conditions = corev1.PodRunning, nil
	young := running.DeepCopy()
	young.Status.Phase = corev1.PodPending
	at(1, false, pod(east, 1))
	at(2, false, dying(pod(east, 1)))
	at(3, true, dying(pod(east, 1)))
	at(4, false, young)
	at(5, false, running)
	at(6, false, pod(west, 1))
	at(7, true, pod(west, 1))
	at(8, false, running)
	at(9, false, pod(west, 1))
	want := Span{time.Unix(2, 0), time.Unix(3, 0), time.Unix(4, 0), time.Unix(5, 0), time.Unix(6, 0)}
	if diff := cmp.Diff(want, r.report().Spans[1]); diff != "" {
		t.Errorf("times of ordinal 1 (-want +got):\n%s", diff)
	}
}

func TestTheLongestTimeDownCountsWhateverTheReason(t *testing.T) {
	r := history()
	at := func(second int64, gone bool, o runtime.Object) {
		r.take(event{object: o, at: time.Unix(second, 0), gone: gone})
	}
	unready := pod(east, 1)
	unready.Status.Conditions = nil
	at(10, false, unready) // a crash
	at(12, false, pod(east, 1))
	at(20, false, dying(pod(east, 1))) // a move
	at(25, true, dying(pod(east, 1)))
	at(31, false, pod(west, 1))
	at(40, false, dying(pod(east, 0))) // still down
	if diff := cmp.Diff(map[int32]time.Duration{1: 11 * time.Second}, r.report().Down); diff != "" {
		t.Error(diff)
	}
}

func TestNothingIsComparedUntilAllWatchesGoOn(t *testing.T) {
	r := history()
	r.unsettled = true
	tell(r, set(west, 1, 1), pod(west, 1)) // the effects, seen before their causes
	tell(r, set(east, 0, 1), dying(pod(east, 1)))
	end(r, pod(east, 1))
	r.settle(time.Now())
	if got := r.report(); len(got.Violations) > 0 || got.MaxUnavailable > 0 {
		t.Errorf("a proper move, seen in another order: %+v", got)
	}
	r.unsettled = true
	tell(r, set(west, 0, 2), pod(west, 0))
	r.settle(time.Now())
	want := []string{
		"S1: pod web-0 exists on both sides (terminating: neither)",
		"S7: ordinals [0,1) are in the ranges of both sets ([0,1) and [0,2))",
	}
	if diff := cmp.Diff(want, r.report().Violations); diff != "" {
		t.Errorf("what is wrong afterwards still (-want +got):\n%s", diff)
	}
}

// apart returns the history of two clusters, whose API servers return in turn what is given.
func apart(answers ...runtime.Object) *record {
	r := history()
	r.read = func(side int) (map[string]*corev1.Pod, *span, error) {
		pods, set := map[string]*corev1.Pod{}, &span{0, 2}
		if side == 1 {
			set = &span{2, 2}
		}
		for _, o := range answers {
			switch o := o.(type) {
			case *corev1.Pod:
				if o.Namespace == r.places[side].namespace {
					pods[o.Name] = o
				}
			case *appsv1.StatefulSet:
				if o.Namespace == r.places[side].namespace {
					s := rangeOf(o)
					set = &s
				}
			}
		}
		return pods, set, nil
	}
	return r
}

func TestAWatchThatLagsBreaksNoPromise(t *testing.T) {
	r := apart(pod(east, 0), pod(west, 1), set(east, 0, 1), set(west, 1, 1))
	tell(r, dying(pod(east, 1)), set(west, 1, 1), pod(west, 1)) // before the events of the source
	tell(r, set(east, 0, 1))
	end(r, pod(east, 1))
	tell(r, dying(pod(east, 0)))
	if got := r.report(); len(got.Violations) > 0 || got.MaxUnavailable > 1 {
		t.Errorf("a proper move, seen late: %+v", got)
	}
}

func TestWhatBothServersShowIsAViolation(t *testing.T) {
	for name, c := range map[string]struct {
		answers []runtime.Object
		want    []string
	}{
		"pods on both sides": {
			[]runtime.Object{dying(pod(east, 1)), pod(west, 1)},
			[]string{"S1: pod web-1 exists on both sides (terminating: source)"},
		},
		"ranges that overlap": {
			[]runtime.Object{set(east, 0, 2), set(west, 1, 1)},
			[]string{"S7: ordinals [1,2) are in the ranges of both sets ([0,2) and [1,2))"},
		},
		"ordinals in neither range": {
			[]runtime.Object{set(east, 0, 0), set(west, 2, 0)},
			[]string{"S7: 2 ordinals are in the range of neither set ([0,0) and [2,2))"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := apart(c.answers...)
			tell(r, c.answers...)
			if diff := cmp.Diff(c.want, r.report().Violations); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
	r := apart(dying(pod(east, 0)), dying(pod(east, 1)))
	tell(r, dying(pod(east, 0)), dying(pod(east, 1)))
	if got := r.report().MaxUnavailable; got != 2 {
		t.Errorf("both are down: %d unavailable, want 2", got)
	}
}

func TestAClusterThatDoesNotAnswerIsAsItWasSeen(t *testing.T) {
	r := apart()
	r.read = func(int) (map[string]*corev1.Pod, *span, error) { return nil, nil, errors.New("connection refused") }
	tell(r, pod(west, 1))
	if diff := cmp.Diff([]string{"S1: pod web-1 exists on both sides (terminating: neither)"}, r.report().Violations); diff != "" {
		t.Error(diff)
	}
}

func TestTheSourceIsReadBeforeAndAfterTheDestination(t *testing.T) {
	r := apart(pod(east, 1), pod(west, 1))
	read, reads := r.read, 0
	r.read = func(side int) (map[string]*corev1.Pod, *span, error) {
		reads++
		pods, set, err := read(side)
		if reads == 3 {
			delete(pods, "web-1") // it ended between the reads
		}
		return pods, set, err
	}
	tell(r, pod(west, 1))
	if got := r.report().Violations; len(got) > 0 || reads != 3 {
		t.Errorf("%d reads, which do not prove an overlap: %v", reads, got)
	}
}
