package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// planted is a part of every value below that must not leave the cluster.
const planted = "s3cr3t-4711"

// secretive returns a pod spec with a secret in every field that may have one.
func secretive() corev1.PodSpec {
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/?token=" + planted, HTTPHeaders: []corev1.HTTPHeader{{Name: "Authorization", Value: "Basic " + planted}}}}}
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name: "db", Image: "db:1", Command: []string{"sh", "-c", "export P=" + planted}, Args: []string{"--pass", planted},
		Env: []corev1.EnvVar{
			{Name: "PASSWORD", Value: planted},
			{Name: "FROM", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db-password"}, Key: "password"}}},
		},
		ReadinessProbe: probe,
		Lifecycle:      &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"stop", planted}}}},
	}}}
}

// secretiveObjects returns the objects of a plan, each with secrets in it.
func secretiveObjects() (set *appsv1.StatefulSet, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	notes := map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"PASSWORD","value":"` + planted + `"}]}]}}}}`,
		"example.com/key":      planted,
		plans.BeforeAnnotation: `{"env":[{"name":"PASSWORD","value":"` + planted + `"}]}`,
	}
	replicas := int32(3)
	set = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Annotations: notes}}
	set.Spec.Replicas, set.Spec.Template.Spec, set.Spec.Template.Annotations = &replicas, secretive(), notes
	pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-2", Annotations: notes}, Spec: secretive()}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-2"}}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "db", LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", Message: "the password is " + planted}}}}
	pod.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "RunContainerError", Message: "exec: run " + planted}
	claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-web-2", Annotations: notes}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-2"}}
	volume = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-2", Annotations: notes}}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "disk-2", VolumeAttributes: map[string]string{"user": planted}}
	volume.Spec.MountOptions = []string{"hard", "user=" + planted}
	return set, pod, claim, volume
}

// secretiveAttachments returns where the volume is attached, with what its driver handed over, and a volume of a
// driver whose options are in clear.
func secretiveAttachments() (a *storagev1.VolumeAttachment, old *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	name := "pv-2"
	a = &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-2"}, Status: storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"chap": planted}}}
	a.Spec.Source.PersistentVolumeName = &name
	old = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}}
	old.Spec.FlexVolume = &corev1.FlexPersistentVolumeSource{Driver: "example.com/cifs", Options: map[string]string{"share": planted}}
	claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-web-1"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}}
	return a, old, claim
}

// secretiveDeclaration returns the declaration of a plan, with secrets in its patches and its summary.
func secretiveDeclaration() *unstructured.Unstructured {
	o := records.NewDeclared("mall", "web")
	var patches []any
	for _, patch := range []string{
		"- op: replace\n  path: /spec/template/spec/containers/0/env/0/value\n  value: " + planted,
		"- op: add\n  path: /spec/template/spec/containers/0/env/-\n  value: {name: PASSWORD, value: " + planted + "}",
		"- op: add\n  path: /spec/template/spec/containers/0/args\n  value: [--pass, " + planted + "]",
		"spec: {template: {spec: {containers: [{name: db, env: [{name: PASSWORD, value: " + planted + "}]}]}}}",
	} {
		patches = append(patches, map[string]any{"patch": patch})
	}
	o.Object["spec"] = map[string]any{"source": map[string]any{"name": "web"}, "patches": patches}
	o.Object["status"] = map[string]any{"summary": "  gate         db runs psql -c " + planted}
	return o
}

// unpacked returns the files of an archive.
func unpacked(t *testing.T, raw []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	out, from := map[string]string{}, tar.NewReader(zip)
	for {
		head, err := from.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimPrefix(head.Name, "stsmigrate-debug-web/")] = string(text)
	}
}

func TestAnArchiveForHelpersHasNoSecretInIt(t *testing.T) {
	set, pod, claim, volume := secretiveObjects()
	attached, old, mounted := secretiveAttachments()
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "old", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: mounted.Name}}})
	on, config := serve(t, []string{"home"}, set, pod, claim, volume, attached, old, mounted, secretiveDeclaration(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-password"}, Data: map[string][]byte{"password": []byte(planted)}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}},
		&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-2.1"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web-2"},
			Message: "Readiness probe failed: dial postgres://root:" + planted + "@db, redis://:" + planted + "@redis, PGPASSWORD='my " + planted + "' run --requirepass " + planted + ", Authorization: token " + planted,
		},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other.1"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "other-0"}, Message: "not of the plan"},
	)
	for name, kind := range map[string]string{"poddisruptionbudgets": "policy/v1 PodDisruptionBudget", "events": "v1 Event", "volumeattachments": "storage.k8s.io/v1 VolumeAttachment"} {
		on.serves(name, kind)
	}
	if _, known := on.kinds["volumeattachments"]; !known || storagev1.GroupName != on.kinds["volumeattachments"].Group {
		t.Fatal(on.kinds)
	}
	keep(t, on, "mall", func(j *journal.Journal) { j.Block(reasons.OrdinalsChanged, "it has token="+planted) })
	file := filepath.Join(t.TempDir(), "a.tar.gz")
	got := command(t, "debug", "web", "-n", "mall", "--file", file, "--kubeconfig", config)
	raw, err := os.ReadFile(file)
	if err != nil || got.code != exitDone {
		t.Fatalf("%v, %+v", err, got)
	}
	files := unpacked(t, raw)
	for name, text := range files {
		if strings.Contains(text, planted) {
			t.Errorf("%s has a secret in it:\n%s", name, text)
		}
	}
	for name, want := range map[string]string{
		"plan.yaml": "id: web-abc", "journal.yaml": "blockedID: OrdinalsChanged", "status.yaml": "state: Blocked", "versions.yaml": "program:",
		"source/set.yaml": "name: PASSWORD", "source/pods.yaml": "name: web-2", "source/events.yaml": "Readiness probe failed", "source/budgets.yaml": "name: web",
		"source/claims.yaml": "data-web-2", "source/attachments.yaml": "name: csi-2", "source/volumes.yaml": "volumeHandle: disk-2", "home/leases.yaml": "[]", "home/declaration.yaml": "containers/0/env/-", "README.txt": "No Secret was read",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s: expected %q in:\n%s", name, want, files[name])
		}
	}
	if strings.Contains(files["source/events.yaml"], "not of the plan") {
		t.Error("the archive has Events of others")
	}
	if again := command(t, "debug", "web", "-n", "mall", "--file", file, "--kubeconfig", config); again.code != exitError || !strings.Contains(again.errOut, "exists already") {
		t.Errorf("it writes over a file: %+v", again)
	}
}

// Nothing that cannot be read keeps the rest out of the archive.
func TestAnArchiveListsWhatCouldNotBeRead(t *testing.T) {
	on, config := serve(t, []string{"home"})
	delete(on.kinds, "pods")
	keep(t, on, "mall", func(*journal.Journal) {})
	got := command(t, "debug", "web", "-n", "mall", "--file", "-", "--kubeconfig", config)
	if got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	files := unpacked(t, []byte(got.out))
	if !strings.Contains(files["not-read.txt"], "source/pods.yaml: ") || !strings.Contains(files["plan.yaml"], "id: web-abc") {
		t.Errorf("%v", files)
	}
}
