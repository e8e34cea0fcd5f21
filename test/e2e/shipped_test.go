//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

const (
	home    = "stsmigrate" // the namespace of the programs
	account = "orchestrator"
)

var shipping sync.Once

// shipped installs the programs as they are shipped, from the images of the Dockerfile and the
// chart: both controllers in west, and the orchestrator's account in east, with its credentials in
// west.
func shipped(t *testing.T) {
	t.Helper()
	b := clusters(t)
	shipping.Do(func() {
		archive := filepath.Join(suite.dir, "shipped.tar")
		for _, args := range [][]string{
			{"make", "images", "VERSION=shipped"},
			{"docker", "save", "-o", archive, "orchestrator:shipped", "slicecontroller:shipped"},
		} {
			if _, err := command("../..", args[0], args[1:]...); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Load(b.West, archive); err != nil {
			t.Fatal(err)
		}
		// The other tests move sets as the administrator of both clusters.
		movers := "policies.movers.groups[0]=kubeadm:cluster-admins"
		installed(t, b.West.Kubeconfig, "orchestrator", "slicecontroller", "policies", "--set", "image.registry=,image.tag=shipped,image.pullPolicy=Never,"+movers)
		installed(t, b.East.Kubeconfig, "account", "policies", "--set", movers)
		acquaint(t)
	})
	for _, name := range []string{"orchestrator", "slicecontroller"} {
		eventually(t, 2*time.Minute, "the Deployment "+name+" is available", func(ctx context.Context) error {
			var d appsv1.Deployment
			if err := b.West.Client.Get(ctx, client.ObjectKey{Namespace: home, Name: name}, &d); err != nil {
				return err
			}
			if d.Status.AvailableReplicas != *d.Spec.Replicas {
				return fmt.Errorf("%d of %d pods are available", d.Status.AvailableReplicas, *d.Spec.Replicas)
			}
			return nil
		})
	}
}

func installed(t *testing.T, kubeconfig string, args ...string) {
	t.Helper()
	out, err := command("../..", suite.binary, append([]string{"install", "--apply", "--kubeconfig", kubeconfig}, args...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// acquaint gives the orchestrator in west the credentials for east, with the address that pods can
// reach.
func acquaint(t *testing.T) {
	t.Helper()
	b := clusters(t)
	token := authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(86400))}}
	if err := b.East.Client.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: account}}, &token); err != nil {
		t.Fatal(err)
	}
	inside, err := b.Inside(b.East)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range inside.Contexts {
		c.AuthInfo = account
	}
	inside.AuthInfos = map[string]*clientcmdapi.AuthInfo{account: {Token: token.Status.Token}}
	raw, err := clientcmd.Write(*inside)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "east", Labels: map[string]string{"stsmigrate.dev/cluster": b.East.Context()}},
		Data:       map[string][]byte{"kubeconfig": raw},
	}
	if err := b.West.Client.Delete(t.Context(), secret.DeepCopy()); client.IgnoreNotFound(err) != nil { // of another run
		t.Fatal(err)
	}
	if err := b.West.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// asked runs stsmigrate for a plan in the namespace of the orchestrator.
func asked(t *testing.T, args ...string) string {
	t.Helper()
	b := clusters(t)
	cmd := exec.CommandContext(t.Context(), suite.binary, append(args, "--kubeconfig", b.East.Kubeconfig, "--to-kubeconfig", b.West.Kubeconfig, "--to-namespace", home)...)
	cmd.Env = []string{"COLUMNS=10000", "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("stsmigrate %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// permitted gives the orchestrator the rights for a plan and records the consent of both sides.
func (s fixture) permitted(t *testing.T, file string) {
	t.Helper()
	for _, what := range []string{"rbac", "consent", "consent --cluster"} {
		for side, p := range map[string]place{"source": s.places()[0], "destination": s.places()[1]} {
			out := s.run(t, 0, append(strings.Fields(what), "--plan", file, "--side", side)...)
			for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(out), 4096); ; {
				o := &unstructured.Unstructured{}
				if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if len(o.Object) == 0 {
					continue // the comment before the first object
				}
				write := func() error { return p.Client.Create(t.Context(), o) }
				if o.GetResourceVersion() != "" { // keeps the consent to other plans
					write = func() error { return p.Client.Update(t.Context(), o) }
				}
				if err := write(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// outcome waits until the journal of a plan has the outcome want.
func outcome(t *testing.T, plan, want string) {
	t.Helper()
	eventually(t, 5*time.Minute, "plan "+plan+" is "+want, func(ctx context.Context) error {
		var cm corev1.ConfigMap
		if err := clusters(t).West.Client.Get(ctx, client.ObjectKey{Namespace: home, Name: "stsmigrate-" + plan + "-journal"}, &cm); err != nil {
			return err
		}
		var j struct{ Outcome, Held string }
		if err := json.Unmarshal([]byte(cm.Data["journal.json"]), &j); err != nil {
			return err
		}
		if j.Outcome != want {
			return fmt.Errorf("its outcome is %q, and it is blocked: %q", j.Outcome, j.Held)
		}
		return nil
	})
}

// The shipped orchestrator moves a set to its own cluster from a cluster that it reaches by a
// Secret. Its pods are deleted during the move. The destination's set is of either kind.
func TestTheOrchestratorAsItIsShippedMovesASet(t *testing.T) {
	shipped(t)
	for kind, name := range map[string]string{"sts": "shipped", "stss": "sliced"} {
		t.Run(kind, func(t *testing.T) {
			s := between(t, name)
			s.started(t, s.dataSet(cluster.SharedClass))
			plan := name + suite.suffix
			file := filepath.Join(t.TempDir(), "plan.yaml")
			s.run(t, 0, "plan", s.set, "--name", plan, "--to-kind", kind, "--out", file)
			s.permitted(t, file)
			watch, w := s.listen(t.Context()), s.witness(t)
			if kind == "stss" {
				w.Stop() // the witness supports StatefulSets only
			}
			began := time.Now()
			whenFailed(t, s.run(t, 0, "apply", file, "--detach", "--home-context", s.to.Context(), "--yes"))
			for _, k := range []int32{1, 2} {
				s.reached(t.Context(), t, k)
				if err := s.to.Client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(home), client.MatchingLabels{"app.kubernetes.io/name": "orchestrator"}); err != nil {
					t.Fatal(err)
				}
			}
			outcome(t, plan, "Moved")
			r := row{scenario: "data, orchestrator in a pod, " + kind, ordinals: int(s.replicas), d: s.d, wall: time.Since(began)}
			whenFailed(t, asked(t, "status", plan))
			observed := watch()
			r.gap = observed.gap
			if kind == "sts" {
				r.hear(t, w)
			}
			s.judge(t, &r, observed)
			asked(t, "finalize", plan, "--yes")
			outcome(t, plan, "Finalized")
			s.available(t, s.places()[1])
			s.nothingDestroyed(t)
		})
	}
}

// slice returns the data application as a StatefulSetSlice of the west.
func (s fixture) slice(t *testing.T, change func(spec map[string]any)) *unstructured.Unstructured {
	t.Helper()
	raw, err := json.Marshal(s.dataSet(cluster.SharedClass))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetAPIVersion("apps.stsmigrate.dev/v1alpha1")
	o.SetKind("StatefulSetSlice")
	delete(o.Object, "status")
	spec, _ := o.Object["spec"].(map[string]any)
	change(spec)
	return o
}

// sliced returns a fixture of a slice in the west that does not move.
func sliced(t *testing.T, namespace string, replicas int32) fixture {
	t.Helper()
	s := between(t, namespace)
	s.from, s.replicas = s.to, replicas
	return s
}

func patched(t *testing.T, s fixture, o *unstructured.Unstructured, patch string) {
	t.Helper()
	if err := s.to.Client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// The template has an image that no node has. The update halts at the highest ordinal, and nothing
// else is touched. A corrected template repairs the set without a manual step, and the data is
// unchanged (3541-42).
func TestAnEnforcedUpdateRecoversFromABadImage(t *testing.T) {
	shipped(t)
	s := sliced(t, "mended", 3)
	o := s.slice(t, func(spec map[string]any) {
		spec["podManagementPolicy"] = "OrderedReady"
		spec["updateStrategy"] = map[string]any{"type": "EnforcedRollingUpdate"}
	})
	s.create(t, append(s.around(true, 8080), o)...)
	s.available(t, s.places()[0])
	s.acquainted(t)
	before := s.states(t.Context())
	good, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	bad := bytes.ReplaceAll(mustJSON(t, good), []byte(":e2e"), []byte(":missing"))
	patched(t, s, o, `{"spec":{"template":{"spec":{"containers":`+string(bad)+`}}}}`)
	waiting := func(ctx context.Context) error {
		var pod corev1.Pod
		if err := s.to.Client.Get(ctx, client.ObjectKey{Namespace: s.source, Name: "web-2"}, &pod); err != nil {
			return err
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Waiting != nil && strings.Contains(c.State.Waiting.Reason, "ErrImage") {
				return nil
			}
		}
		return fmt.Errorf("pod web-2 is %s", pod.Status.Phase)
	}
	eventually(t, time.Minute, "the highest pod has no image", waiting)
	if states := s.states(t.Context()); len(states) != 2 {
		t.Errorf("%d members answer, expected that the other two do", len(states))
	}
	patched(t, s, o, `{"spec":{"template":{"metadata":{"annotations":{"mended":"yes"}},"spec":{"containers":`+string(mustJSON(t, good))+`}}}}`)
	eventually(t, 2*time.Minute, "all pods have the mended template", func(ctx context.Context) error {
		pods := s.pods(ctx)
		for _, p := range pods {
			if p.Annotations["mended"] != "yes" {
				return fmt.Errorf("pod %s has not", p.Name)
			}
		}
		return nil
	})
	s.available(t, s.places()[0])
	h := observed{from: s.source, records: map[string]map[string]int{}, wrong: map[string]bool{}}
	for _, states := range []map[string]memberState{before, s.states(t.Context())} {
		for pod, state := range states {
			h.take(pod, state)
		}
	}
	for w := range h.wrong {
		t.Error(w)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A pod is available when it has been ready for minReadySeconds without a crash of its container.
// The initial delay of the probe is added to that (2599-02, 2599-04).
func TestAvailabilityOfRealPodsIsATime(t *testing.T) {
	shipped(t)
	s := sliced(t, "timed", 1)
	const delay, ready = 3, 5
	o := s.slice(t, func(spec map[string]any) {
		spec["minReadySeconds"] = int64(ready)
		containers, _, _ := unstructured.NestedSlice(spec, "template", "spec", "containers")
		c, _ := containers[0].(map[string]any)
		_ = unstructured.SetNestedField(c, int64(delay), "readinessProbe", "initialDelaySeconds")
		_ = unstructured.SetNestedSlice(spec, containers, "template", "spec", "containers")
	})
	s.create(t, append(s.around(true, 8080), o)...)
	ran := func() time.Duration { // from the start of the container until the pod is available
		s.available(t, s.places()[0])
		at := time.Now()
		pods := s.pods(t.Context())
		if len(pods) != 1 || len(pods[0].Status.ContainerStatuses) != 1 || pods[0].Status.ContainerStatuses[0].State.Running == nil {
			t.Fatalf("its pod is not running: %v", pods)
		}
		return at.Sub(pods[0].Status.ContainerStatuses[0].State.Running.StartedAt.Time)
	}
	if took := ran(); took < (delay+ready-1)*time.Second { // the kubelet's times have whole seconds
		t.Errorf("available %s after the container began, expected %d s and %d s", took, delay, ready)
	}
	if err := s.places()[0].ask(t.Context(), "POST", "web-0", "crash", nil, nil); err == nil {
		t.Error("the container was to crash, and answered")
	}
	eventually(t, time.Minute, "the pod counts no longer", func(ctx context.Context) error {
		if set, err := s.places()[0].find(ctx, s.set); err != nil || set.Status.AvailableReplicas > 0 {
			return fmt.Errorf("%v available: %w", set, err)
		}
		return nil
	})
	if took := ran(); took < (delay+ready-1)*time.Second {
		t.Errorf("available %s after the crash, expected %d s and %d s", took, delay, ready)
	}
}
