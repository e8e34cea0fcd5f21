//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/e2e/bed"
	"github.com/stsmigrate/stsmigrate/test/internal/witness"
)

// fixture describes one set and its move.
type fixture struct {
	set                 string
	from, to            *bed.Cluster
	source, destination string // namespaces
	replicas            int32
	start               int32 // the lowest ordinal
	d                   int
}

// members returns the names of the set's pods.
func (s fixture) members() (names []string) {
	for i := range s.replicas {
		names = append(names, fmt.Sprintf("%s-%d", s.set, s.start+i))
	}
	return names
}

// back returns the fixture of the reverse move.
func (s fixture) back() fixture {
	s.from, s.to, s.source, s.destination = s.to, s.from, s.destination, s.source
	return s
}

// places returns the cluster and namespace of the source, and of the destination.
func (s fixture) places() []place {
	return []place{{s.from, s.source}, {s.to, s.destination}}
}

type place struct {
	*bed.Cluster
	namespace string
}

// kinds returns the kinds that a set can have.
func kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), {Group: "apps.stsmigrate.dev", Version: "v1alpha1", Kind: "StatefulSetSlice"}}
}

// find reads a set of either kind: both kinds have the same field names.
func (p place) find(ctx context.Context, name string) (set *appsv1.StatefulSet, err error) {
	for _, kind := range kinds() {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		if err = p.Client.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, o); err == nil {
			set = &appsv1.StatefulSet{}
			return set, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, set)
		}
	}
	return nil, err
}

// create creates the missing namespaces, and the objects in the source.
func (s fixture) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, p := range s.places() {
		err := p.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { s.leave(t) })
	for _, o := range objects {
		if err := s.from.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// leave deletes the set on both sides, because the machine is small. Its volumes stay, so that a
// destroyed volume was destroyed by a move.
func (s fixture) leave(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	defer cancel()
	for _, p := range s.places() {
		for _, kind := range kinds() {
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(kind)
			o.SetNamespace(p.namespace)
			o.SetName(s.set)
			if err := p.Client.Delete(ctx, o); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
				t.Error(err)
			}
		}
	}
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) { return len(s.pods(ctx)) == 0, nil })
	if err != nil {
		t.Errorf("the pods of %s do not end: %v", s.set, err)
	}
}

// flags returns the flags of every command.
func (s fixture) flags() []string {
	return []string{"-n", s.source, "--kubeconfig", s.from.Kubeconfig, "--to-kubeconfig", s.to.Kubeconfig, "--to-namespace", s.destination}
}

// stsmigrate returns a command that is not started yet, and the buffer of its output.
func (s fixture) stsmigrate(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), suite.binary, append(args, s.flags()...)...)
	cmd.Env = []string{"COLUMNS=10000", "HOME=" + t.TempDir()}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// run runs stsmigrate, which must exit with the given code, and returns its output.
func (s fixture) run(t *testing.T, code int, args ...string) string {
	t.Helper()
	cmd, out := s.stsmigrate(t, args...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != code {
		t.Fatalf("stsmigrate %s: %v, expected exit code %d\n%s", strings.Join(args, " "), err, code, out.Bytes())
	}
	return out.String()
}

// plan plans the move and returns the file of the plan.
func (s fixture) plan(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.yaml")
	whenFailed(t, s.run(t, 0, "plan", s.set, "--max-unavailable", fmt.Sprint(s.d), "--out", file))
	return file
}

// fault is an action that starts once a number of ordinals has left for the destination.
type fault struct {
	at   int32
	what func(*testing.T) string // returns a note about it
}

// move moves the set to the destination, with faults, and returns the results. The process that
// moves the set is killed whenever the number of moved ordinals reaches one of kills.
func (s fixture) move(t *testing.T, faults []fault, kills ...int32) (*witness.Report, row) {
	t.Helper()
	return s.carry(t, s.plan(t), faults, kills...)
}

// carry carries a plan out, as move does.
func (s fixture) carry(t *testing.T, file string, faults []fault, kills ...int32) (*witness.Report, row) {
	t.Helper()
	w := s.witness(t)
	var happening sync.WaitGroup
	happened := make([]string, len(faults))
	for i, f := range faults {
		happening.Go(func() {
			if s.reached(t.Context(), t, f.at) {
				happened[i] = f.what(t)
			}
		})
	}
	began := time.Now()
	for _, k := range kills {
		s.killed(t, k, "apply", file, "--yes")
	}
	out := s.run(t, 0, "apply", file, "--yes")
	r := row{ordinals: int(s.replicas), d: s.d, wall: time.Since(began)}
	whenFailed(t, out)
	happening.Wait()
	for _, line := range happened {
		r.note("%s", line)
	}
	report := r.hear(t, w)
	s.available(t, s.places()[1])
	return report, r
}

// witness starts to watch the set.
func (s fixture) witness(t *testing.T) *witness.Witness {
	t.Helper()
	w, err := witness.Watch(t.Context(), s.set, 1, witness.Side{Config: s.from.Config, Namespace: s.source}, witness.Side{Config: s.to.Config, Namespace: s.destination})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// hear stops a witness and records its observations.
func (r *row) hear(t *testing.T, w *witness.Witness) *witness.Report {
	t.Helper()
	report := w.Stop()
	for _, v := range report.Violations {
		t.Errorf("witness: %s", v)
	}
	for _, down := range report.Down {
		r.down = max(r.down, down)
	}
	return report
}

// killed starts stsmigrate and kills it once a number of ordinals is reached.
func (s fixture) killed(t *testing.T, at int32, args ...string) {
	t.Helper()
	cmd, out := s.stsmigrate(t, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reached := make(chan bool, 1)
	go func() { reached <- s.reached(ctx, t, at) }()
	select {
	case err := <-ended:
		t.Fatalf("stsmigrate %s ended by itself: %v\n%s", strings.Join(args, " "), err, out.Bytes())
	case <-reached:
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err == nil {
			t.Errorf("stsmigrate %s had ended before it was killed", strings.Join(args, " "))
		}
	}
}

// overdue runs stsmigrate until status reports that a wave is overdue, interrupts it then, and
// returns its output.
func (s fixture) overdue(t *testing.T, args ...string) string {
	t.Helper()
	cmd, out := s.stsmigrate(t, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, 15*time.Minute, true, func(context.Context) (bool, error) {
		status, said := s.stsmigrate(t, "status", s.set)
		return status.Run() == nil && strings.Contains(said.String(), "overdue:"), nil
	})
	if err != nil {
		t.Errorf("stsmigrate %s is never overdue: %v", strings.Join(args, " "), err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // its exit code reports the interrupt
	return out.String()
}

// reached waits until the destination's set has at least a number of replicas in its spec. It
// reports whether that happened.
func (s fixture) reached(ctx context.Context, t *testing.T, ordinals int32) bool {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 20*time.Minute, true, func(ctx context.Context) (bool, error) {
		set, err := s.places()[1].find(ctx, s.set)
		return err == nil && *set.Spec.Replicas >= ordinals, nil
	})
	if err != nil && ctx.Err() == nil {
		t.Errorf("the destination never had %d ordinals: %v", ordinals, err)
	}
	return err == nil
}

// whenFailed logs a text only if the test fails, because the text is long.
func whenFailed(t *testing.T, text string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(text)
		}
	})
}

func eventually(t *testing.T, limit time.Duration, what string, is func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		last = is(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("not in %s: %s: %v", limit, what, last)
	}
}

// available waits until all replicas of the set are available in a place.
func (s fixture) available(t *testing.T, p place) {
	t.Helper()
	eventually(t, 10*time.Minute, "the set is available in "+p.namespace+" of "+p.Name, func(ctx context.Context) error {
		set, err := p.find(ctx, s.set)
		if err != nil {
			return err
		}
		if set.Status.AvailableReplicas != s.replicas {
			return fmt.Errorf("%d of %d are available", set.Status.AvailableReplicas, s.replicas)
		}
		return nil
	})
}

// hosts returns the names of all members in the namespaces of both sides.
func (s fixture) hosts() []string {
	var all []string
	for _, ns := range unique(s.source, s.destination) {
		for _, pod := range s.members() {
			all = append(all, fmt.Sprintf("%s.%s.%s.svc.cluster.local", pod, s.set, ns))
		}
	}
	return all
}

// pods returns the existing pods of the set, on both sides.
func (s fixture) pods(ctx context.Context) (all []corev1.Pod) {
	seen := map[string]bool{}
	for _, p := range s.places() {
		var list corev1.PodList
		if p.Client.List(ctx, &list, client.InNamespace(p.namespace), client.MatchingLabels{"app": s.set}) != nil {
			continue
		}
		for _, pod := range list.Items {
			if !seen[string(pod.UID)] {
				all = append(all, pod)
			}
			seen[string(pod.UID)] = true
		}
	}
	return all
}

// ask calls a program in a pod and decodes its response.
func (p place) ask(ctx context.Context, verb, pod, path string, query map[string]string, into any) error {
	r := p.Set.CoreV1().RESTClient().Verb(verb).Namespace(p.namespace).Resource("pods").Name(pod + ":8080").SubResource("proxy").Suffix(path)
	for k, v := range query {
		r.Param(k, v)
	}
	raw, err := r.DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("%s %s of pod %s: %w: %s", verb, path, pod, err, raw)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

func unique(all ...string) []string {
	all = slices.Clone(all)
	slices.Sort(all)
	return slices.Compact(all)
}
