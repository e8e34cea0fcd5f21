package move_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// needy is a pod spec that names an object in every way a pod can. The name of its PriorityClass is a
// parameter.
const needy = `
priorityClassName: %s
imagePullSecrets: [{name: pull}]
initContainers:
- {name: prepare, image: web, env: [{name: A, valueFrom: {secretKeyRef: {name: init-key, key: value}}}]}
containers:
- name: web
  image: web
  volumeMounts: [{name: data, mountPath: /data}, {name: logs, mountPath: /logs}]
  env:
  - {name: B, valueFrom: {configMapKeyRef: {name: env-map, key: value}}}
  - {name: C, valueFrom: {secretKeyRef: {name: nowhere, key: value, optional: true}}}
  envFrom: [{secretRef: {name: from-key}}, {configMapRef: {name: from-map}}]
volumes:
- {name: v1, configMap: {name: volume-map}}
- {name: v2, secret: {secretName: volume-key}}
- name: v3
  projected: {sources: [{configMap: {name: projected-map}}, {secret: {name: projected-key}}, {serviceAccountToken: {path: token}}, {configMap: {name: kube-root-ca.crt}}]}
- {name: v4, csi: {driver: inline.example.com, nodePublishSecretRef: {name: csi-key}}}
- {name: v5, secret: {secretName: tls}}
`

// copiedKeys and copiedMaps list the objects that must be copied.
func copiedKeys() []string {
	return []string{"pull", "init-key", "from-key", "volume-key", "projected-key", "csi-key", "account-pull", "account-mount"}
}

func copiedMaps() []string { return []string{"env-map", "from-map", "volume-map", "projected-map"} }

func key(on *end, name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: on.named(name), StringData: map[string]string{"value": value}}
}

// issued returns a Secret as cert-manager creates it.
func issued(on *end, value string) *corev1.Secret {
	s := key(on, "tls", value)
	s.Annotations = map[string]string{"cert-manager.io/certificate-name": "web"}
	return s
}

// needing sets up a set that needs all of these objects, and creates them on the source.
func needing(t *testing.T, m mode) *migration {
	t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("needy-%s", m)}, Value: 7}
	for _, c := range []*cluster.Cluster{bed.East, bed.West} {
		api, err := client.New(c.Config(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := api.Create(t.Context(), class.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if m == rebind {
			break
		}
	}
	s := newMigration(t, m, options{replicas: 2, set: func(set *appsv1.StatefulSet) {
		set.Spec.Template.Spec = corev1.PodSpec{}
		if err := yaml.UnmarshalStrict(fmt.Appendf(nil, needy, class.Name), &set.Spec.Template.Spec); err != nil {
			t.Fatal(err)
		}
		set.Spec.Template.Spec.ServiceAccountName = "web"
	}})
	for _, name := range copiedKeys() {
		s.create(s.source, key(s.source, name, "canary-"+name))
	}
	for _, name := range copiedMaps() {
		s.create(s.source, &corev1.ConfigMap{ObjectMeta: s.source.named(name), Data: map[string]string{"value": name}})
	}
	s.create(s.source, issued(s.source, "canary-tls-here"))
	s.create(s.source, &rbacv1.RoleBinding{
		ObjectMeta: s.source.named("reads"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "web", Namespace: s.source.namespace}},
	})
	s.change(s.source, &corev1.ServiceAccount{}, "web", `{"imagePullSecrets":[{"name":"account-pull"}],"secrets":[{"name":"account-mount"}]}`)
	return s
}

// 3335-22
func TestASetArrivesWithAllThatItNeeds(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{rebind, reimport} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			s := needing(t, m)
			var said []result
			says := func(code int, args []string, words ...string) {
				t.Helper()
				said = append(said, run(t, args...).expect(t, code, words...))
			}
			driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "inline.example.com"}}
			if err := s.destination.Create(t.Context(), driver); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
			// A Secret that cert-manager creates is not copied ...
			before := s.versions()
			says(blocked, s.planArgs(), "dependencies", "Secret/tls in namespace "+s.destination.namespace, "it does not exist, and is not copied", "Certificate web of cert-manager")
			same(t, "objects", before, s.versions())
			// ... and where cert-manager creates its own, that one may differ.
			own := issued(s.destination, "canary-tls-there")
			s.create(s.destination, own)
			there := s.names("destination")
			says(done, s.planArgs(), "copied       Secret/csi-key", "required     Secret/tls", "WARN rbac: RoleBinding reads", "--serviceaccount="+s.destination.namespace+":web")
			disks := s.state(s.source)
			says(done, s.applyArgs(), "moved: 2 ordinals")
			s.arrived(disks)
			s.has(s.destination, "canary-")
			s.keepsSecrets()
			says(done, s.args("status"))
			says(done, s.args("abort"), "aborted")
			s.asBefore(disks, there)
			s.has(s.source, "canary-")

			says(done, s.planArgs())
			says(done, s.applyArgs(), "moved: 2 ordinals")
			says(done, s.args("finalize"), "finalized")
			s.has(s.destination, "canary-")
			s.unmarked()
			var now corev1.Secret
			if s.gone(s.destination, &now, "tls") || now.ResourceVersion != own.ResourceVersion {
				t.Errorf("the Secret of cert-manager was touched: %s, expected %s", now.ResourceVersion, own.ResourceVersion)
			}
			for _, r := range said {
				if strings.Contains(r.stdout+r.stderr, "canary") {
					t.Errorf("a Secret's value is in the output of %s", r.args[0])
				}
			}
		})
	}
}

// has checks that a side has every object that is copied, with its content.
func (s *migration) has(on *end, prefix string) {
	s.t.Helper()
	for _, name := range copiedKeys() {
		var have corev1.Secret
		if s.gone(on, &have, name) || string(have.Data["value"]) != prefix+name {
			s.t.Errorf("Secret %s of %s is gone or another", name, on.namespace)
		}
	}
	for _, name := range copiedMaps() {
		var have corev1.ConfigMap
		if s.gone(on, &have, name) || have.Data["value"] != name {
			s.t.Errorf("ConfigMap %s of %s is gone or another", name, on.namespace)
		}
	}
	var account corev1.ServiceAccount
	s.read(on, &account)
	want := corev1.ServiceAccount{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "account-pull"}}, Secrets: []corev1.ObjectReference{{Name: "account-mount"}}}
	if !equality.Semantic.DeepEqual(account.ImagePullSecrets, want.ImagePullSecrets) || !equality.Semantic.DeepEqual(account.Secrets, want.Secrets) {
		s.t.Errorf("ServiceAccount web of %s: %v and %v", on.namespace, account.ImagePullSecrets, account.Secrets)
	}
}

// keepsSecrets checks that the record of a plan holds no Secret's value.
func (s *migration) keepsSecrets() {
	s.t.Helper()
	var maps corev1.ConfigMapList
	s.list(s.destination, &maps)
	for _, m := range maps.Items {
		if strings.Contains(fmt.Sprint(m.Data), "canary") {
			s.t.Errorf("a Secret's value is in ConfigMap %s", m.Name)
		}
	}
}

// A class with the name of the source's class may mean something else, or be absent, in another cluster.
func TestClassesOfAnotherClusterAreLookedAt(t *testing.T) {
	t.Parallel()
	here := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "only-in-the-east"}, Value: 7}
	api, err := client.New(bed.East.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), here); err != nil {
		t.Fatal(err)
	}
	s := newMigration(t, reimport, options{replicas: 1, noBudget: true, set: func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.PriorityClassName = here.Name }})
	s.refuses(refusal{code: blocked, says: []string{"classes", "PriorityClass only-in-the-east", "does not exist on the destination", "value 7", "--patch"}})
	s.create(s.destination, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: here.Name}, Value: 8})
	run(t, s.planArgs()...).expect(t, done, "WARN classes", "value 7 on the source and value 8 on the destination")
}
