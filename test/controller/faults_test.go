package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
	"github.com/stsmigrate/stsmigrate/test/internal/slicerig"
)

// wild is the east with the kind installed, but without a process that manages it: the tests start
// and stop such processes there.
var wild = sync.OnceValues(func() (*slicerig.Installed, error) {
	return slicerig.Install(context.Background(), bed.East, eastDir)
})

// away returns a namespace in wild.
func away(t *testing.T, more ...string) *side {
	t.Helper()
	if _, err := wild(); err != nil {
		t.Fatal(err)
	}
	s := newSide(t, bed.East, strings.ToLower(strings.Join(append([]string{t.Name()}, more...), "-")))
	if err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		t.Fatal(err)
	}
	s.listen(t, &corev1.PodList{}, &v1alpha1.StatefulSetSliceList{})
	return s
}

// start runs a process for slices in wild until the test ends.
func start(t *testing.T, more ...string) *slicerig.Process {
	t.Helper()
	installed, err := wild()
	if err != nil {
		t.Fatal(err)
	}
	return begin(t, installed.Kubeconfig, slicerig.Slice, more...)
}

// begin runs a process until the test ends. What the process has said is logged if the test fails.
func begin(t *testing.T, kubeconfig, kind string, more ...string) *slicerig.Process {
	t.Helper()
	p, err := slicerig.Begin(binary, kubeconfig, kind, more...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("slicecontroller:\n%s", p.Output())
		}
	})
	return p
}

// updated waits until all pods have the new template and are available.
func (s *side) updated(t *testing.T, n int32) {
	t.Helper()
	s.until(t, fmt.Sprintf("%d pods are updated", n), func(ctx context.Context) bool { return s.isUpdated(ctx, n) })
}

func (s *side) isUpdated(ctx context.Context, n int32) bool {
	var o v1alpha1.StatefulSetSlice
	err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "web"}, &o)
	st := o.Status
	return err == nil && st.ObservedGeneration == o.Generation && st.UpdatedReplicas == n && st.AvailableReplicas == n && st.Replicas == n && st.CurrentRevision == st.UpdateRevision
}

func deletions(trace []string) []string {
	return slices.DeleteFunc(slices.Clone(trace), func(e string) bool { return e[0] != '-' })
}

// steps returns a trace without revisions.
func steps(trace []string) string {
	var out []string
	for _, e := range trace {
		e, _, _ = strings.Cut(e, "@")
		out = append(out, e)
	}
	return strings.Join(out, " ")
}

// Two processes at once, without leader election, have the effect of one: a write from a stale cache meets
// a pod of another UID, or one that exists already (AM-3, SC-6).
func TestTwoProcessesAtOnceDoNoHarm(t *testing.T) {
	s := away(t)
	start(t)
	start(t)
	if err := s.Create(t.Context(), s.written(t, "  replicas: 4")); err != nil {
		t.Fatal(err)
	}
	s.updated(t, 4)
	for round := range 5 {
		s.taken()
		if err := s.patch(t.Context(), fmt.Sprintf(`{"template":{"metadata":{"annotations":{"round":"%d"}}}}`, round)); err != nil {
			t.Fatal(err)
		}
		s.updated(t, 4)
		if got := steps(s.taken()); got != "-3 +3 -2 +2 -1 +1 -0 +0" {
			t.Errorf("round %d: %s", round, got)
		}
	}
	if err := s.patch(t.Context(), `{"replicas":1}`); err != nil {
		t.Fatal(err)
	}
	s.updated(t, 1)
	if got := steps(s.taken()); got != "-3 -2 -1" {
		t.Errorf("scaled in: %s", got)
	}
}

// A process that is killed after any of its steps is replaced by another, which continues where the first
// one stopped: nothing is done twice.
func TestKilledProcessesAreFollowedByOthers(t *testing.T) {
	s := away(t)
	p := start(t)
	if err := s.Create(t.Context(), s.written(t, "  replicas: 3\n"+claimed)); err != nil {
		t.Fatal(err)
	}
	s.updated(t, 3)
	s.taken()
	if err := s.patch(t.Context(), `{"template":{"metadata":{"annotations":{"a":"b"}}}}`); err != nil {
		t.Fatal(err)
	}
	killed := 0
	s.until(t, "the update, under six processes", func(context.Context) bool {
		s.lock.Lock()
		done := len(s.trace)
		s.lock.Unlock()
		if done > killed {
			killed++
			p.Kill()
			p = start(t)
		}
		return s.isUpdated(t.Context(), 3)
	})
	if got := steps(s.taken()); got != "-2 +2 -1 +1 -0 +0" || killed < 5 {
		t.Errorf("killed %d times: %s", killed, got)
	}
	var claims corev1.PersistentVolumeClaimList
	if err := s.List(t.Context(), &claims); err != nil {
		t.Fatal(err)
	}
	own := slices.DeleteFunc(claims.Items, func(c corev1.PersistentVolumeClaim) bool { return c.Namespace != s.namespace })
	if len(own) != 3 {
		t.Errorf("%d claims", len(own))
	}
}

const claimed = "  volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: shared, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]"

// 961-30, 961-31, 961-44: a process without the feature updates one pod at a time. The next process, with
// the feature, continues with as many as the field allows, which has stayed.
func TestAFeatureIsSwitchedOnInMidUpdate(t *testing.T) {
	s := away(t)
	installed, err := wild()
	if err != nil {
		t.Fatal(err)
	}
	off := start(t)
	if err := s.Create(t.Context(), s.written(t, "  replicas: 5\n  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}")); err != nil {
		t.Fatal(err)
	}
	s.updated(t, 5)
	off.Kill()
	s.taken()
	off = start(t, append(slices.Clone(installed.Webhook), "--feature-gates=MaxUnavailableStatefulSet=false")...)
	if err := s.patch(t.Context(), `{"template":{"metadata":{"annotations":{"a":"b"}}}}`); err != nil {
		t.Fatal(err)
	}
	s.until(t, "two pods were replaced", func(context.Context) bool {
		s.lock.Lock()
		defer s.lock.Unlock()
		return len(deletions(s.trace)) == 2
	})
	off.Kill()
	if got := steps(s.taken()); got != "-4 +4 -3" {
		t.Errorf("with the feature off: %s", got)
	}
	start(t)
	s.updated(t, 5)
	if got := steps(s.taken()); !strings.HasPrefix(got, "+3 -2 -1 +") {
		t.Errorf("with the feature on: %s", got)
	}
}

// 961-41: where the feature is switched off, the webhook refuses its use, and
// accepts slices that already use it.
func TestTheWebhookKnowsWhichFeaturesAreOff(t *testing.T) {
	s := away(t)
	installed, err := wild()
	if err != nil {
		t.Fatal(err)
	}
	many := s.written(t, "  replicas: 0\n  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}")
	if err := s.Create(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	start(t, append(slices.Clone(installed.Webhook), "--feature-gates=MaxUnavailableStatefulSet=false")...)
	if err := installed.Answers(t.Context()); err != nil {
		t.Fatal(err)
	}
	another := s.written(t, "  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}")
	another.SetName("another")
	if err := s.Create(t.Context(), another); err == nil || !strings.Contains(err.Error(), "the feature MaxUnavailableStatefulSet is switched off") {
		t.Error(err)
	}
	if err := s.patch(t.Context(), `{"replicas":1}`); err != nil {
		t.Error(err)
	}
	s.until(t, "a pod", s.has("web-0"))
}

// VA-9: an invalid slice that no webhook refused does no harm. Its pods are recreated as they were, its
// range can be changed, and a condition and an event report the error, until the slice is fixed.
func TestAnInvalidTemplateWaitsUntilItIsMended(t *testing.T) {
	s := away(t)
	s.listen(t, &corev1.EventList{})
	start(t)
	if err := s.Create(t.Context(), s.written(t, "  replicas: 1")); err != nil {
		t.Fatal(err)
	}
	s.updated(t, 1)
	before := s.slice(t).Status.UpdateRevision
	s.taken()
	if err := s.patch(t.Context(), `{"template":{"spec":{"containers":[{"name":"web","image":"web","ports":[{"containerPort":70000}]}]}}}`); err != nil {
		t.Fatal(err)
	}
	s.stalled(t, "InvalidTemplate", "template.spec.containers[0].ports[0].containerPort: Invalid value: 70000")
	s.until(t, "an event", func(ctx context.Context) bool { return s.hasEvent(ctx, "InvalidTemplate") })
	s.healsAt(t, before)
	if err := s.patch(t.Context(), `{"replicas":2}`); err != nil {
		t.Fatal(err)
	}
	s.until(t, "one more pod", s.has("web-0", "web-1"))
	s.taken()
	if err := s.patch(t.Context(), `{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}`); err != nil {
		t.Fatal(err)
	}
	s.until(t, "the mended template is there", func(context.Context) bool { return s.slice(t).Status.UpdateRevision != before })
	s.updated(t, 2)
	if got := steps(s.taken()); got != "-1 +1 -0 +0" {
		t.Error(got)
	}
	s.until(t, "nothing is stalled", func(context.Context) bool {
		return meta.FindStatusCondition(s.slice(t).Status.Conditions, "Stalled") == nil
	})
}

// stalled waits for the condition Stalled with a reason and a message.
func (s *side) stalled(t *testing.T, reason, words string) {
	t.Helper()
	s.until(t, "condition "+reason, func(context.Context) bool {
		c := meta.FindStatusCondition(s.slice(t).Status.Conditions, "Stalled")
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason && strings.Contains(c.Message, words)
	})
}

// healsAt deletes the lowest pod, and requires that it is recreated at a revision.
func (s *side) healsAt(t *testing.T, revision string) {
	t.Helper()
	before := s.uids(t)["web-0"]
	if err := s.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web-0"}}); err != nil {
		t.Fatal(err)
	}
	var p corev1.Pod
	s.until(t, "the pod comes back", func(ctx context.Context) bool {
		p = corev1.Pod{}
		return s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "web-0"}, &p) == nil && string(p.UID) != before && isReady(&p)
	})
	if got := p.Labels["controller-revision-hash"]; got != revision {
		t.Errorf("it came back at revision %s, expected %s", got, revision)
	}
}

// Where PodTemplates are refused, a process that just started reads the template of a set from its
// revision. A new template waits, and the condition quotes the API server.
func TestAQuotaOfPodTemplatesStopsNoHealing(t *testing.T) {
	s := away(t)
	p := start(t)
	if err := s.Create(t.Context(), s.written(t, "  replicas: 1")); err != nil {
		t.Fatal(err)
	}
	s.updated(t, 1)
	before := s.slice(t).Status.UpdateRevision
	none := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "none"}}
	none.Spec.Hard = corev1.ResourceList{"count/podtemplates": resource.MustParse("0")}
	s.listen(t, &corev1.ResourceQuotaList{})
	if err := s.Create(t.Context(), none); err != nil {
		t.Fatal(err)
	}
	s.until(t, "the quota holds", func(ctx context.Context) bool {
		err := s.Get(ctx, client.ObjectKeyFromObject(none), none)
		return err == nil && len(none.Status.Hard) > 0
	})
	p.Kill()
	p = start(t)
	s.healsAt(t, before)
	s.updated(t, 1)
	if c := meta.FindStatusCondition(s.slice(t).Status.Conditions, "Stalled"); c != nil {
		t.Errorf("%s: %s", c.Reason, c.Message)
	}
	if err := s.patch(t.Context(), `{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}`); err != nil {
		t.Fatal(err)
	}
	s.stalled(t, "TemplateNotTried", "exceeded quota: none")
	s.healsAt(t, before)
	p.Kill()
	start(t)
	s.healsAt(t, before)
	if err := s.Delete(t.Context(), none); err != nil {
		t.Fatal(err)
	}
	s.until(t, "the new template is taken", func(context.Context) bool { return s.slice(t).Status.UpdateRevision != before })
	s.updated(t, 1)
}
