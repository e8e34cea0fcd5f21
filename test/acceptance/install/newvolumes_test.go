package install_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/api/consent"
	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// disk returns a volume as a plan creates it. Its driver gets attributes and a Secret.
func disk() *corev1.PersistentVolume {
	pv := volume("disk", corev1.PersistentVolumeReclaimRetain, with(held(), "volume.kubernetes.io/provisioner-deletion-secret-name", "deletes"))
	pv.Annotations["volume.kubernetes.io/provisioner-deletion-secret-namespace"] = "mall"
	pv.Labels = map[string]string{plans.PlanLabel: "web"}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "mall", Name: "data-web-0"}
	pv.Spec.CSI.VolumeAttributes = map[string]string{"share": "/a", "server": "files", "a": "b=c", "lines": "one\ntwo"}
	pv.Spec.MountOptions = []string{"nosuid"}
	onNodes("a")(pv)
	pv.Spec.CSI.NodePublishSecretRef = &corev1.SecretReference{Namespace: "mall", Name: "mounts"}
	return pv
}

// onNodes lets a volume be used on the nodes of a zone.
func onNodes(zone string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}}
	}
}

func files() *corev1.PersistentVolume {
	pv := disk()
	pv.Name, pv.Spec.CSI, pv.Spec.NFS = "files", nil, &corev1.NFSVolumeSource{Server: "files.example.com", Path: "/a"}
	return pv
}

// agree records the cluster's consent to volumes, and to no others.
func agree(t *testing.T, volumes ...*corev1.PersistentVolume) {
	t.Helper()
	var all []consent.Volume
	for _, pv := range volumes {
		v, err := storage.Agreed("web", pv)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if len(all) > 0 { // entries that no command prints, but that a user could write
		for name, change := range map[string]func(fields){
			"node":  func(spec fields) { delete(spec, "csi"); spec["hostPath"] = fields{"path": "/", "type": ""} },
			"local": func(spec fields) { delete(spec, "csi"); spec["local"] = fields{"path": "/etc"} },
			"loose": func(spec fields) { delete(spec, "claimRef") },
			"bare":  func(fields) {},
		} {
			spec := fields{}
			if err := json.Unmarshal(all[0].Spec.Raw, &spec); err != nil {
				t.Fatal(err)
			}
			change(spec)
			raw, err := json.Marshal(spec)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, consent.Volume{Name: name, Plan: "web", Annotations: all[0].Annotations, Spec: runtime.RawExtension{Raw: raw}})
		}
	}
	owner, have := as(t, ""), access.VolumeConsent()
	if err := owner.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(have), have); err != nil {
		t.Fatal(err)
	}
	next, err := access.AgreeVolumes(&plans.Plan{ID: "web"}, all, have)
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Update(context.WithoutCancel(t.Context()), next); err != nil {
		t.Fatal(err)
	}
}

// agreeing records the cluster's consent to volumes for the time of the test, and waits until it is in force.
func agreeing(t *testing.T, volumes ...*corev1.PersistentVolume) {
	t.Helper()
	agree(t, volumes...)
	t.Cleanup(func() { agree(t) })
	eventually(t, volumes[0], "")
}

func TestAnAccountCreatesOnlyAgreedVolumes(t *testing.T) {
	policed(t)
	if err := as(t, account).Create(t.Context(), disk(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "stsmigrate-new-volumes") {
		t.Errorf("without an agreement: %v", err)
	}
	// Where the cluster has consented to nothing yet, other users create volumes as before.
	if err := as(t, "eve").Create(t.Context(), volume("anything", corev1.PersistentVolumeReclaimDelete, nil), client.DryRunAll); err != nil {
		t.Error(err)
	}
	agreeing(t, disk(), files())
	for name, c := range map[string]struct {
		who     string
		of      func() *corev1.PersistentVolume
		change  func(*corev1.PersistentVolume)
		refused string // "" is allowed
	}{
		"a disk that is agreed to":                  {account, disk, func(*corev1.PersistentVolume) {}, ""},
		"a share that is agreed to":                 {account, files, func(*corev1.PersistentVolume) {}, ""},
		"with another orchestrator's account":       {other, disk, func(pv *corev1.PersistentVolume) { pv.Name = "free" }, "has not agreed to"},
		"anybody else may make what RBAC lets them": {"eve", disk, func(pv *corev1.PersistentVolume) { pv.Name = "free" }, ""},
		"a volume that nobody has spoken of":        {account, disk, func(pv *corev1.PersistentVolume) { pv.Name = "free" }, "has not agreed to"},
		"another disk":                              {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "of-somebody-else" }, `"spec.csi.volumeHandle: of-somebody-else"`},
		"of another driver":                         {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "other.example.com" }, "has not agreed to"},
		"another attribute":                         {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeAttributes["share"] = "/" }, `"spec.csi.volumeAttributes"`},
		"one attribute more":                        {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeAttributes["subDir"] = "b" }, `"spec.csi.volumeAttributes"`},
		"one attribute less":                        {account, disk, func(pv *corev1.PersistentVolume) { delete(pv.Spec.CSI.VolumeAttributes, "share") }, `"spec.csi.volumeAttributes"`},
		"another share":                             {account, files, func(pv *corev1.PersistentVolume) { pv.Spec.NFS.Path = "/" }, `"spec.nfs.path: /"`},
		"a Secret of another namespace":             {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.NodePublishSecretRef.Namespace = "kube-system" }, `"spec.csi.nodePublishSecretRef"`},
		"a Secret more": {account, disk, func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.NodeStageSecretRef = &corev1.SecretReference{Namespace: "kube-system", Name: "x"}
		}, `"spec.csi.nodeStageSecretRef"`},
		"a Secret to delete it with": {account, disk, noted("volume.kubernetes.io/provisioner-deletion-secret-namespace", "kube-system"), `"annotations.volume.kubernetes.io/provisioner-deletion-secret-namespace: kube-system"`},
		"its Secret in another role": {account, disk, func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.NodePublishSecretRef, pv.Spec.CSI.ControllerExpandSecretRef = nil, pv.Spec.CSI.NodePublishSecretRef
		}, `"spec.csi.controllerExpandSecretRef"`},
		"another file system": {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.FSType = "xfs" }, `"spec.csi.fsType: xfs"`},
		"to be read only":     {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.ReadOnly = true }, `"spec.csi.readOnly"`},
		"no options":          {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.MountOptions = nil }, `lacks what this cluster has agreed to: "spec.mountOptions"`},
		"other options":       {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.MountOptions = []string{"suid"} }, `"spec.mountOptions"`},
		"other nodes":         {account, disk, onNodes("b"), `"spec.nodeAffinity"`},
		"an attribute that reads alike": {account, disk, func(pv *corev1.PersistentVolume) {
			delete(pv.Spec.CSI.VolumeAttributes, "a")
			pv.Spec.CSI.VolumeAttributes["a=b"] = "c"
		}, `"spec.csi.volumeAttributes"`},
		"no Secret to delete it with": {account, disk, func(pv *corev1.PersistentVolume) {
			delete(pv.Annotations, "volume.kubernetes.io/provisioner-deletion-secret-name")
		}, `lacks what this cluster has agreed to: "annotations.volume.kubernetes.io/provisioner-deletion-secret-name"`},
		"larger, and of another class":  {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.Capacity = gigabytes(9) }, ""},
		"a value of more than one line": {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.FSType = "a\nb" }, `"spec.csi.fsType: a b"`},
		"for another namespace":         {account, disk, promised(func(ref *corev1.ObjectReference) { ref.Namespace = "eve" }), `"spec.claimRef: eve/data-web-0"`},
		"for another claim":             {account, disk, promised(func(ref *corev1.ObjectReference) { ref.Name = "mine" }), `"spec.claimRef: mall/mine"`},
		"for another plan":              {account, disk, noted(stamp, "db/1/7"), `"plan: db"`},
		"that is free for any claim":    {account, disk, func(pv *corev1.PersistentVolume) { pv.Name, pv.Spec.ClaimRef = "loose", nil }, "free for any claim"},
		"that is not Retain":            {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = "Delete" }, "would not be Retain"},
		"past all of this":              {account, disk, func(pv *corev1.PersistentVolume) { pv.Labels, pv.Spec.CSI.VolumeHandle = nil, "of-somebody-else" }, "has no label"},
		"without a mark":                {account, disk, func(pv *corev1.PersistentVolume) { pv.Name = "bare"; delete(pv.Annotations, stamp) }, "plan"},
		"a path of the nodes, whatever was agreed to": {account, disk, func(pv *corev1.PersistentVolume) {
			pv.Name, pv.Spec.CSI, pv.Spec.HostPath = "node", nil, &corev1.HostPathVolumeSource{Path: "/"}
		}, "expected csi or nfs"},
		"a disk of a node": {account, disk, func(pv *corev1.PersistentVolume) {
			pv.Name, pv.Spec.CSI, pv.Spec.Local = "local", nil, &corev1.LocalVolumeSource{Path: "/etc"}
		}, "expected csi or nfs"},
	} {
		t.Run(name, func(t *testing.T) {
			pv := c.of()
			c.change(pv)
			err := as(t, c.who).Create(t.Context(), pv, client.DryRunAll)
			switch {
			case c.refused == "" && err != nil:
				t.Error(err)
			case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
				t.Errorf("%v, expected it to be refused with %q", err, c.refused)
			}
		})
	}
}

// eventually waits until the API server answers a creation of a volume by the orchestrator with these words, or lets
// it in ("").
func eventually(t *testing.T, pv *corev1.PersistentVolume, words string) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = as(t, account).Create(t.Context(), pv.DeepCopy(), client.DryRunAll)
		return (last == nil) == (words == "") && (last == nil || strings.Contains(last.Error(), words)), nil
	})
	if err != nil {
		t.Fatalf("%v, expected %q: %v", last, words, err)
	}
}

// An API server stops reading the parameters of a policy without a binding. It has to begin again when there is one.
func TestWhatAClusterTakesBackIsTakenBackAlsoWhereThePoliciesWereAway(t *testing.T) {
	policed(t)
	agreeing(t, disk())
	owner := as(t, "")
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{}
	if err := owner.Get(t.Context(), client.ObjectKey{Name: access.NewVolumesPolicy}, binding); err != nil {
		t.Fatal(err)
	}
	if err := owner.Delete(t.Context(), binding.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	unasked := disk()
	unasked.Name = "unasked"
	eventually(t, unasked, "")
	binding.ResourceVersion, binding.UID = "", ""
	if err := owner.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	eventually(t, unasked, "has not agreed to")
	eventually(t, disk(), "")
	agree(t)
	eventually(t, disk(), "has not agreed to")
}

// After an uninstall and a new installation the cluster has agreed to nothing, and what it agrees to then is read.
func TestANewInstallationReadsWhatIsAgreedTo(t *testing.T) {
	policed(t)
	agreeing(t, disk())
	printed, err := stsmigrate(t, "install", "policies")
	if err != nil {
		t.Fatal(err)
	}
	owner := as(t, "")
	for d := yamlstream.NewYAMLOrJSONDecoder(strings.NewReader(printed), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		// Other tests have objects in the namespace. The policies of `scale` stay: an API server never reads StatefulSets as
		// parameters again whose binding was away (kubernetes#133827), and other tests need them.
		if o.GetKind() == "Namespace" || strings.HasPrefix(o.GetName(), "stsmigrate-scaled-") {
			continue
		}
		if err := owner.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	unasked := disk()
	unasked.Name = "unasked"
	eventually(t, unasked, "")
	gone := func(ctx context.Context) (bool, error) {
		kind := &unstructured.Unstructured{Object: fields{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
		err := owner.Get(ctx, client.ObjectKey{Name: "volumeconsents.stsmigrate.dev"}, kind)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, gone); err != nil {
		t.Fatal(err)
	}
	policed(t)
	eventually(t, disk(), "has not agreed to")
	agree(t, disk())
	eventually(t, disk(), "")
	if err := owner.Delete(t.Context(), access.VolumeConsent()); err != nil {
		t.Fatal(err)
	}
	eventually(t, disk(), "no params found")
	if err := as(t, "eve").Create(t.Context(), disk(), client.DryRunAll); err == nil || answers.Of(err) != answers.Decided {
		t.Errorf("without the object even other users create no volume of a plan: %v", err)
	}
	if err := owner.Create(t.Context(), access.VolumeConsent()); err != nil {
		t.Fatal(err)
	}
	eventually(t, disk(), "has not agreed to")
}

// What was agreed to by the policies of an older release stays in force until the cluster has agreed to the same by those
// of this one.
func TestWhatWasAgreedToBeforeIsNotLostByAnUpgrade(t *testing.T) {
	policed(t)
	owner := as(t, "")
	older := &unstructured.Unstructured{Object: fields{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}}
	if err := owner.Get(t.Context(), client.ObjectKey{Name: access.NewVolumesPolicy}, older); err != nil {
		t.Fatal(err)
	}
	older.SetManagedFields(nil)
	older.SetResourceVersion("")
	older.SetUID("")
	older.Object["spec"].(fields)["paramKind"] = fields{"apiVersion": "v1", "kind": "ConfigMap"}
	if err := owner.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(older), client.FieldOwner("stsmigrate"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: access.OldVolumesMap}, Data: map[string]string{"disk": "plan web\nclaim mall/data-web-0\n", "other": "plan db-1\n"}}
	if err := owner.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := owner.Delete(context.WithoutCancel(t.Context()), cm); err != nil {
			t.Error(err)
		}
	})
	upgrade := []string{"install", "policies", "--apply", "--set", "policies.movers.users={anna}", "--set", "policies.movers.groups={movers}", "--set", "policies.accounts={" + other + "}"}
	out, err := stsmigrate(t, upgrade...)
	if err == nil || out != "" || !strings.Contains(err.Error(), "plans db-1, web could not create theirs any more") || !strings.Contains(err.Error(), "stsmigrate consent --cluster --plan FILE") {
		t.Fatalf("%v\n%s", err, out)
	}
	now := &admissionv1.ValidatingAdmissionPolicy{}
	if err := owner.Get(t.Context(), client.ObjectKeyFromObject(older), now); err != nil || now.Spec.ParamKind.Kind != "ConfigMap" {
		t.Errorf("%v: the policy that is in force was changed: %+v", err, now.Spec.ParamKind)
	}
	agree(t, disk())
	t.Cleanup(func() { agree(t) })
	delete(cm.Data, "other") // as `revoke` does
	if err := owner.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	if out, err := stsmigrate(t, upgrade...); err != nil || !strings.Contains(out, "stsmigrate-new-volumes applied") {
		t.Fatalf("%v\n%s", err, out)
	}
}
