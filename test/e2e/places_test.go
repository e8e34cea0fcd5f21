//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/e2e/bed"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/performance/bench/traffic"
)

const (
	imageSize = 300 << 20 // of bytes that nothing can compress
	pullRate  = 8 << 20   // bytes in a second, of each of the three connections by which a node pulls
	lateness  = 15 * time.Second
)

// scene is a set and what it finds on the destination.
type scene struct {
	name     string
	replicas int32
	apart    bool // each on a node of its own
	late     bool // the third node joins when a pod has waited for it for a while
	proofs   []plans.Proof
}

func scenes() []scene {
	return []scene{
		{"late", 3, true, true, []plans.Proof{plans.NoProof, plans.Warm, plans.Scheduled}},
		{"alike", 6, false, false, []plans.Proof{plans.NoProof, plans.Warm}},
	}
}

// TestPlaces measures what the places that are taken before the ordinals leave are worth: between two clusters, of which the
// second has three workers, and pulls a large image slowly. It runs only if E2E_PLACES says where its page goes.
func TestPlaces(t *testing.T) {
	page := os.Getenv("E2E_PLACES")
	if page == "" {
		t.Skip("make places runs it")
	}
	commit, err := command("../..", "git", "describe", "--always", "--dirty") // of what runs: the folder may change meanwhile
	if err != nil {
		t.Fatal(err)
	}
	b, err := bed.UpWith(t.Context(), filepath.Join(suite.dir, "places"), bed.Workers{West: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Down(); err != nil {
			t.Error(err)
		}
	})
	if err := b.Bring(t.Context(), "placeholder"); err != nil {
		t.Fatal(err)
	}
	registry, err := b.Registry(t.Context(), pullRate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.Close() })
	// The control plane of the destination takes no pods: the three workers are alike.
	taint := []byte(`{"spec":{"taints":[{"key":"node-role.kubernetes.io/control-plane","effect":"NoSchedule"}]}}`)
	if _, err := b.West.Set.CoreV1().Nodes().Patch(t.Context(), b.West.Name+"-control-plane", types.MergePatchType, taint, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	var all []*journey
	for _, sc := range scenes() {
		for _, proof := range sc.proofs {
			name := fmt.Sprintf("%s-%s", sc.name, proof)
			t.Run(name, func(t *testing.T) {
				image, err := registry.Put(t.Context(), "data", name, imageSize, uint64(len(all)))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := registry.Forget(context.WithoutCancel(t.Context()), image); err != nil {
						t.Error(err)
					}
				})
				namespace := "places-" + name
				s := fixture{set: "web", from: b.East, to: b.West, source: namespace, destination: namespace, replicas: sc.replicas, d: 1}
				j := s.measured(t, sc, proof, image)
				all = append(all, j)
				fmt.Print(j.table())
				if err := writePlaces(page, strings.TrimSpace(commit), b, all); err != nil { // each takes minutes
					t.Fatal(err)
				}
			})
		}
	}
}

// measured moves a set, and returns what each ordinal has taken.
func (s fixture) measured(t *testing.T, sc scene, proof plans.Proof, image string) *journey {
	t.Helper()
	set := s.dataSet(cluster.SharedClass)
	pod := &set.Spec.Template.Spec
	pod.Containers[0].Image, pod.Containers[0].ImagePullPolicy = image, corev1.PullIfNotPresent
	pod.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	s.create(t, append(s.around(false, 8080), set)...)
	s.available(t, s.places()[0])
	counters := map[*bed.Cluster]*traffic.Counter{}
	counted := func(c *bed.Cluster) *bed.Cluster {
		through := *c
		through.Kubeconfig = filepath.Join(t.TempDir(), "counting")
		counter, err := traffic.Before(t.Context(), through.Kubeconfig, traffic.Server{Name: c.Name, Config: c.Config})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = counter.Close() })
		counters[c] = counter
		return &through
	}
	through := s
	through.from, through.to = counted(s.from), counted(s.to)

	file := filepath.Join(t.TempDir(), "plan.yaml")
	args := []string{"plan", s.set, "--max-unavailable", "1", "--placeholder", string(proof), "--out", file}
	if proof != plans.NoProof {
		args = append(args, "--placeholder-image", bed.Image("placeholder"))
	}
	if sc.apart {
		args = append(args, "--patch", apart(t))
	}
	if sc.late {
		args = append(args, "--ignore", "nodes-fit") // which sees two nodes for three pods
	}
	whenFailed(t, through.run(t, 0, args...))
	for _, c := range counters {
		c.Take()
	}
	j := &journey{scene: sc, proof: proof, members: s.members(), ordinals: map[string]*stretch{}, requests: requestsOf{}}
	for side, p := range s.places() {
		j.watch(t, side, p)
	}
	if sc.late {
		s.joinsLate(t, s.to.Name+"-worker3")
	}
	whenFailed(t, through.run(t, 0, "apply", file, "--yes"))
	for _, c := range counters {
		j.requests.take(c.Take())
	}
	eventually(t, time.Minute, "the watches have seen every ordinal arrive", func(context.Context) error { return j.complete(int(s.replicas)) })
	return j
}

// apart returns the file of a patch that keeps the pods of the set on nodes of their own.
func apart(t *testing.T) string {
	t.Helper()
	const patch = `spec: {template: {spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
  {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}}}}`
	file := filepath.Join(t.TempDir(), "apart.yaml")
	if err := os.WriteFile(file, []byte(patch), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// joinsLate lets a node of the destination take pods only some time after the scheduler has said that a pod has no node, as
// one that an autoscaler starts.
func (s fixture) joinsLate(t *testing.T, node string) {
	t.Helper()
	to := s.places()[1]
	if err := to.cordon(t.Context(), node, true); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	pods, err := to.Set.CoreV1().Pods(to.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var joining sync.WaitGroup
	joining.Go(func() {
		for e := range pods.ResultChan() {
			if pod, is := e.Object.(*corev1.Pod); is && met(pod, corev1.PodScheduled) == corev1.ConditionFalse {
				select {
				case <-time.After(lateness):
				case <-ctx.Done():
				}
				break
			}
		}
		if err := to.cordon(context.WithoutCancel(ctx), node, false); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		pods.Stop()
		joining.Wait()
	})
}

// met returns the status of a condition of a pod.
func met(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}
