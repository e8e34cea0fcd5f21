// Package install_test installs the contents of deploy/ in a real control plane and checks what its
// admission policies refuse.
package install_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

var (
	north  *cluster.Cluster
	binary string
)

func TestMain(m *testing.M) {
	fixture.Tests("install", 1, func(ctx context.Context, dir string) (int, error) { return withCluster(ctx, dir, m) })
}

func withCluster(ctx context.Context, dir string, m *testing.M) (code int, err error) {
	if binary, err = fixture.Build(ctx, dir, "stsmigrate"); err != nil {
		return 1, err
	}
	if north, err = cluster.Start(ctx, "north", cluster.Options{}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, north.Stop(ctx)) }()
	return m.Run(), nil
}

func stsmigrate(t *testing.T, args ...string) (said string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := fixture.Command(t.Context(), north.Kubeconfig, t.TempDir(), binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, &errOut)
	}
	return out.String(), nil
}

// as returns a client that acts as user, or as the administrator if user is empty.
func as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	config := north.Config()
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:masters")} // RBAC is not under test
	}
	c, err := client.New(config, client.Options{Scheme: clusters.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The printed and the applied objects are the same, a second apply changes nothing, and a
// Deployment comes up. Its namespace accepts only restricted pods.
func TestInstallPrintsWhatItApplies(t *testing.T) {
	args := []string{"install", "orchestrator", "slicecontroller", "-n", "ours", "--set", "orchestrator.replicas=3"}
	printed, err := stsmigrate(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	first, err := stsmigrate(t, append(args, "--apply")...)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Count(printed, "\nkind: "); strings.Count(first, " applied\n") != want {
		t.Errorf("%d objects are printed, and applied are\n%s", want, first)
	}
	at := as(t, "")
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := at.List(ctx, &pods, client.InNamespace("ours"), client.MatchingLabels{"app.kubernetes.io/name": "orchestrator"})
		return len(pods.Items) == 3, err
	})
	if err != nil {
		t.Fatalf("three pods of the orchestrator: %v", err)
	}
	before := generation(t, at, "orchestrator")
	if _, err := stsmigrate(t, append(args, "--apply")...); err != nil {
		t.Fatal(err)
	}
	if after := generation(t, at, "orchestrator"); after != before {
		t.Errorf("applied once more, the Deployment went from generation %d to %d", before, after)
	}
	kubectl, err := cluster.Program(t.Context(), "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	diff := fixture.Command(t.Context(), north.Kubeconfig, t.TempDir(), kubectl, "diff", "--server-side", "--field-manager=stsmigrate", "-f", "-")
	diff.Stdin = strings.NewReader(printed)
	if out, err := diff.CombinedOutput(); err != nil {
		t.Errorf("kubectl finds that what is printed is not what is there: %v\n%s", err, out)
	}
}

func generation(t *testing.T, at client.Client, name string) int64 {
	t.Helper()
	var d appsv1.Deployment
	if err := at.Get(t.Context(), client.ObjectKey{Namespace: "ours", Name: name}, &d); err != nil {
		t.Fatal(err)
	}
	return d.Generation
}

func TestInstallSaysWhatItDoesNotKnow(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"orchestrators"}, "there is no component"},
		{[]string{"--set", "orchestrator.replica=3"}, "values: at '/orchestrator': additional properties 'replica' not allowed"},
		{[]string{"--set", "orchestrator.replicas=many"}, "values: at '/orchestrator/replicas': got string, want integer"},
		{[]string{"-n", "Moves"}, `"Moves" is no name for a namespace`},
		{[]string{"--values", "not-there.yaml"}, "not-there.yaml"},
	} {
		said, err := stsmigrate(t, append([]string{"install"}, c.args...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) || said != "" {
			t.Errorf("install %v: %v\n%s", c.args, err, said)
		}
	}
}

// One orchestrator of a cluster takes the requests of all namespaces; others get the namespaces by name.
func TestOneInstallTakesTheRequestsOfAllNamespaces(t *testing.T) {
	all, some := "orchestrator.requestsFrom={*}", "orchestrator.requestsFrom={default}"
	if out, err := stsmigrate(t, "install", "orchestrator", "--apply", "--set", all); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := stsmigrate(t, "install", "-n", "third", "orchestrator", "--apply", "--set", all); err == nil || out != "" || !strings.Contains(err.Error(), "one orchestrator of a cluster takes the requests of all namespaces: name those of this one") {
		t.Errorf("two take the requests of all: %v\n%s", err, out)
	}
	if out, err := stsmigrate(t, "install", "-n", "third", "orchestrator", "--apply", "--set", some); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Two orchestrators can be in one cluster, each with its own objects, under the policies of one of
// them.
func TestAnInstallTakesNothingOverFromAnotherNamespace(t *testing.T) {
	for _, args := range [][]string{{"orchestrator", "policies"}, {"-n", "ours", "slicecontroller"}} {
		if out, err := stsmigrate(t, append([]string{"install", "--apply"}, args...)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	at := as(t, "")
	for component, want := range map[string]string{
		"policies":        "in namespace stsmigrate, and nothing was applied: a cluster has its policies once: leave the component policies out here, and name this account there: stsmigrate install -n stsmigrate policies --set policies.accounts={system:serviceaccount:other:orchestrator} --apply",
		"slicecontroller": "in namespace ours, and nothing was applied: a cluster has it once",
	} {
		out, err := stsmigrate(t, "install", "-n", "other", "orchestrator", component, "--apply")
		if err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%s: %v\n%s", component, err, out)
		}
		if err := at.Get(t.Context(), client.ObjectKey{Name: "other"}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: namespace other: %v", component, err)
		}
	}
	if out, err := stsmigrate(t, "install", "-n", "other", "orchestrator", "--apply"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, namespace := range []string{"stsmigrate", "other"} {
		var binding rbacv1.ClusterRoleBinding
		if err := at.Get(t.Context(), client.ObjectKey{Name: "stsmigrate-orchestrator." + namespace}, &binding); err != nil {
			t.Fatal(err)
		}
		if len(binding.Subjects) != 1 || binding.Subjects[0].Namespace != namespace {
			t.Errorf("%s is for %v", binding.Name, binding.Subjects)
		}
	}
}
