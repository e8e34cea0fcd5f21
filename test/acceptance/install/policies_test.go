package install_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
)

const (
	account  = "system:serviceaccount:stsmigrate:orchestrator"
	stamp    = "stsmigrate.dev/stamp"
	original = "stsmigrate.dev/reclaim-policy"
	manifest = "stsmigrate.dev/claim"
	other    = "system:serviceaccount:elsewhere:orchestrator" // one that the value policies.accounts names
)

func volume(name string, policy corev1.PersistentVolumeReclaimPolicy, annotations map[string]string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeReclaimPolicy: policy, StorageClassName: "disks", ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data-" + name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: name}},
		},
	}
}

func held() map[string]string {
	return map[string]string{stamp: "web/1/7", original: "Delete", manifest: "{}"}
}

// stamped returns the annotations of a volume that is not protected, and that an earlier process
// may be about to protect.
func stamped() map[string]string { return map[string]string{stamp: "web/1/7"} }

// policed installs the policies and waits until they are in force. Until then every change is
// allowed.
func policed(t *testing.T) {
	t.Helper()
	if out, err := stsmigrate(t, "install", "policies", "--apply", "--set", "policies.movers.users={anna}", "--set", "policies.movers.groups={movers}", "--set", "policies.accounts={"+other+"}"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		user string
		pv   *corev1.PersistentVolume
	}{{account, volume("unmarked", corev1.PersistentVolumeReclaimRetain, nil)}, {other, volume("unmarked", corev1.PersistentVolumeReclaimRetain, nil)}, {"eve", volume("marked", corev1.PersistentVolumeReclaimRetain, held())}} {
		at := as(t, c.user)
		if err := as(t, "").Create(t.Context(), c.pv.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
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
	// The API server takes up each policy by itself, and this one names the accounts too.
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := as(t, other).Create(ctx, disk(), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "stsmigrate-new-volumes"), nil
	})
	if err != nil {
		t.Fatalf("the policy of new volumes is not in force: %v", err)
	}
}

func claimFor(pv *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: pv.Spec.ClaimRef.Name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: pv.Spec.AccessModes, VolumeName: pv.Name, StorageClassName: &pv.Spec.StorageClassName, Resources: corev1.VolumeResourceRequirements{Requests: pv.Spec.Capacity},
	}}
}

// there creates a volume that is bound, or whose claim is gone, and waits until the volume
// controller has nothing left to write.
func there(t *testing.T, at client.Client, pv *corev1.PersistentVolume, bound bool) *corev1.PersistentVolume {
	t.Helper()
	if bound {
		claim := claimFor(pv)
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

func gigabytes(n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(n<<30, resource.BinarySI)}
}

func with(annotations map[string]string, key, value string) map[string]string {
	annotations[key] = value
	return annotations
}

func noted(key, value string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Annotations = with(pv.Annotations, key, value) }
}

func promised(change func(*corev1.ObjectReference)) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { change(pv.Spec.ClaimRef) }
}

// exactly returns a client of a user whose only rights are to write volumes and to create claims in
// one namespace.
func exactly(t *testing.T, user, namespace string) client.Client {
	t.Helper()
	owner := as(t, "")
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	name := "may-make-claims"
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"*"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"create"}}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}},
	} {
		if err := owner.Create(t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	config := north.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: clusters.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPoliciesKeepVolumesFromMistakes(t *testing.T) {
	policed(t)
	owner := as(t, "")
	const retain, destroy = corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete
	const bound, released = true, false
	if err := owner.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); client.IgnoreAlreadyExists(err) != nil {
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
		{"anybody may delete a volume that is not protected", as(t, "eve"), retain, nil, released, nil, ""},
		{"nobody deletes a protected volume", as(t, "eve"), retain, held(), released, nil, "is protected by plan web"},
		{"nor does an administrator", as(t, "admin", "system:masters"), retain, held(), released, nil, "is protected by plan web"},
		{"but those who carry the plan out", as(t, account), retain, held(), released, nil, ""},
		{"a person who is named", as(t, "anna"), retain, held(), released, nil, ""},
		{"or one of a group", as(t, "bert", "movers"), retain, held(), released, nil, ""},
		{"the account does not while it is bound", as(t, account), retain, held(), bound, nil, "is in use"},
		{"nor when the disk would go too", as(t, account), destroy, held(), released, nil, "its disk would be destroyed"},
		{"nor one that no plan holds", as(t, account), retain, nil, released, nil, "belongs to no plan"},
		{"nobody flips the policy of a protected volume", as(t, "eve"), retain, held(), bound, set(destroy, held()), "stays Retain"},
		{"not even a mover", as(t, "anna"), retain, held(), bound, set(destroy, held()), "stays Retain"},
		{"not even a mover takes the mark off and leaves the policy", as(t, "anna"), retain, held(), bound, set(retain, nil), "must restore its own reclaim policy"},
		{"the policy comes back together with the mark", as(t, account), retain, held(), bound, set(destroy, nil), ""},
		{"a label of somebody else is nobody's business", as(t, "eve"), retain, held(), bound, func(pv *corev1.PersistentVolume) { pv.Labels = map[string]string{"a": "b"} }, ""},
		{"nobody else protects a volume: its plan could not go on", as(t, "eve"), destroy, nil, bound, set(retain, held()), "only those who carry plans out may protect it"},
		{"nor one that has other annotations", as(t, "eve"), destroy, map[string]string{"a": "b"}, bound, set(retain, held()), "only those who carry plans out may protect it"},
		{"a mover protects it", as(t, "anna"), destroy, nil, bound, set(retain, held()), ""},
		{"the account protects a volume", as(t, account), destroy, nil, bound, set(retain, held()), ""},
		{"and nothing less", as(t, account), destroy, nil, bound, set(destroy, held()), "would not be Retain"},
		{"it stamps one that it is about to protect", as(t, account), destroy, nil, bound, set(destroy, stamped()), ""},
		{"and leaves the policy of a stamped one", as(t, account), retain, stamped(), bound, set(destroy, stamped()), "would not be Retain"},
		{"or protects it", as(t, account), destroy, stamped(), bound, set(retain, held()), ""},
		{"or gives it back", as(t, account), destroy, stamped(), bound, set(destroy, nil), ""},
		{"or stamps it again", as(t, account), destroy, stamped(), bound, set(destroy, map[string]string{stamp: "web/2/7"}), ""},
		{"a protected volume stays protected when it is stamped again", as(t, account), retain, held(), bound, set(destroy, stamped()), "would not be Retain"},
		{"and one whose policy somebody has changed can be stamped", as(t, account), destroy, held(), bound, set(destroy, map[string]string{stamp: "web/2/7", original: "Delete"}), ""},
		{"the account changes no volume that it does not protect", as(t, account), destroy, nil, bound, set(retain, nil), "belongs to no plan"},
		{"an orchestrator of another name deletes it too", as(t, other), retain, held(), released, nil, ""},
		{"and is under the same rules", as(t, other), retain, nil, released, nil, "belongs to no plan"},
		{"nobody takes the mark off, not even with the policy", as(t, "eve"), retain, held(), bound, set(destroy, nil), "annotations stsmigrate.dev/* belong to that plan"},
		{"nor an administrator", as(t, "admin", "system:masters"), retain, held(), bound, set(destroy, nil), "annotations stsmigrate.dev/* belong to that plan"},
		{"nobody rewrites the policy that is kept", as(t, "eve"), retain, held(), bound, noted(original, "Retain"), "annotations stsmigrate.dev/* belong to that plan"},
		{"nor the claim that is kept", as(t, "eve"), retain, held(), bound, noted(manifest, `{"a":1}`), "annotations stsmigrate.dev/* belong to that plan"},
		{"nor the stamp", as(t, "eve"), retain, held(), bound, noted(stamp, "web/9/9"), "annotations stsmigrate.dev/* belong to that plan"},
		{"nor adds one", as(t, "eve"), retain, held(), bound, noted("stsmigrate.dev/volume", "{}"), "annotations stsmigrate.dev/* belong to that plan"},
		{"a mover does", as(t, "anna"), retain, held(), bound, noted(manifest, `{"a":1}`), ""},
		{"nobody gives a protected volume to another namespace", as(t, "eve"), retain, held(), released, promised(func(ref *corev1.ObjectReference) { ref.Namespace = "eve" }), "only that plan may change its claim"},
		{"nor to another claim", as(t, "eve"), retain, held(), released, promised(func(ref *corev1.ObjectReference) { ref.Name = "mine" }), "only that plan may change its claim"},
		{"nor to another of that name", as(t, "eve"), retain, held(), released, promised(func(ref *corev1.ObjectReference) { ref.UID = "mine" }), "only that plan may change its claim"},
		{"nor to whichever comes", as(t, "eve"), retain, held(), released, promised(func(ref *corev1.ObjectReference) { ref.UID = "" }), "only that plan may change its claim"},
		{"nor to nobody", as(t, "eve"), retain, held(), released, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }, "only that plan may change its claim"},
		{"whoever finds it at Delete makes it Retain", as(t, "eve"), destroy, held(), bound, set(retain, held()), ""},
		{"a driver's helpers note what they like, and tell its size", as(t, "eve"), retain, held(), bound, func(pv *corev1.PersistentVolume) {
			pv.Annotations["volume.kubernetes.io/provisioner-deletion-secret-name"], pv.Spec.Capacity = "x", gigabytes(2)
			pv.Finalizers = append(pv.Finalizers, "example.com/attached")
		}, ""},

		{"the account tells a volume of an expansion", as(t, account), retain, held(), bound, func(pv *corev1.PersistentVolume) {
			pv.Annotations[stamp], pv.Spec.Capacity = "web/1/8", gigabytes(2)
		}, ""},
		{"and changes nothing else of its spec", as(t, account), retain, held(), bound, func(pv *corev1.PersistentVolume) { pv.Spec.MountOptions = []string{"ro"} }, "used in another way"},
		{"nor takes anything of it away", as(t, account), retain, held(), bound, func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = "" }, "used in another way"},
		{"nor touches what others note", as(t, account), retain, held(), bound, noted("pv.kubernetes.io/provisioned-by", "x"), "annotations of others"},
		{"nor takes it off", as(t, account), retain, with(held(), "example.com/note", "x"), bound, func(pv *corev1.PersistentVolume) { delete(pv.Annotations, "example.com/note") }, "annotations of others"},
		{"it promises a volume to a claim of the same name", as(t, account), retain, held(), released, promised(func(ref *corev1.ObjectReference) { ref.Namespace, ref.UID = "mall", "" }), ""},
		{"and of no other", as(t, account), retain, held(), released, promised(func(ref *corev1.ObjectReference) { ref.Name = "mine" }), "reserved for a claim of another name"},
		{"nor lets any claim have it", as(t, account), retain, held(), released, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }, "free for any claim"},
		{"nor one that is not protected yet", as(t, account), retain, stamped(), released, promised(func(ref *corev1.ObjectReference) { ref.Namespace = "mall" }), "or no plan protects it"},
		{"nor to a namespace in which it may make no claims", exactly(t, account, "mall"), retain, held(), released, promised(func(ref *corev1.ObjectReference) { ref.Namespace = "vault" }), "in which " + account + " may not create claims"},
		{"but to one in which it may", exactly(t, account, "mall"), retain, held(), released, promised(func(ref *corev1.ObjectReference) { ref.Namespace = "mall" }), ""},
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
}

// The controllers of the cluster write the status of a volume. A write to the status may also carry
// annotations.
func TestTheMarkOfAHeldVolumeDoesNotGoWithItsStatus(t *testing.T) {
	policed(t)
	pv := there(t, as(t, ""), volume("status", corev1.PersistentVolumeReclaimRetain, held()), false)
	next := pv.DeepCopy()
	next.Annotations, next.Status.Message = nil, "seen"
	if err := as(t, "eve").Status().Update(t.Context(), next.DeepCopy(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "is protected by plan web") {
		t.Errorf("the marks are taken off with the status: %v", err)
	}
	next.Annotations = pv.Annotations
	if err := as(t, "eve").Status().Update(t.Context(), next.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("a controller writes a status: %v", err)
	}
	if err := as(t, account).Status().Update(t.Context(), next, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "for the controllers") {
		t.Errorf("the account writes one: %v", err)
	}
}

// The controller of the cluster, which is not a mover, binds a protected volume to the claim that
// the volume is reserved for.
func TestTheBinderBindsAHeldVolume(t *testing.T) {
	policed(t)
	owner := as(t, "")
	pv := volume("reserved", corev1.PersistentVolumeReclaimRetain, held())
	if err := owner.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	if err := owner.Create(t.Context(), pv); err != nil {
		t.Fatal(err)
	}
	claim := claimFor(pv)
	if err := owner.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := owner.Get(ctx, client.ObjectKeyFromObject(pv), pv)
		return pv.Status.Phase == corev1.VolumeBound, err
	})
	if err != nil || pv.Spec.ClaimRef.UID != claim.UID {
		t.Errorf("it is %s, for claim %q, expected it bound to %q: %v", pv.Status.Phase, pv.Spec.ClaimRef.UID, claim.UID, err)
	}
}
