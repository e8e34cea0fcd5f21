//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/placeholder"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/e2e/bed"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// restricted is a security context that the strictest Pod Security Standard lets in.
func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: new(int64(1000)), RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(bool), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// What a real kubelet reports of placeholders of images without a shell, in the strictest namespace.
func TestPlaceholdersOnARealKubelet(t *testing.T) {
	b := clusters(t)
	if err := b.Bring(t.Context(), "placeholder"); err != nil {
		t.Fatal(err)
	}
	namespace := "places" + suite.suffix
	c := b.East.Client
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}); err != nil {
		t.Fatal(err)
	}
	program, data := bed.Image("placeholder"), bed.Image("data")
	for name, s := range map[string]struct {
		image, program string
		change         func(*corev1.PodSpec)
		want           func(placeholder.Proof) bool
		lacks          string // within its words
		runs           bool
	}{
		"with":       {image: data, program: program, runs: true, want: func(p placeholder.Proof) bool { return p.Warm }},
		"without":    {image: data, want: func(p placeholder.Proof) bool { return p.Warm }},
		"no-program": {image: data, program: "stsmigrate.test/no-such-image:1", want: func(p placeholder.Proof) bool { return p.Unbrought && p.Stuck }, lacks: "no-such-image"},
		"invalid":    {image: data, program: "stsmigrate.test/No:1:2", want: func(p placeholder.Proof) bool { return p.Unbrought && p.Stuck }, lacks: "InvalidImageName"},
		"no-image":   {image: "stsmigrate.test/no-such-image:1", program: program, want: func(p placeholder.Proof) bool { return p.Stuck && !p.Unbrought }, lacks: "no-such-image"},
		"no-secret": {image: data, program: program, lacks: `secret "none" not found`, want: func(p placeholder.Proof) bool { return p.Stuck && !p.Unbrought }, change: func(s *corev1.PodSpec) {
			s.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}}}}
		}},
		"no-volume": {image: data, program: program, lacks: "the events of `kubectl describe pod` of it say which", want: func(p placeholder.Proof) bool { return !p.Stuck && !p.Warm && p.Why != "" }, change: func(s *corev1.PodSpec) {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "none"}}})
			s.Containers[0].VolumeMounts = append(s.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "s", MountPath: "/s"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := placeholderOf(t, namespace, name, s.image, s.program, s.change)
			began := time.Now()
			if err := c.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			kubeletSays(t, c, pod, name == "no-volume", func(p placeholder.Proof) bool {
				return s.want(p) && strings.Contains(p.Words(), s.lacks) && s.runs == runs(pod)
			})
			fmt.Printf("  %s: %s: %+v\n", name, time.Since(began).Round(100*time.Millisecond), placeholder.Read(pod))
			ends := time.Now()
			if err := c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
			isGone(t, c, pod)
			fmt.Printf("  %s: gone in %s\n", name, time.Since(ends).Round(100*time.Millisecond))
		})
	}
}

// placeholderOf returns the placeholder of a pod with one container.
func placeholderOf(t *testing.T, namespace, name, image, program string, change func(*corev1.PodSpec)) *corev1.Pod {
	t.Helper()
	of := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "data", Image: image, SecurityContext: restricted()}}}}
	if change != nil {
		change(&of.Spec)
	}
	pod, err := placeholder.Make(placeholder.Place{Pod: of, Name: name + "-place", Plan: "web", Set: "web", Deadline: 600, Program: placeholder.Program{Image: program}})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// kubeletSays waits until a placeholder proves what is expected. Of a volume that is not there its status says nothing,
// however long it lasts: then the kubelet must have tried to mount it.
func kubeletSays(t *testing.T, c client.Client, pod *corev1.Pod, mounts bool, want func(placeholder.Proof) bool) {
	t.Helper()
	eventually(t, 2*time.Minute, "the kubelet says what is expected", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if mounts {
			var events corev1.EventList
			if err := c.List(ctx, &events, client.InNamespace(pod.Namespace)); err != nil || !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "FailedMount" }) {
				return fmt.Errorf("the kubelet has not tried to mount: %w", err)
			}
		}
		if p := placeholder.Read(pod); !want(p) {
			return fmt.Errorf("%+v: %s: %s", p, p.Words(), pod.Status.String())
		}
		return nil
	})
}

func runs(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.Status.ContainerStatuses[0].State.Running != nil
}

func isGone(t *testing.T, c client.Client, pod *corev1.Pod) {
	t.Helper()
	eventually(t, time.Minute, "it is gone", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is there: %w", pod.Name, err)
		}
		return nil
	})
}

// reaching plans a move over placeholders from which something must be reached, and returns the file of the plan.
func (s fixture) reaching(t *testing.T, reach string) string {
	t.Helper()
	folder := t.TempDir()
	migration, file := filepath.Join(folder, "migration.yaml"), filepath.Join(folder, "plan.yaml")
	text := fmt.Sprintf("apiVersion: stsmigrate.dev/v1alpha1\nkind: Migration\nspec:\n  source: {name: %s}\n  placeholder: {proof: warm, image: %q, reach: [%s]}\n", s.set, bed.Image("placeholder"), reach)
	if err := os.WriteFile(migration, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := s.run(t, 0, "plan", "-f", migration, "--out", file); !strings.Contains(out, "must be reached from there: peers:8080") {
		t.Errorf("the plan does not say what must be reached:\n%s", out)
	}
	return file
}

// A set of an image without a shell moves and comes back over real placeholders, with the program and without it. Each ordinal
// runs on the node on which its place was taken.
func TestASetMovesOverRealPlaceholders(t *testing.T) {
	s := between(t, "placed")
	if err := suite.bed.Bring(t.Context(), "placeholder"); err != nil {
		t.Fatal(err)
	}
	s.create(t, append(s.around(false, 8080), s.dataSet(cluster.SharedClass))...)
	s.available(t, s.places()[0])
	w := s.witness(t)
	// What is reached nowhere keeps the first ordinal up, in the words of the DNS of its node.
	out := s.run(t, 4, "apply", s.reaching(t, `"peers:8080", "nobody.invalid:5432"`), "--yes", "--step-timeout", "30s")
	for _, words := range []string{"so web-2 stays up", "(2 of 3 are)", "nobody.invalid:5432", "no such host"} {
		if !strings.Contains(out, words) {
			t.Errorf("expected %q in\n%s", words, out)
		}
	}
	s.run(t, 0, "abort", s.set, "--yes")
	s.available(t, s.places()[0])
	out = s.run(t, 0, "apply", s.reaching(t, `"peers:8080"`), "--yes")
	for _, name := range s.members() {
		if !strings.Contains(out, "make placeholder "+name+"-place") {
			t.Errorf("no placeholder for %s:\n%s", name, out)
		}
	}
	if strings.Contains(out, "without the program") {
		t.Errorf("the program is not brought:\n%s", out)
	}
	s.available(t, s.places()[1])
	whenFailed(t, out)
	if report := s.run(t, 0, "report", s.set, "--format", "json", "--out", "-"); strings.Count(report, "reached 2 of 2")+strings.Count(report, "reached 1 of 1") != len(s.members()) || strings.Contains(report, "clock is") {
		t.Errorf("the report does not say that each place has reached the peers that were up, and of no clock that is off:\n%s", report)
	}
	s.run(t, 0, "abort", s.set, "--yes")
	s.available(t, s.places()[0])
	var r row
	r.hear(t, w)
	for _, p := range s.places() {
		var left corev1.PodList
		if err := p.Client.List(t.Context(), &left, client.InNamespace(p.namespace), client.HasLabels{plans.PlaceholderLabel}); err != nil || len(left.Items) > 0 {
			t.Errorf("%d placeholders are left in %s: %v", len(left.Items), p.namespace, err)
		}
	}
}
