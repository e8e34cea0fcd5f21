package move_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/plans"
)

// A user without any right prints the Roles to look, and with these makes a plan and the Roles to move. With both the whole
// move goes through. That neither may read kube-system is no obstacle: the plan knows its clusters by the namespaces then.
func TestTheRolesThatArePrintedBeforeAPlanAreEnough(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		user := "anna-of-" + s.source.namespace
		asUser := []string{"--as", user}
		if s.mode == reimport {
			asUser = append(asUser, "--to-as", user)
		}
		print := func() string {
			args := append(s.checkArgs(asUser...), "--user", user)
			args[0] = "rbac"
			return run(s.t, args...).expect(s.t, done).stdout
		}
		run(s.t, s.planArgs(asUser...)...).expect(s.t, failed, "`stsmigrate rbac web --user NAME`")

		s.grants(print(), "look")
		s.grants(print(), "look") // what the pods name is known now
		run(s.t, s.planArgs(asUser...)...).expect(s.t, done, "WARN permissions", "if you carry the plan out yourself")
		run(s.t, s.applyArgs(asUser...)...).expect(s.t, blocked, "FAIL permissions", "nothing has been written", "rules:\n")

		s.grants(print(), "move")
		s.forgetsNamespaces()
		run(s.t, s.planArgs(asUser...)...).expect(s.t, done)
		raw, err := os.ReadFile(s.planFile)
		if err != nil {
			s.t.Fatal(err)
		}
		p, err := plans.DecodePlan(raw)
		if err != nil || p.Destination.KnownBy != s.destination.namespace || p.OneCluster() != (s.mode == rebind) {
			s.t.Fatalf("the clusters of the plan: %v\n%s", err, raw)
		}
		run(s.t, s.applyArgs(asUser...)...).expect(s.t, done, "moved: 2 ordinals")
		args := []string{"finalize", "web", "--yes", "--kubeconfig", s.source.config(), "-n", s.destination.namespace}
		if s.mode == reimport {
			args = append(args, "--to-kubeconfig", s.destination.config(), "--to-namespace", s.destination.namespace)
		}
		run(s.t, append(args, asUser...)...).expect(s.t, done, "finalized")
	})
}

// grants applies the printed Roles for a purpose, each in the cluster of its side.
func (s *migration) grants(printed, purpose string) {
	s.t.Helper()
	for _, block := range strings.Split(printed, "# The Roles to ")[1:] {
		if !strings.HasPrefix(block, purpose+", ") {
			continue
		}
		on := s.source
		if strings.HasPrefix(block, purpose+", for the destination") {
			on = s.destination
		}
		for _, text := range strings.Split(block, "---\n")[1:] {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
				s.t.Fatalf("%v:\n%s", err, text)
			}
			have := o.DeepCopy()
			err := on.Get(s.t.Context(), client.ObjectKeyFromObject(o), have)
			if err == nil {
				o.SetResourceVersion(have.GetResourceVersion())
				err = on.Update(s.t.Context(), o)
			} else {
				err = on.Create(s.t.Context(), o)
			}
			if err != nil {
				s.t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
			}
		}
	}
}

// forgetsNamespaces takes the right to read namespaces in the whole cluster away again.
func (s *migration) forgetsNamespaces() {
	s.t.Helper()
	for _, on := range []*end{s.source, s.destination} {
		var all rbacv1.ClusterRoleList
		if err := on.List(s.t.Context(), &all); err != nil {
			s.t.Fatal(err)
		}
		for k := range all.Items {
			role := &all.Items[k]
			if !strings.HasPrefix(role.Name, "stsmigrate-") || !strings.Contains(role.Name, s.source.namespace) && !strings.Contains(role.Name, s.destination.namespace) {
				continue
			}
			role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "namespaces") })
			if err := on.Update(s.t.Context(), role); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}
