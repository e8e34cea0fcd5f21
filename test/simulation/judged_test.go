package simulation

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// The witness alone judges every course, and finds nothing. What the engine must not do it finds without the checks of
// this package, such as a guard that was taken out.
func TestTheWitnessAloneFindsNothing(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		for _, j := range journeys() {
			t.Run(fmt.Sprintf("%s %s", name, j.name()), func(t *testing.T) {
				t.Parallel()
				w := newWorld(sc)
				w.only = true
				w.evictions = 3
				for _, direction := range j {
					for range 5 { // evictions may make it wait for longer than one process does
						if got, err := w.process().run(t.Context(), direction, nil); err != nil || got.kind == engine.Finished {
							break
						}
						w.rest()
					}
				}
				for _, b := range w.broken {
					t.Error(b)
				}
			})
		}
	}
}

// planted is a violation that no engine commits, and what the witness alone says of it.
type planted struct {
	after string // the step that has just been finished
	do    func(*world)
	want  string
}

func violations() map[string]planted {
	slice := func(side plans.Side, start, replicas int32) func(*world) {
		return change(side, setName, func(set *appsv1.StatefulSet) {
			set.Spec.Ordinals, set.Spec.Replicas = &appsv1.StatefulSetOrdinals{Start: start}, &replicas
		})
	}
	budget := func(side plans.Side) func(*world) {
		return change(side, "web-budget", func(b *policyv1.PodDisruptionBudget) {
			one := intstr.FromInt32(1)
			b.Spec.MaxUnavailable, b.Spec.MinAvailable = &one, nil
		})
	}
	return map[string]planted{
		"the destination takes an ordinal that the source has":                {"2/Grow", slice(plans.Destination, 1, 2), "S7"},
		"the destination takes an ordinal whose pod ends slowly":              {"2/Grow", takenEarly, "S1"},
		"two ordinals leave at once":                                          {"2/Grow", slice(plans.Source, 0, 0), "S2"},
		"more ordinals are in neither range than move at once":                {"2/Grow", slice(plans.Source, 0, 0), "S7"},
		"the budget of the side that has lost an ordinal is loosened early":   {"1/Shrink", budget(plans.Source), "S3"},
		"the budget of the side that gets the ordinal is loosened early":      {"1/Shrink", budget(plans.Destination), "S3"},
		"a volume is given back to its provisioner while it is protected":     {"1/Shrink", (*world).unprotected, "S4"},
		"a volume of an ordinal in flight is promised to nobody":              {"1/Vacate", emptyRef, "S5"},
		"a volume of an ordinal in flight is promised to a claim elsewhere":   {"1/Vacate", (*world).promisedElsewhere, "S5"},
		"a volume is made for a disk that another one of the cluster has too": {"1/Vacate", (*world).twin, "S5"},
	}
}

func TestTheWitnessAloneFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for name, p := range violations() {
			t.Run(fmt.Sprintf("%s, %s", mode, name), func(t *testing.T) {
				t.Parallel()
				w := newWorld(threeOrdinals(mode))
				w.only = true
				_, err := w.process().run(t.Context(), plans.Move, func(now engine.Progress) bool {
					return now.Kind == engine.Advanced && now.Step.ID() == p.after
				})
				if err != nil || len(w.broken) > 0 {
					t.Fatalf("before it: %v, %v", err, w.broken)
				}
				p.do(w)
				w.rest()
				if found := strings.Join(w.broken, "\n"); !strings.Contains(found, p.want+": the witness saw that ") {
					t.Errorf("it found %q, want a violation of %s", found, p.want)
				}
			})
		}
	}
}

// takenEarly lets an ordinal leave whose node no longer answers, so that its pod stays, and arrive all the same.
func takenEarly(w *world) {
	s := w.on[plans.Source]
	pod := w.pod(plans.Source, 1)
	node, _ := get[*corev1.Node](s, "", pod.Spec.NodeName)
	next := clone(node)
	next.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	s.put(next)
	scale(plans.Source, 1)(w)
	w.rest()
	must(w.on[plans.Destination].Create(context.TODO(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: green, Name: pod.Name}}))
}

func (w *world) unprotected() {
	w.volume(func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	})
}

func (w *world) promisedElsewhere() {
	w.volume(func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "mail", Name: "data-mail-0"}
	})
}

// twin makes a second volume for the disk of the volume that volume edits.
func (w *world) twin() {
	pv, _ := get[*corev1.PersistentVolume](w.on[plans.Source], "", "pvc-disk-2")
	next := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "second"}, Spec: *pv.Spec.DeepCopy()}
	next.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: blue, Name: "data-web-9"}
	must(w.on[plans.Source].Create(context.TODO(), next))
}
