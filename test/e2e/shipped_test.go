//go:build e2e

package e2e

import (
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
		eventually(t, 10*time.Minute, "the Deployment "+name+" is available", func(ctx context.Context) error {
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
	eventually(t, 20*time.Minute, "plan "+plan+" is "+want, func(ctx context.Context) error {
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
