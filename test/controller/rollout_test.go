package controller_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// steered is a set of the ordinals 5 to 7 whose updates a user controls. Its
// partition protects the first ordinal.
type steered struct {
	*side
	t          *testing.T
	set        *unstructured.Unstructured
	typed      string
	kubeconfig string
}

func newSteered(t *testing.T, on *cluster.Cluster, slice bool) *steered {
	t.Helper()
	s := &steered{side: newSide(t, on, strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))), t: t, typed: "web", kubeconfig: on.Kubeconfig}
	if err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		t.Fatal(err)
	}
	partition := 1
	if slice {
		partition, s.typed = 6, "stss/web"
	}
	s.set = s.written(t, fmt.Sprintf("  replicas: 3\n  ordinals: {start: 5}\n  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: %d}}", partition))
	if !slice {
		s.set.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	}
	if err := s.Create(t.Context(), s.set); err != nil {
		t.Fatal(err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(s.set.GroupVersionKind().GroupVersion().WithKind(s.set.GetKind() + "List"))
	s.listen(t, &corev1.PodList{}, list)
	return s
}

func (s *steered) command(words string) *exec.Cmd {
	verb, flags, _ := strings.Cut(words, " ")
	return exec.CommandContext(s.t.Context(), mover, append([]string{"rollout", verb, s.typed, "-n", s.namespace, "--kubeconfig", s.kubeconfig}, strings.Fields(flags)...)...)
}

// rollout runs a command to its end, and returns its output.
func (s *steered) rollout(code int, words string) string {
	s.t.Helper()
	cmd := s.command(words)
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		s.t.Fatalf("rollout %s: exit code %d, expected %d\n%s", words, got, code, out)
	}
	return string(out)
}

// change changes the spec of the set.
func (s *steered) change(patch string) {
	s.t.Helper()
	patch = `{"spec":{` + patch + `}}`
	if err := s.Patch(s.t.Context(), s.set, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		s.t.Fatal(err)
	}
}

// observed reports whether the controller has seen the current set.
func (s *steered) observed(ctx context.Context) bool {
	if s.Get(ctx, client.ObjectKeyFromObject(s.set), s.set) != nil {
		return false
	}
	generation, _, _ := unstructured.NestedInt64(s.set.Object, "status", "observedGeneration")
	return generation == s.set.GetGeneration()
}

// seen waits until the controller has acted on the current set, and the pods are ready.
func (s *steered) seen(what string) (current, update string) {
	s.t.Helper()
	s.until(s.t, what, func(ctx context.Context) bool {
		if s.Get(ctx, client.ObjectKeyFromObject(s.set), s.set) != nil {
			return false
		}
		status, _, _ := unstructured.NestedMap(s.set.Object, "status")
		current, _ = status["currentRevision"].(string)
		update, _ = status["updateRevision"].(string)
		return status["observedGeneration"] == s.set.GetGeneration() && status["readyReplicas"] == int64(3) && slices.Equal(s.pods(ctx), []string{"web-5", "web-6", "web-7"})
	})
	return current, update
}

func (s *steered) revision(pod string) string {
	s.t.Helper()
	var p corev1.Pod
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: pod}, &p); err != nil {
		s.t.Fatal(err)
	}
	return p.Labels[appsv1.ControllerRevisionHashLabelKey]
}

// While an update is paused it replaces no pod, and a deleted pod is recreated. The status command
// waits, and ends with the update.
func TestAnUpdateIsPaused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		on    *cluster.Cluster
		slice bool
	}{
		"Kubernetes":      {bed.East, false},
		"this controller": {bed.West, false},
		"slice":           {bed.West, true},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			newSteered(t, c.on, c.slice).pausedAndResumed(c.slice)
		})
	}
}

// pausedAndResumed pauses the set, changes its template, and resumes the set.
func (s *steered) pausedAndResumed(slice bool) {
	s.t.Helper()
	if said := s.rollout(0, "status --timeout 1m"); !strings.Contains(said, "is rolled out: 3 of 3 pods") {
		s.t.Error(said)
	}
	s.seen("it is at rest")
	before, strategy := s.uids(s.t), fmt.Sprint(s.set.Object["spec"].(map[string]any)["updateStrategy"]) //nolint:forcetypeassert // the API server's
	s.rollout(0, "pause")
	s.change(`"template":{"metadata":{"annotations":{"a":"b"}}}`)
	s.seen("the controller knows the new template")
	if err := s.Delete(s.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web-6"}}); err != nil {
		s.t.Fatal(err)
	}
	s.until(s.t, "the pod that died is another", func(context.Context) bool { return s.uids(s.t)["web-6"] != before["web-6"] })
	current, update := s.seen("it is back")
	now := s.uids(s.t)
	if now["web-5"] != before["web-5"] || now["web-7"] != before["web-7"] || current == update {
		s.t.Errorf("pods were replaced while it was paused: %v and %v; revisions %s and %s", before, now, current, update)
	}
	// A StatefulSet is paused by its partition, which makes the controller create
	// pods from the current revision.
	if made, want := s.revision("web-6"), map[bool]string{true: update, false: current}[slice]; made != want {
		s.t.Errorf("the pod that died came back as %s, expected %s", made, want)
	}
	if said := s.rollout(1, "restart -y"); !strings.Contains(said, "is paused: resume it first") {
		s.t.Error(said)
	}
	s.watched("is paused", func() { s.rollout(0, "resume") })
	s.seen("it is at rest")
	if got := fmt.Sprint(s.set.Object["spec"].(map[string]any)["updateStrategy"]); got != strategy || len(s.set.GetAnnotations()) > 0 { //nolint:forcetypeassert // the API server's
		s.t.Errorf("the strategy is %s and was %s; annotations %v", got, strategy, s.set.GetAnnotations())
	}
	after := s.uids(s.t)
	if after["web-5"] != before["web-5"] || s.revision("web-6") != update || s.revision("web-7") != update {
		s.t.Errorf("%v became %v; %s and %s, expected %s", before, after, s.revision("web-6"), s.revision("web-7"), update)
	}
	s.rollout(0, "restart -y")
	if said := s.rollout(0, "status --timeout 1m"); !strings.Contains(said, "is rolled out: 2 of 3 pods") || maps.Equal(s.uids(s.t), after) {
		s.t.Errorf("restarted: %s %v", said, s.uids(s.t))
	}
}

// watched runs a status command until its output contains says, calls then, which lets the update continue,
// and requires that the command ends with the update.
func (s *steered) watched(says string, then func()) {
	s.t.Helper()
	status := s.command("status --timeout 1m")
	out, err := status.StdoutPipe()
	if err == nil {
		err = status.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	said, done := "", false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said += lines.Text() + "\n"
		if !done && strings.Contains(lines.Text(), says) {
			done = true
			then()
		}
	}
	if err := status.Wait(); err != nil || !done || !strings.Contains(said, "is rolled out: 2 of 3 pods") {
		s.t.Errorf("%v; it said\n%s", err, said)
	}
}

// The status command of a slice that makes no progress ends, and reports it.
func TestTheStatusEndsWithTheProgressDeadline(t *testing.T) {
	t.Parallel()
	s := newSteered(t, bed.West, true)
	s.rollout(0, "status --timeout 1m")
	s.change(fmt.Sprintf(`"progressDeadlineSeconds":5,"template":{"metadata":{"annotations":{%q:"true"}}}`, cluster.NeverReady))
	if said := s.rollout(4, "status --timeout 1m"); !strings.Contains(said, "StatefulSetSlice "+s.namespace+"/web: no progress for 5s: pod web-7 is not available") {
		t.Error(said)
	}
	s.change(`"progressDeadlineSeconds":600`)
	s.until(s.t, "the controller has seen the deadline", s.observed)
	s.rollout(0, "undo -y")
	if err := s.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web-7"}}); err != nil {
		t.Fatal(err)
	}
	s.rollout(0, "status --timeout 1m")
}

// A failed update is rolled back without a change of the spec, and stays rolled
// back until the template is fixed.
func TestAnUpdateThatFailsIsRolledBack(t *testing.T) {
	t.Parallel()
	s := newSteered(t, bed.West, true)
	s.rollout(0, "status --timeout 1m")
	former, _ := s.seen("it is at rest")
	s.change(fmt.Sprintf(`"progressDeadlineSeconds":5,"updateStrategy":{"rollingUpdate":{"onFailure":"Rollback"}},"template":{"metadata":{"annotations":{%q:"true"}}}`, cluster.NeverReady))
	// The deadline of the set may pass before that of the new pod, which counts from the pod's creation.
	s.rollout(4, "status --timeout 1m")
	s.until(s.t, "the update has failed", func(ctx context.Context) bool {
		err := s.Get(ctx, client.ObjectKeyFromObject(s.set), s.set)
		failed, _, _ := unstructured.NestedString(s.set.Object, "status", "failedRevision")
		return err == nil && failed != ""
	})
	if said := s.rollout(4, "status --timeout 1m"); !strings.Contains(said, "has failed (no progress for 5s: pod web-7 ") {
		t.Error(said)
	}
	current, update := s.seen("all pods are ready again")
	for _, pod := range []string{"web-5", "web-6", "web-7"} {
		if got := s.revision(pod); got != former {
			t.Errorf("pod %s is of %s, expected %s", pod, got, former)
		}
	}
	template, _, _ := unstructured.NestedStringMap(s.set.Object, "spec", "template", "metadata", "annotations")
	failed, _, _ := unstructured.NestedString(s.set.Object, "status", "failedRevision")
	if current != former || update == former || failed != update || template[cluster.NeverReady] != "true" || s.set.GetGeneration() != 2 {
		t.Errorf("current %s, update %s, failed %s, expected %s before; template %v, generation %d", current, update, failed, former, template, s.set.GetGeneration())
	}
	s.change(fmt.Sprintf(`"progressDeadlineSeconds":600,"template":{"metadata":{"annotations":{%q:null,"mended":"yes"}}}`, cluster.NeverReady))
	if said := s.rollout(0, "status --timeout 1m"); !strings.Contains(said, "is rolled out: 2 of 3 pods") {
		t.Error(said)
	}
}
