package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// between returns a plan for a set with volumes from one cluster to another, and the file that holds it.
func between(t *testing.T) (*plans.Plan, string) {
	t.Helper()
	return planTo(t, plans.Ref{Cluster: "uid-of-another", Context: "west", Namespace: "shop", Name: "web"})
}

func planTo(t *testing.T, destination plans.Ref) (*plans.Plan, string) {
	t.Helper()
	replicas := int32(2)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	p, err := build.Plan(build.Inputs{
		Name: "web", ID: "abc", MaxUnavailable: 1, Set: set,
		Source:      plans.Ref{Cluster: "uid-of-the-cluster", Context: "east", Namespace: "shop", Name: "web"},
		Destination: destination,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, inFile(t, p)
}

func disk(o int, handle string) []client.Object {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pv-", o)}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: handle}
	return []client.Object{pv, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("data-web-", o)}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: pv.Name},
	}}
}

// The owner of one namespace prints the half for it without access to the other cluster, and sees which disks
// it is about.
func TestOneHalfNeedsOneCluster(t *testing.T) {
	_, file := between(t)
	_, config := serve(t, []string{"east"}, slices.Concat(disk(0, "vol-0"), disk(1, "vol-1\n- apiGroups: ['*']"))...)
	got := command(t, "rbac", "--plan", file, "--side", "source", "--kubeconfig", config)
	if got.code != exitDone || !strings.Contains(got.out, "  - pv-0 # disk.example.com^vol-0\n") || !strings.Contains(got.out, `  - pv-1 # "disk.example.com^vol-1\n- apiGroups: ['*']"`+"\n") {
		t.Errorf("%+v", got)
	}
	if strings.Count(got.out, "  - create # RBAC cannot limit this to names\n") < 2 {
		t.Errorf("it is not said what is not limited:\n%s", got.out)
	}
	boundedTo(t, got.out, []string{"pv-0", "pv-1"})
	if got := command(t, "consent", "--plan", file, "--side", "source", "--kubeconfig", config); got.code != exitDone || !strings.Contains(got.out, "moves-to: |\n    web uid-of-another/shop/web plan=web-abc hash=") {
		t.Errorf("%+v", got)
	}
	for _, verb := range []string{"rbac", "consent"} {
		if got := command(t, verb, "--plan", file, "--kubeconfig", config); got.code != exitError || !strings.Contains(got.errOut, `no context "west"`) {
			t.Errorf("%s of both sides: %+v", verb, got)
		}
	}
}

// Who may create volumes may create one of a folder of a node. The policies limit an orchestrator to the disks of its
// plans, and nothing limits a user: that is said beside the rule.
func TestUsersWhoMayCreateAnyVolumeAreWarnedOf(t *testing.T) {
	_, file := between(t)
	_, within := planTo(t, plans.Ref{Cluster: "uid-of-the-cluster", Context: "east", Namespace: "mall", Name: "web"})
	_, config := serve(t, []string{"east"}, slices.Concat(disk(0, "vol-0"), disk(1, "vol-1"))...)
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"a user":                       {[]string{"--plan", file, "--user", "anna"}, 1},
		"a group":                      {[]string{"--plan", file, "--group", "admins"}, 1},
		"an orchestrator":              {[]string{"--plan", file}, 0},
		"a user, within the cluster":   {[]string{"--plan", within, "--user", "anna"}, 0},
		"no one, within the cluster":   {[]string{"--plan", within}, 0},
		"a user whose name is a trick": {[]string{"--plan", file, "--user", "- persistentvolumes"}, 1},
	} {
		got := command(t, append([]string{"rbac", "--side", "source", "--kubeconfig", config}, c.args...)...)
		if got.code != exitDone || strings.Count(got.out, "# WARNING: ") != c.want {
			t.Errorf("%s: %d warnings, expected %d: %+v", name, strings.Count(got.out, "# WARNING: "), c.want, got)
		}
		boundedTo(t, got.out, []string{"pv-0", "pv-1"})
		_, warning, _ := strings.Cut(got.out, "# WARNING: ")
		beside, _, _ := strings.Cut(warning, "\n- apiGroups:\n  - \"\"\n  resources:\n  - persistentvolumes\n  verbs:\n  - get\n  - list\n  - watch\n  - create")
		for _, line := range strings.Split(beside, "\n")[1:] {
			if c.want > 0 && !strings.HasPrefix(line, "# ") {
				t.Errorf("%s: the warning is not beside the rule:\n%s", name, got.out)
				break
			}
		}
		if c.want > 0 && (!strings.Contains(beside, "hostPath") || !strings.Contains(beside, "orchestrator")) {
			t.Errorf("%s: it is not said what they can do, or what to do instead: %s", name, beside)
		}
	}
}

// Who may create pods may run any program of a namespace, so that it is said beside the rule, and in a consent. A plan that
// makes none needs no such right.
func TestWhoMayCreateAnyPodIsWarnedOf(t *testing.T) {
	_, config := serve(t, []string{"east"}, slices.Concat(disk(0, "vol-0"), disk(1, "vol-1"))...)
	const rule = "\n- apiGroups:\n  - \"\"\n  resources:\n  - pods\n  verbs:\n  - get\n  - list\n  - watch\n  - create # RBAC cannot limit this to names\n"
	for proof, want := range map[plans.Proof]bool{"": false, plans.NoProof: false, plans.Scheduled: true, plans.Warm: true} {
		p, _ := planTo(t, plans.Ref{Cluster: "uid-of-the-cluster", Context: "east", Namespace: "mall", Name: "web"})
		p.Placeholder = plans.Placeholder{Proof: proof}
		if want {
			p.Requires = []string{plans.Placeholders}
		}
		if err := p.Seal(); err != nil {
			t.Fatal(err)
		}
		file := inFile(t, p)
		for _, who := range []string{"--account=a/b", "--user=anna"} {
			got := command(t, "rbac", "--plan", file, "--side", "destination", "--kubeconfig", config, who)
			beside := strings.Contains(got.out, "made with --placeholder off needs no such rule."+rule)
			if got.code != exitDone || beside != want || strings.Contains(got.out, rule) != want {
				t.Errorf("%q, %s: %+v", proof, who, got)
			}
			boundedTo(t, got.out, []string{"pv-0", "pv-1"})
		}
		for side, says := range map[string]string{"source": "namespace shop: in an abort, before an ordinal comes back", "destination": "namespace mall: before an ordinal comes here, a pod\n# such as web-0-place takes its place"} {
			got := command(t, "consent", "--plan", file, "--side", side, "--kubeconfig", config)
			if got.code != exitDone || strings.Contains(got.out, "# The plan also makes pods in "+says) != want || strings.Contains(got.out, "makes pods") != want {
				t.Errorf("%q, %s: %+v", proof, side, got)
			}
			boundedTo(t, got.out, nil)
		}
	}
}

// boundedTo requires that the output is YAML that permits changes to these volumes and no others.
func boundedTo(t *testing.T, printed string, volumes []string) {
	t.Helper()
	for _, text := range strings.Split(printed, "---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(text), &role); err != nil && role.Kind == "ClusterRole" {
			t.Errorf("%v:\n%s", err, text)
		}
		for _, r := range role.Rules {
			if slices.Contains(r.APIGroups, "*") || slices.Contains(r.Resources, "persistentvolumes") && slices.Contains(r.Verbs, "patch") && !slices.Equal(r.ResourceNames, volumes) {
				t.Errorf("%+v", r)
			}
		}
	}
}

// The volumes of the destination are those of the source. Without the source their names are unknown.
func TestTheDestinationsHalfNeedsTheNamesOfTheVolumes(t *testing.T) {
	p, file := between(t)
	west, config := serve(t, []string{"west"})
	theOther(t, west, p)
	got := command(t, "rbac", "--plan", file, "--side", "destination", "--kubeconfig", config)
	if got.code != exitError || !strings.Contains(got.errOut, "which volumes the destination gets is known in the source's cluster") || got.out != "" {
		t.Errorf("%+v", got)
	}
	if got := command(t, "consent", "--plan", file, "--side", "destination", "--kubeconfig", config); got.code != exitDone || !strings.Contains(got.out, "moves-from") {
		t.Errorf("%+v", got)
	}
}

// theOther turns a served cluster into the destination of the plan.
func theOther(t *testing.T, west client.Client, p *plans.Plan) {
	t.Helper()
	space := &corev1.Namespace{}
	if err := west.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, space); err != nil {
		t.Fatal(err)
	}
	if err := west.Delete(t.Context(), space); err != nil {
		t.Fatal(err)
	}
	if err := west.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: p.Destination.Cluster}}); err != nil {
		t.Fatal(err)
	}
}

// The administrator of a cluster sees every disk for which a plan creates a volume, and for which claim. The
// cluster's consents to other plans are kept.
func TestAClusterIsAskedForTheDisksOfAPlan(t *testing.T) {
	p, file := between(t)
	var objects []client.Object
	for o, handle := range []string{"vol-0", "vol-1"} {
		both := disk(o, handle)
		both[0].(*corev1.PersistentVolume).Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: fmt.Sprint("data-web-", o)} //nolint:forcetypeassert // it is the first
		objects = append(objects, both...)
	}
	_, east := serve(t, []string{"east"}, objects...)
	west, there := serve(t, []string{"west"}, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "stsmigrate.dev/v1alpha1", "kind": "VolumeConsent", "metadata": map[string]any{"name": "cluster"},
		"spec": map[string]any{"volumes": []any{map[string]any{"name": "pv-9", "plan": "db-1", "spec": map[string]any{"later": int64(1)}}}},
	}})
	theOther(t, west, p)
	args := []string{"consent", "--cluster", "--plan", file, "--side", "destination", "--kubeconfig", east}
	if got := command(t, args...); got.code != exitError || !strings.Contains(got.errOut, `no context "west"`) || got.out != "" {
		t.Errorf("without the cluster: %+v", got)
	}
	got := command(t, append(args, "--to-kubeconfig", there)...)
	if got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	_, text, _ := strings.Cut(got.out, "---\n")
	const want = `apiVersion: stsmigrate.dev/v1alpha1
kind: VolumeConsent
metadata:
  name: cluster
  resourceVersion: "999"
spec:
  volumes:
  - name: pv-0
    plan: web-abc
    spec:
      claimRef:
        name: data-web-0
        namespace: shop
      csi:
        driver: disk.example.com
        volumeHandle: vol-0
  - name: pv-1
    plan: web-abc
    spec:
      claimRef:
        name: data-web-1
        namespace: shop
      csi:
        driver: disk.example.com
        volumeHandle: vol-1
  - name: pv-9
    plan: db-1
    spec:
      later: 1
`
	if text != want {
		t.Errorf("%s\nexpected\n%s", text, want)
	}
	if got := command(t, "consent", "--cluster", "--plan", file, "--side", "source", "--kubeconfig", east, "--to-kubeconfig", there); got.code != exitDone || !strings.Contains(got.out, "name: data-web-1\n        namespace: shop") {
		t.Errorf("of the source, where one may have to be made again: %+v", got)
	}
	delete(west.kinds, "volumeconsents")
	if got := command(t, append(args, "--to-kubeconfig", there)...); got.code != exitError || got.out != "" || !strings.Contains(got.errOut, "has no kind VolumeConsent, which comes with the component policies") {
		t.Errorf("a cluster without policies: %+v", got)
	}
}
