package bundle

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// planted is a part of every value that must not be in an archive.
const planted = "hunter2"

// redacted returns a document as it is in an archive.
func redacted(t *testing.T, v any) string {
	t.Helper()
	raw, err := NewRedactor().Redact(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A patch may name what it changes in a path, so that no field beside the value tells what it is.
func TestTheValuesOfAPatchAreLeftOut(t *testing.T) {
	for name, patch := range map[string]string{
		"one value":        "- op: replace\n  path: /spec/template/spec/containers/0/env/0/value\n  value: hunter2",
		"a variable":       "- op: add\n  path: /spec/template/spec/containers/0/env/-\n  value: {name: DB, value: hunter2}",
		"arguments":        "- op: add\n  path: /spec/template/spec/containers/0/args\n  value: [--pass, hunter2]",
		"one argument":     `[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "hunter2"}]`,
		"a test":           `[{"op": "test", "path": "/spec/template/spec/containers/0/command/2", "value": "hunter2"}]`,
		"other letters":    `[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "Value": "hunter2"}]`,
		"no operation":     `["hunter2"]`,
		"a merge":          "spec: {template: {spec: {containers: [{name: a, env: [{name: A, value: hunter2}], args: [hunter2]}]}}}",
		"a merge of notes": "spec: {template: {metadata: {annotations: {example.com/key: hunter2}}}}",
	} {
		t.Run(name, func(t *testing.T) {
			got := redacted(t, map[string]any{"patches": []any{map[string]any{"patch": patch}}})
			if strings.Contains(got, planted) {
				t.Error(got)
			}
			if strings.Contains(patch, "path") && !strings.Contains(got, "containers/0/") {
				t.Errorf("where the patch changes something is lost: %s", got)
			}
		})
	}
}

// What a driver hands to a node may be a credential, and so may be what a node is told when it mounts.
func TestWhatDriversHandOverIsLeftOut(t *testing.T) {
	pv := func(change func(*corev1.PersistentVolumeSpec)) *corev1.PersistentVolume {
		out := &corev1.PersistentVolume{}
		change(&out.Spec)
		return out
	}
	handed := map[string]string{"password": planted, "user": planted}
	for name, c := range map[string]struct {
		of   any
		want string
	}{
		"of an attachment": {[]storagev1.VolumeAttachment{{Status: storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: handed}}}, "attached: true"},
		"of CSI": {pv(func(s *corev1.PersistentVolumeSpec) {
			s.CSI = &corev1.CSIPersistentVolumeSource{VolumeHandle: "disk-2", VolumeAttributes: handed, NodeStageSecretRef: &corev1.SecretReference{Name: "smb"}}
		}), "name: smb"},
		"of FlexVolume": {pv(func(s *corev1.PersistentVolumeSpec) {
			s.FlexVolume = &corev1.FlexPersistentVolumeSource{Driver: "x/cifs", Options: handed}
		}), "driver: x/cifs"},
		"of a mount": {pv(func(s *corev1.PersistentVolumeSpec) {
			s.MountOptions = []string{"hard", "vers=4.1", "username=hunter2", "password=hunter2", "pass=x,hunter2", "credentials"}
		}), "- vers=4.1"},
		"of a mount in a note": {&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"volume.beta.kubernetes.io/mount-options": "hard,vers=3.0,user=hunter2,pass=hunter2"}}}, "hard,vers=3.0,user="},
		"of a pod": {corev1.PodSpec{
			Volumes:   []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "x/cifs", Options: handed}}}},
			DNSConfig: &corev1.PodDNSConfig{Options: []corev1.PodDNSConfigOption{{Name: "ndots"}}},
		}, "name: ndots"},
		"of a probe": {corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready?k=hunter2"}}}, "path: /ready?"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := redacted(t, c.of); strings.Contains(got, planted) || !strings.Contains(got, c.want) {
				t.Errorf("expected %q, and not %q, in:\n%s", c.want, planted, got)
			}
		})
	}
}
