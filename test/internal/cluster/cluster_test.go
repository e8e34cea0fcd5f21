package cluster_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

func TestRunsAStatefulSet(t *testing.T) {
	client := clientOf(t, bed.East)
	ns := namespaceOf(t, client)
	createSet(t, client, set(ns, cluster.SharedClass, 3, 2))
	allReady(t, client, ns, 3)

	t.Run("keeps ordinals.start", func(t *testing.T) {
		s, err := client.AppsV1().StatefulSets(ns).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil || s.Spec.Ordinals == nil || s.Spec.Ordinals.Start != 2 {
			t.Errorf("ordinals = %v, error %v; want a start of 2", s.Spec.Ordinals, err)
		}
		if _, err := client.CoreV1().Pods(ns).Get(t.Context(), "web-4", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("refuses an eviction against the budget", func(t *testing.T) {
		refusesEviction(t, client, ns)
	})
	t.Run("turns a marked pod unready and back", func(t *testing.T) {
		mark(t, client, ns, `"true"`)
		podIs(t, client, ns, "web-3", corev1.ConditionFalse)
		mark(t, client, ns, `null`)
		podIs(t, client, ns, "web-3", corev1.ConditionTrue)
	})
}

func refusesEviction(t *testing.T, client kubernetes.Interface, ns string) {
	t.Helper()
	all := intstr.FromInt32(3)
	_, err := client.PolicyV1().PodDisruptionBudgets(ns).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &all,
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the budget counts the pods", func(ctx context.Context) (bool, error) {
		b, err := client.PolicyV1().PodDisruptionBudgets(ns).Get(ctx, "web", metav1.GetOptions{})
		return err == nil && b.Status.CurrentHealthy == 3, err
	})
	err = client.CoreV1().Pods(ns).EvictV1(t.Context(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web-2"},
	})
	if !apierrors.IsTooManyRequests(err) {
		t.Errorf("eviction: %v, want 429", err)
	}
}

func mark(t *testing.T, client kubernetes.Interface, ns, value string) {
	t.Helper()
	patch := `{"metadata":{"labels":{"` + cluster.NeverReady + `":` + value + `}}}`
	_, err := client.CoreV1().Pods(ns).Patch(t.Context(), "web-3", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func podIs(t *testing.T, client kubernetes.Interface, ns, pod string, want corev1.ConditionStatus) {
	t.Helper()
	eventually(t, pod+" ready: "+string(want), func(ctx context.Context) (bool, error) {
		p, err := client.CoreV1().Pods(ns).Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady {
				return c.Status == want && p.Status.Phase == corev1.PodRunning, nil
			}
		}
		return false, nil
	})
}

func TestNeverReadyFromTheStart(t *testing.T) {
	client := clientOf(t, bed.West)
	ns := namespaceOf(t, client)
	s := set(ns, cluster.SharedClass, 2, 0)
	s.Spec.Template.Annotations = map[string]string{cluster.NeverReady: "true"}
	createSet(t, client, s)
	podIs(t, client, ns, "web-0", corev1.ConditionFalse)
	if _, err := client.CoreV1().Pods(ns).Get(t.Context(), "web-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the set continued past an unready pod: %v", err)
	}
}

func TestAuthorizationIsOn(t *testing.T) {
	config := bed.East.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "nobody"}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("pods for nobody: %v, want Forbidden", err)
	}
}

func TestAdmissionIsOn(t *testing.T) {
	client := clientOf(t, bed.East)
	ns := namespaceOf(t, client)
	made := claim("data", cluster.WaitClass)
	c, err := client.CoreV1().PersistentVolumeClaims(ns).Create(t.Context(), &made, metav1.CreateOptions{})
	if err != nil || !slices.Contains(c.Finalizers, "kubernetes.io/pvc-protection") {
		t.Errorf("no plugin protected the claim: finalizers %v, error %v", c.Finalizers, err)
	}
}

func TestKubeconfigStandsAlone(t *testing.T) {
	kubectl, err := cluster.Program(t.Context(), "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*cluster.Cluster{bed.East, bed.West} {
		text, err := os.ReadFile(c.Kubeconfig)
		if err != nil || strings.Contains(string(text), c.Dir) {
			t.Errorf("the kubeconfig of %s needs other files (error %v)", c.Name, err)
		}
		// Run with another home and another folder: kubectl must need nothing outside the
		// kubeconfig.
		home := t.TempDir()
		cmd := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", c.Kubeconfig, "--context", c.Name, "get", "nodes", "-o", "name")
		cmd.Dir, cmd.Env = home, []string{"HOME=" + home}
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Count(string(out), "node/"+c.Name+"-node-") != 3 {
			t.Errorf("kubectl get nodes on %s: %v\n%s", c.Name, err, out)
		}
	}
}

// The test kills the controller manager, which ends by itself on a machine that is too busy.
func TestAControllerManagerThatEndsIsStartedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "north")
	killed := make(chan error, 1)
	go func() {
		out, err := "", error(nil)
		for out == "" && t.Context().Err() == nil {
			raw, _ := exec.CommandContext(t.Context(), "pgrep", "-f", "kube-controller-manager .*"+dir).Output() // fails while no such process runs
			out = strings.TrimSpace(string(raw))
		}
		if err = exec.CommandContext(t.Context(), "kill", "-9", out).Run(); err != nil {
			err = fmt.Errorf("kill %s: %w", out, err)
		}
		killed <- err
	}()
	c, err := cluster.Start(t.Context(), "north", cluster.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-killed, c.Stop(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestNothingIsLeftOfAKilledStarter(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childFolder+"="+dir)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the child did not start its cluster: %v", err)
	}
	if n := processes(t, strings.TrimSpace(line)); n < 5 {
		t.Fatalf("%d processes run from %s, want the five components", n, line)
	}

	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	eventually(t, "no process is left", func(context.Context) (bool, error) {
		return processes(t, dir) == 0, nil
	})
	eventually(t, "no file is left", func(context.Context) (bool, error) {
		_, err := os.Stat(strings.TrimSpace(line))
		return os.IsNotExist(err), nil
	})
}

// processes counts the processes with dir in their command line.
func processes(t *testing.T, dir string) int {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-A", "-ww", "-o", "args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(out), dir+"/")
}

func TestPodsTakeTheirTime(t *testing.T) {
	const start, stop = time.Second, 1500 * time.Millisecond
	began := time.Now()
	c, err := cluster.Start(t.Context(), "alone", cluster.Options{PodStart: start, PodStop: stop})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("one cluster ready in %s", time.Since(began))
	client := clientOf(t, c)
	began = time.Now()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "slow"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "slow", Image: "slow"}}},
	}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	podIs(t, client, "default", "slow", corev1.ConditionTrue)
	if took := time.Since(began); took < start {
		t.Errorf("ready after %s, want %s", took, start)
	}
	began = time.Now()
	if err := client.CoreV1().Pods("default").Delete(t.Context(), "slow", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is gone", func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Pods("default").Get(ctx, "slow", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if took := time.Since(began); took < stop {
		t.Errorf("gone after %s, want %s", took, stop)
	}
	stopsTwice(t, c)
}

func stopsTwice(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	for range 2 {
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := processes(t, c.Dir); n != 0 {
		t.Errorf("%d processes left", n)
	}
}

func TestRemoveTakesNoOtherFolder(t *testing.T) {
	if err := cluster.Remove(t.Context(), t.TempDir()); err == nil {
		t.Error("Remove accepted a folder that is not the work folder of a cluster")
	}
}
