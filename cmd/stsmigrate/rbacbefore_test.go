package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// stock returns a set with two volumes and a Secret that its pods name.
func stock() []client.Object {
	replicas := int32(2)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas, ServiceName: "web"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "pw"}}}}}}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	out := []client.Object{set, service, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pw"}}}
	for _, namespace := range []string{"shop", "mall"} {
		out = append(out, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, UID: "uid-of-the-namespace"}})
	}
	return slices.Concat(out, disk(0, "vol-0"), disk(1, "vol-1"))
}

// forbids makes the API server refuse requests for objects whose paths begin like this.
func (s *served) forbids(prefixes ...string) {
	s.denies = func(r *http.Request) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(r.URL.Path, p) })
	}
}

// printed reads the Roles of an output by what they are for: "look" or "move", a side, and their rules.
func printed(t *testing.T, out string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, block := range strings.Split(out, "# The Roles to ")[1:] {
		head, rest, _ := strings.Cut(block, "\n")
		purpose, rest2, _ := strings.Cut(head, ", for the ")
		side, _, _ := strings.Cut(rest2, ",")
		if !strings.HasPrefix(rest, "# The commands that need them: ") {
			t.Errorf("it is not said which commands need them:\n%s", block)
		}
		for _, text := range strings.Split(rest, "---\n")[1:] {
			var o struct {
				metav1.TypeMeta   `json:",inline"`
				metav1.ObjectMeta `json:"metadata"`
				Rules             []rbacv1.PolicyRule `json:"rules"`
				Subjects          []rbacv1.Subject    `json:"subjects"`
				RoleRef           rbacv1.RoleRef      `json:"roleRef"`
			}
			if err := yaml.UnmarshalStrict([]byte(text), &o); err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
			if len(o.Subjects) > 0 && (o.Subjects[0].Name != "anna" || o.RoleRef.Name != o.Name) {
				t.Errorf("%+v", o)
			}
			rules[purpose+" "+side] = append(rules[purpose+" "+side], o.Rules...)
		}
	}
	return rules
}

// Before there is a plan, the Roles to look and those to move are printed for each side, from what the set names. They
// say which commands need them.
func TestRolesBeforeThereIsAPlan(t *testing.T) {
	s, config := serve(t, []string{"east"}, stock()...)
	s.serves("poddisruptionbudgets", "policy/v1 PodDisruptionBudget")
	s.serves("selfsubjectrulesreviews", "authorization.k8s.io/v1 SelfSubjectRulesReview")
	s.serves("selfsubjectaccessreviews", "authorization.k8s.io/v1 SelfSubjectAccessReview")
	args := []string{"rbac", "web", "-n", "shop", "--to-namespace", "mall", "--kubeconfig", config}
	got := command(t, append(args, "--user", "anna")...)
	if got.code != exitDone || got.errOut != "" {
		t.Fatalf("%+v", got)
	}
	rules := printed(t, got.out)
	for purpose, writes := range map[string]bool{"look source": false, "look destination": false, "move source": true, "move destination": true} {
		if len(rules[purpose]) == 0 {
			t.Errorf("%s: no rules", purpose)
		}
		wrote := slices.ContainsFunc(rules[purpose], lets)
		for _, r := range rules[purpose] {
			if slices.Contains(r.Resources, "secrets") && !slices.Equal(r.ResourceNames, []string{"pw"}) && slices.Contains(r.Verbs, "get") {
				t.Errorf("%s: Secrets %+v", purpose, r)
			}
		}
		if wrote != writes {
			t.Errorf("%s writes: %t\n%+v", purpose, wrote, rules[purpose])
		}
	}
	boundedTo(t, got.out, []string{"pv-0", "pv-1"})
	if got := command(t, append(args, "--group", "anna", "--side", "source")...); got.code != exitDone || len(printed(t, got.out)) != 2 || strings.Contains(got.out, "for the destination") {
		t.Errorf("one side: %+v", got)
	}
}

// lets reports whether a rule lets write something.
func lets(r rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(r.Verbs, func(verb string) bool { return verb != "get" && verb != "list" && verb != "watch" })
}

func TestMistakesAboutRolesAreFoundFirst(t *testing.T) {
	s, config := serve(t, []string{"east"}, stock()...)
	s.serves("poddisruptionbudgets", "policy/v1 PodDisruptionBudget")
	s.serves("selfsubjectrulesreviews", "authorization.k8s.io/v1 SelfSubjectRulesReview")
	s.serves("selfsubjectaccessreviews", "authorization.k8s.io/v1 SelfSubjectAccessReview")
	args := []string{"rbac", "web", "-n", "shop", "--to-namespace", "mall", "--kubeconfig", config}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"for nobody":       {args, "say for whom: --user NAME or --group NAME"},
		"for an account":   {append(slices.Clone(args), "--account", "a/b"), "say for whom: --user NAME or --group NAME"},
		"beside a plan":    {append(slices.Clone(args), "--user", "anna", "--plan", "web.yaml"), "web is named beside a plan"},
		"of no side":       {append(slices.Clone(args), "--user", "anna", "--side", "left"), "expected source or destination"},
		"of nothing":       {[]string{"rbac", "--user", "anna", "--kubeconfig", config}, "name the set, or the file of its plan with --plan"},
		"of an unknown":    {[]string{"rbac", "wep", "-n", "shop", "--to-namespace", "mall", "--user", "anna", "--kubeconfig", config}, "wep"},
		"to the same name": {[]string{"rbac", "web", "-n", "shop", "--user", "anna", "--kubeconfig", config}, "give --to-namespace or --to-context"},
	} {
		if got := command(t, c.args...); got.code != exitError || got.out != "" || !strings.Contains(got.errOut, c.want) || strings.Count(got.errOut, "\n") != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Who may not read the set prints the Roles to look, and hears how those to move are printed.
func TestWhoMayReadNothingPrintsTheRolesToLook(t *testing.T) {
	s, config := serve(t, []string{"east"}, stock()...)
	s.serves("poddisruptionbudgets", "policy/v1 PodDisruptionBudget")
	s.serves("selfsubjectrulesreviews", "authorization.k8s.io/v1 SelfSubjectRulesReview")
	s.serves("selfsubjectaccessreviews", "authorization.k8s.io/v1 SelfSubjectAccessReview")
	for name, paths := range map[string][]string{
		"nothing":           {"/"},
		"no kube-system":    {"/api/v1/namespaces/kube-system", "/api/v1/namespaces/mall"},
		"no set":            {"/apis/apps/v1/namespaces/shop/statefulsets"},
		"no volumes at all": {"/api/v1/persistentvolumes"},
	} {
		s.forbids(paths...)
		got := command(t, "rbac", "web", "-n", "shop", "--to-namespace", "mall", "--kubeconfig", config, "--user", "anna")
		rules := printed(t, got.out)
		if got.code != exitDone || len(rules["look source"]) == 0 || len(rules["look destination"]) == 0 || len(rules) != 2 {
			t.Errorf("%s: %d: %v\n%s", name, got.code, rules, got.errOut)
		}
		if !strings.Contains(got.errOut, "The Roles to move are left out") || strings.Count(got.errOut, "\n") != 1 {
			t.Errorf("%s: %s", name, got.errOut)
		}
	}
}

// The first command of a user without rights ends with one sentence, which names the command that prints the Roles.
func TestTheFirstRefusalNamesTheRolesToAskFor(t *testing.T) {
	s, config := serve(t, []string{"east"}, stock()...)
	s.forbids("/")
	for _, verb := range []string{"plan", "check"} {
		got := command(t, verb, "web", "-n", "shop", "--to-namespace", "mall", "--kubeconfig", config)
		if got.code != exitError || !strings.Contains(got.errOut, "`stsmigrate rbac web --user NAME`") || strings.Count(got.errOut, "\n") != 1 {
			t.Errorf("%s: %+v", verb, got)
		}
	}
}
