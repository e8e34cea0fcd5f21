package install_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	pv.Spec.CSI.VolumeAttributes = map[string]string{"share": "/a", "server": "files"}
	pv.Spec.CSI.NodePublishSecretRef = &corev1.SecretReference{Namespace: "mall", Name: "mounts"}
	return pv
}

func files() *corev1.PersistentVolume {
	pv := disk()
	pv.Name, pv.Spec.CSI, pv.Spec.NFS = "files", nil, &corev1.NFSVolumeSource{Server: "files.example.com", Path: "/a"}
	return pv
}

// agreeing records the cluster's consent to volumes, and waits until the consent is in force.
func agreeing(t *testing.T, volumes ...*corev1.PersistentVolume) {
	t.Helper()
	owner, cm := as(t, ""), &corev1.ConfigMap{}
	if err := owner.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: access.VolumesMap}, cm); err != nil {
		t.Fatal(err)
	}
	cm.Data = map[string]string{}
	for _, pv := range volumes {
		facts, err := storage.Facts("web", pv)
		if err != nil {
			t.Fatal(err)
		}
		cm.Data[pv.Name] = strings.Join(facts, "\n") + "\n"
	}
	// Entries that no command prints, but that a user could write.
	cm.Data["node"] = "plan web\nclaim mall/data-web-0\nanother source\nsecret mall/deletes\n"
	cm.Data["loose"] = strings.Replace(cm.Data["disk"], "claim mall/data-web-0", "claim /", 1)
	cm.Data["bare"] = strings.Replace(cm.Data["disk"], "plan web", "plan ", 1)
	if err := owner.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cm.Data = nil
		if err := owner.Update(context.WithoutCancel(t.Context()), cm); err != nil {
			t.Error(err)
		}
	})
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = as(t, account).Create(ctx, volumes[0].DeepCopy(), client.DryRunAll)
		return last == nil, nil
	})
	if err != nil {
		t.Fatal(errors.Join(err, last))
	}
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
		"another disk":                              {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "of-somebody-else" }, `"csi csi.example.com of-somebody-else"`},
		"of another driver":                         {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "other.example.com" }, "has not agreed to"},
		"another attribute":                         {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeAttributes["share"] = "/" }, `"attribute share=/"`},
		"one attribute more":                        {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeAttributes["subDir"] = "b" }, `"attribute subDir=b"`},
		"one attribute less":                        {account, disk, func(pv *corev1.PersistentVolume) { delete(pv.Spec.CSI.VolumeAttributes, "share") }, `lacks a fact that this cluster has agreed to: "attribute share=/a"`},
		"another share":                             {account, files, func(pv *corev1.PersistentVolume) { pv.Spec.NFS.Path = "/" }, `"nfs files.example.com:/"`},
		"a Secret of another namespace":             {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.NodePublishSecretRef.Namespace = "kube-system" }, `"secret kube-system/mounts"`},
		"a Secret more": {account, disk, func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.NodeStageSecretRef = &corev1.SecretReference{Namespace: "kube-system", Name: "x"}
		}, `"secret kube-system/x"`},
		"a Secret to delete it with": {account, disk, noted("volume.kubernetes.io/provisioner-deletion-secret-namespace", "kube-system"), `"secret kube-system/deletes"`},
		"for another namespace":      {account, disk, promised(func(ref *corev1.ObjectReference) { ref.Namespace = "eve" }), `"claim eve/data-web-0"`},
		"for another claim":          {account, disk, promised(func(ref *corev1.ObjectReference) { ref.Name = "mine" }), `"claim mall/mine"`},
		"for another plan":           {account, disk, noted(stamp, "db/1/7"), `"plan db"`},
		"that is free for any claim": {account, disk, func(pv *corev1.PersistentVolume) { pv.Name, pv.Spec.ClaimRef = "loose", nil }, "free for any claim"},
		"that is not Retain":         {account, disk, func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = "Delete" }, "would not be Retain"},
		"past all of this":           {account, disk, func(pv *corev1.PersistentVolume) { pv.Labels, pv.Spec.CSI.VolumeHandle = nil, "of-somebody-else" }, "has no label"},
		"without a mark":             {account, disk, func(pv *corev1.PersistentVolume) { pv.Name = "bare"; delete(pv.Annotations, stamp) }, "belongs to no plan"},
		"a path of the nodes, whatever was agreed to": {account, disk, func(pv *corev1.PersistentVolume) {
			pv.Name, pv.Spec.CSI, pv.Spec.HostPath = "node", nil, &corev1.HostPathVolumeSource{Path: "/"}
		}, "expected csi or nfs"},
		"a disk of a node": {account, disk, func(pv *corev1.PersistentVolume) {
			pv.Name, pv.Spec.CSI, pv.Spec.Local = "node", nil, &corev1.LocalVolumeSource{Path: "/etc"}
			pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: corev1.NodeSelectorOpExists}}}}}}
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
