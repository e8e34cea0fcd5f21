package models_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling"
	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling/schedulingtest"
	"github.com/stsmigrate/stsmigrate/test/internal/today"
)

const (
	// seedsOfADay are the seeds among which the worlds of a day are chosen.
	seedsOfADay = 2000
	// each is in how many worlds what pods may ask for is asked for, of those that fit, and of those that do not.
	each = 3
	// tries is how often a world is played that did not go as said. A scheduler has several watches, and one of them may be
	// behind when a pod comes: that passes, and a rule that is wrong does not.
	tries = 3
)

// What the check passes is scheduled by the real scheduler, and what it refuses is not.
func TestScheduler(t *testing.T) {
	day := today.Day("SCHEDULER_DAY")
	seeds := chosen(t, uint64(day*seedsOfADay))
	outcomes := make(chan scheduling.Verdict, len(seeds))
	t.Run("worlds", func(t *testing.T) {
		for _, seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				var wrong string
				for try := range tries {
					w := played{schedulingtest.Random(fmt.Sprintf("w%dx%d", seed, try), seed)}
					var v scheduling.Verdict
					if v, wrong = judged(t, w); wrong == "" {
						outcomes <- v
						return
					}
					t.Logf("try %d: %s", try, wrong)
				}
				t.Errorf("the world of seed %d (SCHEDULER_DAY=%d): %s", seed, day, wrong)
			})
		}
	})
	close(outcomes)
	count := map[scheduling.Outcome]int{}
	for v := range outcomes {
		count[v.Outcome]++
	}
	t.Logf("%d fit, %d are stuck, %d depend, %d are unknown", count[scheduling.Fits], count[scheduling.Stuck], count[scheduling.Depends], count[scheduling.Unknown])
}

// chosen returns seeds of a day with worlds in which everything is asked for.
func chosen(t *testing.T, first uint64) (out []uint64) {
	t.Helper()
	count := map[string]int{}
	for seed := first; seed < first+seedsOfADay; seed++ {
		w := schedulingtest.Random("w", seed)
		world, q, err := w.Asked()
		if err != nil {
			t.Fatal(err)
		}
		v, news := scheduling.Ask(world, q), false
		for _, feature := range w.Features() {
			key := fmt.Sprint(v.Outcome, feature)
			news = news || count[key] < each
		}
		if !news || v.Outcome != scheduling.Fits && v.Outcome != scheduling.Stuck { // of the others nothing is said
			continue
		}
		for _, feature := range w.Features() {
			count[fmt.Sprint(v.Outcome, feature)]++
		}
		out = append(out, seed)
	}
	return out
}

// played is a world on the real control plane.
type played struct{ *schedulingtest.World }

// judged plays a world and returns what did not go as said, or "".
func judged(t *testing.T, w played) (scheduling.Verdict, string) {
	t.Helper()
	defer w.clear()
	w.make(t)
	world, q, err := w.Asked()
	if err != nil {
		t.Fatal(err)
	}
	v := scheduling.Ask(world, q)
	patience := patience
	if v.Outcome == scheduling.Fits {
		patience /= 3
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, wave := range w.Waves {
		stuck, err := w.wave(ctx, wave, v.Outcome == scheduling.Fits)
		switch {
		case v.Outcome == scheduling.Fits && (err != nil || stuck != ""):
			return v, fmt.Sprintf("the check passes it, and the scheduler does not: %s (%v)", stuck, err)
		case err != nil:
			return v, err.Error()
		case stuck != "":
			return v, ""
		}
	}
	if v.Outcome == scheduling.Stuck {
		return v, "the scheduler places every pod, and the check refuses it: " + v.Why
	}
	return v, ""
}

// wave plays one wave, and returns a pod that got no node, with the scheduler's words. patient waits for the node.
func (w played) wave(ctx context.Context, wave schedulingtest.Wave, patient bool) (string, error) {
	for _, p := range wave.Leave {
		if err := here.Delete(ctx, p, client.GracePeriodSeconds(0)); err != nil {
			return "", err
		}
	}
	for k, p := range wave.Arrive {
		if err := here.Create(ctx, p); err != nil {
			return "", err
		}
		if w.Together && k < len(wave.Arrive)-1 {
			continue
		}
		first := k
		if w.Together {
			first = 0
		}
		for _, awaited := range wave.Arrive[first : k+1] {
			if why, err := decided(ctx, awaited, patient); why != "" || err != nil {
				return why, err
			}
		}
	}
	return "", nil
}

// decided waits until the scheduler has placed a pod, or has said that it cannot.
func decided(ctx context.Context, p *corev1.Pod, patient bool) (string, error) {
	last := "it has not said a word"
	for ctx.Err() == nil {
		// A watch without a version begins with what there is.
		events, err := here.Watch(ctx, &corev1.PodList{}, client.InNamespace(p.Namespace), client.MatchingFields{"metadata.name": p.Name})
		if err != nil {
			return "", err
		}
		for e := range events.ResultChan() {
			pod, is := e.Object.(*corev1.Pod)
			if !is || e.Type == watch.Deleted {
				continue
			}
			if pod.Spec.NodeName != "" {
				events.Stop()
				return "", nil
			}
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
					if last = p.Name + ": " + c.Message; !patient {
						events.Stop()
						return last, nil
					}
				}
			}
		}
	}
	return last, ctx.Err()
}

// make makes the world, and waits until the scheduler knows its nodes.
func (w played) make(t *testing.T) {
	t.Helper()
	add := func(o client.Object) {
		t.Helper()
		if err := here.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"mall", "shop", "else"} {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace(name)}}
		n.Labels = w.Namespaces()[n.Name]
		add(n)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: n.Name, Name: "default"}}
		if err := here.Create(t.Context(), account); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for _, claim := range w.Claims {
		add(w.Volumes[claim.Namespace+"/"+claim.Name])
		add(claim)
	}
	for _, claim := range w.Claims {
		bound(t, claim)
	}
	for _, n := range w.Nodes {
		if limit := w.CSINode(n.Name); limit != nil {
			add(limit)
		}
		add(n)
	}
	for _, p := range w.EveryPod() {
		if p.Spec.NodeName != "" {
			p.Spec.AutomountServiceAccountToken = ptr.To(false)
			add(p)
		}
	}
	w.scout(t, add)
}

// scout waits until the scheduler knows the nodes.
func (w played) scout(t *testing.T, add func(client.Object)) {
	t.Helper()
	for k, n := range w.Nodes { // each has a pod that asks for it alone
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace("else"), Name: fmt.Sprint("scout-", k)}}
		p.Spec.Containers = []corev1.Container{{Name: "app", Image: "app"}}
		p.Spec.NodeSelector = map[string]string{w.Key("host"): n.Labels[w.Key("host")]}
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		if n.Status.Allocatable.Pods().Value() < 100 {
			continue
		}
		add(p)
		if why, err := decided(t.Context(), p, true); why != "" || err != nil {
			t.Fatal(why, err)
		}
		if err := here.Delete(t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
}

// bound waits for the binder.
func bound(t *testing.T, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	for t.Context().Err() == nil {
		events, err := here.Watch(t.Context(), &corev1.PersistentVolumeClaimList{}, client.InNamespace(claim.Namespace), client.MatchingFields{"metadata.name": claim.Name})
		if err != nil {
			t.Fatal(err)
		}
		for e := range events.ResultChan() {
			if c, is := e.Object.(*corev1.PersistentVolumeClaim); is && c.Status.Phase == corev1.ClaimBound {
				events.Stop()
				return
			}
		}
	}
}

// clear takes the world away. What remains disturbs nobody: no other world has such names.
func (w played) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, p := range w.EveryPod() {
		_ = here.Delete(ctx, p, client.GracePeriodSeconds(0))
	}
	for _, n := range w.Nodes {
		_ = here.Delete(ctx, n)
		if limit := w.CSINode(n.Name); limit != nil {
			_ = here.Delete(ctx, limit)
		}
	}
	for name := range w.Namespaces() {
		_ = here.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, pv := range w.Volumes {
		_ = here.Delete(ctx, pv)
	}
}
