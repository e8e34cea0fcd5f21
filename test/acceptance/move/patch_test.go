package move_test

import (
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

const west = `
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: web
spec:
  template:
    spec:
      nodeSelector: {kubernetes.io/os: linux}
      containers:
      - name: web
        image: west.example/web:1
        env: [{name: REGION, value: west}]
  volumeClaimTemplates:
  - metadata: {name: logs}
    spec: {storageClassName: ` + cluster.WaitClass + `}
`

// westward applies the changes of the patch to a set.
func westward(set *appsv1.StatefulSetSpec) {
	pod, class := &set.Template.Spec, cluster.WaitClass
	pod.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
	pod.Containers[0].Image = "west.example/web:1"
	pod.Containers[0].Env = []corev1.EnvVar{{Name: "REGION", Value: "west"}}
	set.VolumeClaimTemplates[1].Spec.StorageClassName = &class
}

func TestAPatchChangesTheDestination(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		before, there := s.state(s.source), s.names("destination")
		w := s.watched()
		run(t, s.planArgs("--patch", s.file(west))...).expect(t, done,
			"patched      spec.template.spec.containers[web].image: ", " -> west.example/web:1\n",
			"patched      spec.template.spec.containers[web].env[REGION].value: (none) -> west\n",
			"patched      spec.template.spec.nodeSelector[kubernetes.io/os]: (none) -> linux\n",
			"patched      spec.volumeClaimTemplates[logs].spec.storageClassName: ", " -> "+cluster.WaitClass+"\n")
		run(t, s.applyArgs()...).expect(t, done, "moved: 2 ordinals")
		s.arrived(before)
		s.podsAreOfTheWest()
		run(t, s.args("abort")...).expect(t, done, "aborted")
		proper(t, w, 1)
		s.asBefore(before, there)

		run(t, s.planArgs("--patch", s.file(west))...).expect(t, done)
		run(t, s.applyArgs()...).expect(t, done, "moved: 2 ordinals")
		run(t, s.args("finalize")...).expect(t, done, "finalized")
		westward(&before.Set)
		s.settled(before)
		s.podsAreOfTheWest()
	})
}

func (s *migration) podsAreOfTheWest() {
	s.t.Helper()
	var pods corev1.PodList
	s.list(s.destination, &pods)
	for _, p := range pods.Items {
		c := p.Spec.Containers[0]
		if c.Image != "west.example/web:1" || len(c.Env) != 1 || c.Env[0].Value != "west" || p.Spec.NodeSelector["kubernetes.io/os"] != "linux" {
			s.t.Errorf("pod %s has the image %s, the variables %v and the node selector %v", p.Name, c.Image, c.Env, p.Spec.NodeSelector)
		}
	}
}

func TestPatchesOfAMigration(t *testing.T) {
	t.Parallel()
	s := newMigration(t, rebind, options{replicas: 1, noBudget: true})
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("west.yaml", west)
	file := write("migration.yaml", `
apiVersion: stsmigrate.dev/v1alpha1
kind: Migration
spec:
  source: {name: web, namespace: `+s.source.namespace+`}
  destination:
    namespace: `+s.destination.namespace+`
    patches:
    - path: west.yaml
    - patch: |-
        - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: ZONE, value: w1}}
`)
	run(t, "plan", "-f", file, "--kubeconfig", bed.East.Kubeconfig, "--patch", write("last.yaml", "spec: {minReadySeconds: 2}")).expect(t, done,
		"containers[web].image: ", " -> west.example/web:1", "env[ZONE].value: (none) -> w1", "spec.minReadySeconds: (none) -> 2")

	patch := func(text string) command {
		return func(s *migration) []string { return s.planArgs("--patch", s.file(text)) }
	}
	for _, c := range []refusal{
		{name: "replicas", command: patch("spec: {replicas: 2}"), code: failed, says: []string{"it changes spec.replicas", "relies on; remove that from the patch"}},
		{name: "an unknown field", command: patch("spec: {template: {spec: {nodeselector: {a: b}}}}"), code: failed, says: []string{`unknown field "spec.template.spec.nodeselector"`}},
		{name: "no file", command: func(s *migration) []string { return s.planArgs("--patch", "/nowhere/patch.yaml") }, code: failed, says: []string{"reading a patch", "/nowhere/patch.yaml"}},
		{name: "a Secret that is nowhere", command: patch("spec: {template: {spec: {imagePullSecrets: [{name: west}]}}}"), code: blocked, says: []string{"Secret/west in namespace " + s.destination.namespace, "it does not exist", "make it there"}},
		{name: "what the API server does not take", command: patch("spec: {template: {spec: {nodeSelector: {a: 'b c'}}}}"), code: blocked, says: []string{"it refuses the set", "spec.template.spec.nodeSelector"}},
		{name: "a label that the selector needs", command: patch("spec: {template: {metadata: {labels: {app: other}}}}"), code: failed, says: []string{"spec.template.metadata.labels", "no longer finds the pods"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			s.refuses(c)
		})
	}
}
