package move_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// put creates an object that blocks a move, and returns a function that deletes it.
func (s *migration) put(on *end, o client.Object) func() {
	s.t.Helper()
	s.create(on, o)
	return func() {
		if err := on.Delete(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
		s.eventually(o.GetName()+" is gone", func(context.Context) bool { return s.gone(on, o, o.GetName()) })
	}
}

// edit changes an object and returns a function that reverts the change. The control plane is at rest after
// both.
func (s *migration) edit(on *end, o client.Object, patch, back string) func() {
	s.t.Helper()
	s.change(on, o, "web", patch)
	s.ready(on)
	return func() {
		s.change(on, o, "web", back)
		s.ready(on)
	}
}

// limping makes one pod of the source unready, and returns a function that reverts it.
func (s *migration) limping(pod string) func() {
	s.t.Helper()
	mark := func(value string) {
		s.change(s.source, &corev1.Pod{}, pod, `{"metadata":{"labels":{"`+cluster.NeverReady+`":`+value+`}}}`)
	}
	mark(`"true"`)
	return func() { mark("null") }
}

// unready makes one pod of the source unready, and returns a function that reverts it. The control plane is
// at rest after both.
func (s *migration) unready(pod string) func() {
	s.t.Helper()
	mend := s.limping(pod)
	s.eventually("the control plane has seen it", func(ctx context.Context) bool {
		var set appsv1.StatefulSet
		var b policyv1.PodDisruptionBudget
		return s.source.Get(ctx, s.source.key("web"), &set) == nil && set.Status.ReadyReplicas == s.replicas-1 &&
			s.source.Get(ctx, s.source.key("web"), &b) == nil && b.Status.CurrentHealthy == s.replicas-1
	})
	return func() {
		mend()
		s.ready(s.source)
	}
}

func without(args []string, flag string) []string {
	var out []string
	for _, a := range args {
		if a != flag {
			out = append(out, a)
		}
	}
	return out
}

func (s *migration) applyArgsOf(file string) []string {
	args := s.applyArgs()
	args[1] = file
	return args
}

func (s *migration) file(content string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "plan.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// edited returns the file of a good plan in which one text is replaced.
func (s *migration) edited(what, by string) string {
	s.t.Helper()
	s.planned()
	raw, err := os.ReadFile(s.planFile)
	if err != nil {
		s.t.Fatal(err)
	}
	text := strings.Replace(string(raw), what, by, 1)
	if text == string(raw) {
		s.t.Fatalf("the plan does not have %q:\n%s", what, raw)
	}
	return s.file(text)
}

// stranger returns the kubeconfig of an account without rights on the source.
func (s *migration) stranger() string { return s.kubeconfigOf(s.source, "web") }

// kubeconfigOf returns the kubeconfig of a service account of an end.
func (s *migration) kubeconfigOf(on *end, name string) string {
	s.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: on.named(name)}
	token := &authenticationv1.TokenRequest{}
	if err := on.SubResource("token").Create(s.t.Context(), account, token); err != nil {
		s.t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(on.cluster.Kubeconfig)
	if err != nil {
		s.t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// reader returns the kubeconfig of an account that may read the set and nothing more.
func (s *migration) reader() (path string, mend func()) {
	s.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.source.namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces", "services"}, Verbs: []string{"get"}},
		{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"get"}},
		{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"list"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.source.namespace, Name: "web"}},
	}
	mendRole, mendBinding := s.put(s.source, role), s.put(s.source, binding)
	return s.stranger(), func() { mendBinding(); mendRole() }
}

func (e *end) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: e.namespace, Name: name}
}

func autoscaler(on *end) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: on.named("web"), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}, MaxReplicas: 9,
	}}
}

// owned gives the set an owner, as an operator does.
func (s *migration) owned() func() {
	s.t.Helper()
	var owner corev1.ConfigMap
	s.read(s.source, &owner)
	return s.edit(s.source, &appsv1.StatefulSet{}, fmt.Sprintf(
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"web","uid":%q,"controller":true}]}}`, owner.UID),
		`{"metadata":{"ownerReferences":null}}`)
}

// strayPod returns a pod that mounts a claim of the set. No node takes it, so its state does not change.
func strayPod(on *end, claim string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: on.named("stray"), Spec: corev1.PodSpec{
		SchedulerName: "none",
		Containers:    []corev1.Container{{Name: "stray", Image: "stray"}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}},
	}}
}

// expire changes the Lease of the plan as if its holder had been silent for long. A plan that has not begun has none.
func (s *migration) expire() {
	s.t.Helper()
	if err := s.silenced(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *migration) silenced(ctx context.Context) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: s.destination.namespace, Name: "stsmigrate-web"}}
	return client.IgnoreNotFound(s.destination.Patch(ctx, lease, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"renewTime":"2020-01-01T00:00:00.000000Z"}}`))))
}

// replaced deletes the set without its pods, and recreates it.
func (s *migration) replaced() func() {
	s.t.Helper()
	var set appsv1.StatefulSet
	s.read(s.source, &set)
	if err := s.source.Delete(s.t.Context(), &set, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the set is gone", func(context.Context) bool { return s.gone(s.source, &appsv1.StatefulSet{}, "web") })
	set.ResourceVersion, set.UID = "", ""
	s.create(s.source, &set)
	s.ready(s.source)
	return func() {}
}

// occupied creates a set of that name with running pods on the destination.
func (s *migration) occupied() func() {
	s.t.Helper()
	set := newSet(s.destination.namespace, 0, s.replicas)
	set.Spec.Template.Spec.ServiceAccountName = ""
	set.Spec.VolumeClaimTemplates, set.Spec.Template.Spec.Containers[0].VolumeMounts = nil, nil
	mend := s.put(s.destination, set)
	s.ready(s.destination)
	return func() {
		mend()
		for o := range s.replicas {
			pod := fmt.Sprintf("web-%d", o)
			s.eventually(pod+" is gone", func(context.Context) bool { return s.gone(s.destination, &corev1.Pod{}, pod) })
		}
	}
}
