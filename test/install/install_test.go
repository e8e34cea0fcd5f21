// Package install_test installs what deploy/ has in a real control plane, and asks its admission
// policies for what they refuse.
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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/orchestrator"
	"github.com/stsmigrate/stsmigrate/test/cluster"
	"github.com/stsmigrate/stsmigrate/test/demo/stage"
)

var (
	north  *cluster.Cluster
	binary string
)

func TestMain(m *testing.M) {
	stage.Tests("install", 1, func(ctx context.Context, dir string) (int, error) { return withCluster(ctx, dir, m) })
}

func withCluster(ctx context.Context, dir string, m *testing.M) (code int, err error) {
	if binary, err = stage.Build(ctx, dir, "stsmigrate"); err != nil {
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
	cmd := stage.Command(t.Context(), north.Kubeconfig, t.TempDir(), binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, &errOut)
	}
	return out.String(), nil
}

// as is a client of somebody.
func as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	config := north.Config()
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:masters")} // what RBAC would refuse is not the question
	}
	c, err := client.New(config, client.Options{Scheme: orchestrator.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What is printed and what is applied are the same, to apply it again changes nothing, and a
// Deployment comes up, which in a namespace for restricted pods only restricted pods do.
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
	diff := stage.Command(t.Context(), north.Kubeconfig, t.TempDir(), kubectl, "diff", "--server-side", "--field-manager=stsmigrate", "-f", "-")
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

const (
	account  = "system:serviceaccount:stsmigrate:orchestrator"
	stamp    = "stsmigrate.dev/stamp"
	original = "stsmigrate.dev/reclaim-policy"
)

func volume(name string, policy corev1.PersistentVolumeReclaimPolicy, annotations map[string]string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeReclaimPolicy: policy, ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data-" + name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: name}},
		},
	}
}

func held() map[string]string {
	return map[string]string{stamp: "web/1/7", original: "Delete"}
}

// stamped is what is on a volume that is not held, and that an earlier process may be about to hold.
func stamped() map[string]string { return map[string]string{stamp: "web/1/7"} }

// policed installs the policies, and waits until they are in force: until then anybody may do
// anything.
func policed(t *testing.T) {
	t.Helper()
	if out, err := stsmigrate(t, "install", "policies", "--apply", "--set", "policies.movers.users={anna}", "--set", "policies.movers.groups={movers}"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		user string
		pv   *corev1.PersistentVolume
	}{{account, volume("unmarked", corev1.PersistentVolumeReclaimRetain, nil)}, {"eve", volume("marked", corev1.PersistentVolumeReclaimRetain, held())}} {
		at := as(t, c.user)
		if err := as(t, "").Create(t.Context(), c.pv.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			err := at.Delete(ctx, c.pv.DeepCopy(), client.DryRunAll)
			return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy"), nil
		})
		if err != nil {
			t.Fatalf("the policies are not in force: %v", err)
		}
	}
}

// there makes a volume that is bound, or whose claim is gone, and waits until the volume controller
// has nothing left to write.
func there(t *testing.T, at client.Client, pv *corev1.PersistentVolume, bound bool) *corev1.PersistentVolume {
	t.Helper()
	if bound {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: pv.Spec.ClaimRef.Name}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: pv.Spec.AccessModes, VolumeName: pv.Name, StorageClassName: new(string), Resources: corev1.VolumeResourceRequirements{Requests: pv.Spec.Capacity},
		}}
		if err := at.Create(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		pv.Spec.ClaimRef.UID = claim.UID
	} else {
		pv.Spec.ClaimRef.UID = "gone"
	}
	if err := at.Create(t.Context(), pv); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := at.Get(ctx, client.ObjectKeyFromObject(pv), pv)
		return pv.Status.Phase == corev1.VolumeBound || !bound && (pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed), err
	})
	if err != nil {
		t.Fatalf("volume %s is %s, expected bound: %v: %v", pv.Name, pv.Status.Phase, bound, err)
	}
	return pv
}

func TestPoliciesKeepVolumesFromMistakes(t *testing.T) {
	policed(t)
	owner := as(t, "")
	const retain, destroy = corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete
	const bound, released = true, false
	if err := owner.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	set := func(policy corev1.PersistentVolumeReclaimPolicy, annotations map[string]string) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy, pv.Annotations = policy, annotations
		}
	}
	for n, c := range []struct {
		name    string
		who     client.Client
		policy  corev1.PersistentVolumeReclaimPolicy
		marks   map[string]string
		bound   bool
		change  func(*corev1.PersistentVolume) // nil: delete it
		refused string                         // "" is allowed
	}{
		{"anybody may delete a volume that is not held", as(t, "eve"), retain, nil, released, nil, ""},
		{"nobody deletes a held volume", as(t, "eve"), retain, held(), released, nil, "is held by plan web"},
		{"nor does an administrator", as(t, "admin", "system:masters"), retain, held(), released, nil, "is held by plan web"},
		{"but those who carry the plan out", as(t, account), retain, held(), released, nil, ""},
		{"a person who is named", as(t, "anna"), retain, held(), released, nil, ""},
		{"or one of a group", as(t, "bert", "movers"), retain, held(), released, nil, ""},
		{"the account does not while it is bound", as(t, account), retain, held(), bound, nil, "is in use"},
		{"nor when the disk would go too", as(t, account), destroy, held(), released, nil, "its disk would be destroyed"},
		{"nor one that no plan holds", as(t, account), retain, nil, released, nil, "belongs to no plan"},
		{"nobody flips the policy of a held volume", as(t, "eve"), retain, held(), bound, set(destroy, held()), "stays Retain"},
		{"not even a mover", as(t, "anna"), retain, held(), bound, set(destroy, held()), "stays Retain"},
		{"nobody takes the mark off and leaves the policy", as(t, "eve"), retain, held(), bound, set(retain, nil), "may be put back"},
		{"the policy comes back together with the mark", as(t, account), retain, held(), bound, set(destroy, nil), ""},
		{"a label of somebody else is nobody's business", as(t, "eve"), retain, held(), bound, func(pv *corev1.PersistentVolume) { pv.Labels = map[string]string{"a": "b"} }, ""},
		{"the account holds a volume", as(t, account), destroy, nil, bound, set(retain, held()), ""},
		{"and nothing less", as(t, account), destroy, nil, bound, set(destroy, held()), "would not be Retain"},
		{"it stamps one that it is about to hold", as(t, account), destroy, nil, bound, set(destroy, stamped()), ""},
		{"and leaves the policy of a stamped one", as(t, account), retain, stamped(), bound, set(destroy, stamped()), "would not be Retain"},
		{"or holds it", as(t, account), destroy, stamped(), bound, set(retain, held()), ""},
		{"or gives it back", as(t, account), destroy, stamped(), bound, set(destroy, nil), ""},
		{"or stamps it again", as(t, account), destroy, stamped(), bound, set(destroy, map[string]string{stamp: "web/2/7"}), ""},
		{"a held volume stays held when it is stamped again", as(t, account), retain, held(), bound, set(destroy, stamped()), "would not be Retain"},
		{"and one whose policy somebody has changed can be stamped", as(t, account), destroy, held(), bound, set(destroy, map[string]string{stamp: "web/2/7", original: "Delete"}), ""},
		{"the account changes no volume that it does not hold", as(t, account), destroy, nil, bound, set(retain, nil), "belongs to no plan"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pv := there(t, owner, volume(fmt.Sprintf("pv-%d", n), c.policy, c.marks), c.bound)
			var err error
			if c.change == nil {
				err = c.who.Delete(t.Context(), pv, client.DryRunAll)
			} else {
				c.change(pv)
				err = c.who.Update(t.Context(), pv, client.DryRunAll)
			}
			switch {
			case c.refused == "" && err != nil:
				t.Error(err)
			case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
				t.Errorf("%v, expected it to be refused with %q", err, c.refused)
			}
		})
	}
	t.Run("the account makes no volume that is free for any claim", func(t *testing.T) {
		pv := volume("free", retain, held())
		pv.Spec.ClaimRef = nil
		if err := as(t, account).Create(t.Context(), pv, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "free for any claim") {
			t.Error(err)
		}
	})
	t.Run("and none without a mark", func(t *testing.T) {
		if err := as(t, account).Create(t.Context(), volume("plain", retain, nil), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "belongs to no plan") {
			t.Error(err)
		}
	})
}
