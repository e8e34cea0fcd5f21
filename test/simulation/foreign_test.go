package simulation

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// interference is an action of another writer in the middle of a move.
type interference struct {
	after string // the step that has just been finished, or
	wrote string // the step that has just been written
	do    func(*world)
	undo  func(*world)
	// want is part of the reason. The run is held by then, unless waits is set.
	want  string
	waits bool
	// alone reports that an abort needs no undo.
	alone bool
}

func interferences() map[string]interference {
	policy := func(p corev1.PersistentVolumeReclaimPolicy) func(*world) {
		return func(w *world) {
			w.volume(func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = p })
		}
	}
	budget := func(side plans.Side, n int32) func(*world) {
		return change(side, "web-budget", func(b *policyv1.PodDisruptionBudget) {
			v := intstr.FromInt32(n)
			b.Spec.MaxUnavailable, b.Spec.MinAvailable = &v, nil
		})
	}
	selector := func(app string) func(*world) {
		return change(plans.Source, "web-budget", func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		})
	}
	return map[string]interference{
		"the source is scaled down":           {after: "2/Grow", do: scale(plans.Source, 1), undo: scale(plans.Source, 2), want: "StatefulSet blue/web"},
		"the destination is scaled down":      {after: "2/Grow", do: scale(plans.Destination, 0), undo: scale(plans.Destination, 1), want: "StatefulSet green/web"},
		"the destination is scaled up":        {after: "1/Vacate", do: scale(plans.Destination, 2), undo: scaleBack(plans.Destination, 1, "data-web-3"), want: "StatefulSet green/web"},
		"the source is scaled up again":       {after: "1/Claim", do: scale(plans.Source, 2), undo: scaleBack(plans.Source, 1, "data-web-1"), want: "StatefulSet blue/web"},
		"the source is scaled up at once":     {wrote: "1/Shrink", do: scale(plans.Source, 2), undo: settled(scale(plans.Source, 1)), want: "StatefulSet blue/web"},
		"a volume is set back to Delete":      {after: "1/Shrink", do: policy("Delete"), undo: policy("Retain"), want: "volume pvc-disk-2"},
		"a volume is deleted":                 {after: "1/Vacate", do: deletion(volumeKey), want: "volume pvc-disk-2"},
		"a claim is deleted":                  {after: "2/Grow", do: deletion(claimKey), want: "claim data-web-1"},
		"the new claim is deleted":            {after: "1/Claim", do: deletion(newClaimKey), want: "claim data-web-1", alone: true},
		"the source's budget is edited":       {after: "2/Grow", do: budget(plans.Source, 3), undo: restoreBudget(plans.Source), want: "PodDisruptionBudget web-budget of blue/web"},
		"the destination's budget is edited":  {after: "1/Grow", do: budget(plans.Destination, 3), undo: restoreBudget(plans.Destination), want: "PodDisruptionBudget web-budget of green/web"},
		"the source's budget is over others":  {after: "2/Grow", do: selector("mail"), undo: selector(setName), want: "PodDisruptionBudget web-budget of blue/web in one no longer selects the pods of the set"},
		"the source's budget is deleted":      {after: "2/Grow", do: deletion(budgetKey), undo: remakeBudget, want: "PodDisruptionBudget web-budget of blue/web"},
		"the mark is taken off the source":    {after: "2/Grow", do: unmark[*appsv1.StatefulSet](setName), want: "StatefulSet blue/web", alone: true},
		"the marks are taken off a volume":    {after: "1/Vacate", do: unmarkVolume, undo: remarkVolume, want: "volume pvc-disk-2"},
		"the source set is deleted":           {after: "1/Vacate", do: deletion(setKey), want: "StatefulSet blue/web"},
		"a claimRef is emptied":               {after: "1/Release", do: emptyRef, undo: refillRef, want: "claimRef"},
		"a node is gone after a force delete": {after: "1/Shrink", do: killNode, undo: reviveNode, want: "node", waits: true},
	}
}

func TestSomebodyElsesChangeHoldsTheMove(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		done := goldenOf(t, newWorld(threeOrdinals(mode)), journey{plans.Move, plans.Finalize})
		for name, in := range interferences() {
			t.Run(string(mode)+", "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(threeOrdinals(mode))
				in.disturb(t, w)
				if in.undo == nil && !in.alone {
					return // the user has to decide; nothing is lost
				}
				if in.undo != nil {
					onward := w.fork(1)
					in.undo(onward)
					onward.foreign = false
					walk(t, onward, plans.Move, nil)
					walk(t, onward, plans.Finalize, nil)
					cleanEnd(t, onward, done.end)
				}
				back := w.fork(2)
				if !in.alone {
					in.undo(back)
				}
				walk(t, back, plans.Abort, nil)
				cleanEnd(t, back, back.start)
			})
		}
	}
}

// disturb runs a move into the interference. It requires that the move stops there, that the reason names the
// problem, and that no data is lost.
func (in interference) disturb(t *testing.T, w *world) {
	t.Helper()
	did := false
	got, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool {
		if !did && (p.Kind == engine.Advanced && p.Step.ID() == in.after || p.Kind == engine.Wrote && p.Step.ID() == in.wrote) {
			did, w.foreign = true, true
			in.do(w)
		}
		return false
	})
	want := engine.Blocked
	if in.waits {
		want = engine.Waiting
	}
	if err != nil || !did || got.kind != want || !strings.Contains(got.reason, in.want) {
		t.Errorf("ended with %q (%v), want %s with %q; disturbed: %t", got, err, want, in.want, did)
	}
	if !in.waits && w.journal.Blocked != got.reason {
		t.Errorf("the journal says %q, the engine %q", w.journal.Blocked, got.reason)
	}
	w.rest()
	unbroken(t, w)
}

// change edits an object of a side as another writer does.
func change[T client.Object](side plans.Side, name string, edit func(T)) func(*world) {
	return func(w *world) {
		o, ok := get[T](w.on[side], w.namespace(side), name)
		if !ok {
			panic("--kubeconfig is missing," + name)
		}
		next := clone(o)
		edit(next)
		must(w.on[side].Update(context.TODO(), next))
	}
}

func scale(side plans.Side, n int32) func(*world) {
	return change(side, setName, func(s *appsv1.StatefulSet) { s.Spec.Replicas = &n })
}

// settled lets the cluster come to rest after the action.
func settled(do func(*world)) func(*world) {
	return func(w *world) {
		do(w)
		w.rest()
	}
}

// scaleBack also deletes the claim that was created for the surplus pod.
func scaleBack(side plans.Side, n int32, claim string) func(*world) {
	return func(w *world) {
		scale(side, n)(w)
		w.rest()
		k := key{"PersistentVolumeClaim", w.namespace(side), claim}
		must(w.on[side].Delete(context.TODO(), clone(w.on[side].objects[k])))
		w.rest()
	}
}

// volume edits the volume of ordinal 1, in the source's cluster.
func (w *world) volume(edit func(*corev1.PersistentVolume)) {
	for _, pv := range all[*corev1.PersistentVolume](w.on[plans.Source]) {
		if w.disks[diskOf(pv)].claim == "data-web-1" {
			next := clone(pv)
			edit(next)
			must(w.on[plans.Source].Update(context.TODO(), next))
		}
	}
}

func claimKey(*world) (plans.Side, key) {
	return plans.Source, key{"PersistentVolumeClaim", blue, "data-web-1"}
}

func newClaimKey(*world) (plans.Side, key) {
	return plans.Destination, key{"PersistentVolumeClaim", green, "data-web-1"}
}

func volumeKey(*world) (plans.Side, key) {
	return plans.Source, key{"PersistentVolume", "", "pvc-disk-2"}
}

func budgetKey(*world) (plans.Side, key) {
	return plans.Source, key{"PodDisruptionBudget", blue, "web-budget"}
}

func setKey(*world) (plans.Side, key) { return plans.Source, key{"StatefulSet", blue, setName} }

func deletion(which func(*world) (plans.Side, key)) func(*world) {
	return func(w *world) {
		side, k := which(w)
		must(w.on[side].Delete(context.TODO(), clone(w.on[side].objects[k])))
	}
}

func restoreBudget(side plans.Side) func(*world) {
	return change(side, "web-budget", func(b *policyv1.PodDisruptionBudget) {
		words := b.Annotations[plans.BudgetAnnotation]
		b.Spec.MaxUnavailable, b.Spec.MinAvailable = nil, nil
		v := intstr.Parse(words[strings.Index(words, " ")+1:])
		if strings.HasPrefix(words, "max") {
			b.Spec.MaxUnavailable = &v
		} else {
			b.Spec.MinAvailable = &v
		}
	})
}

func remakeBudget(w *world) { must(w.on[plans.Source].Create(context.TODO(), w.budget(blue))) }

func unmark[T client.Object](name string) func(*world) {
	return change(plans.Source, name, func(o T) { plans.Unmark(o) })
}

func unmarkVolume(w *world) {
	w.volume(func(pv *corev1.PersistentVolume) {
		// The user keeps the annotations and will restore them.
		w.kept = pv.DeepCopy().Annotations
		plans.Unmark(pv)
	})
}

func remarkVolume(w *world) {
	w.volume(func(pv *corev1.PersistentVolume) { pv.Annotations = w.kept })
}

func emptyRef(w *world) {
	w.volume(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })
}

func refillRef(w *world) {
	w.volume(func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: blue, Name: "data-web-1"}
	})
}

// killNode stops the node of the ordinal in flight, and the user deletes the pod by force.
func killNode(w *world) { w.power(corev1.ConditionFalse) }

func reviveNode(w *world) { w.power(corev1.ConditionTrue) }

func (w *world) power(status corev1.ConditionStatus) {
	node, _ := get[*corev1.Node](w.on[plans.Source], "", w.journal.Flight.Pods[0].Node)
	next := clone(node)
	next.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	w.on[plans.Source].put(next)
	k := key{"Pod", blue, "web-1"}
	if _, ok := w.on[plans.Source].objects[k]; ok && status == corev1.ConditionFalse {
		w.on[plans.Source].remove(k)
	}
}
