package deploy

import (
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/strvals"
	rbacv1 "k8s.io/api/rbac/v1"
)

// An orchestrator that takes requests from other namespaces may read them everywhere and answer them where it takes them,
// and may do nothing else there. Otherwise it has no right to any.
func TestAnOrchestratorAnswersWhereItTakesRequests(t *testing.T) {
	for said, c := range map[string]struct {
		everywhere bool
		in         []string
		user       string
	}{
		"":            {},
		"{*}":         {everywhere: true, user: "stsmigrate-user"},
		"{*,shop}":    {everywhere: true, user: "stsmigrate-user"},
		"{mall,shop}": {in: []string{"mall", "shop"}, user: "stsmigrate-user.home"},
	} {
		raw := requesting(t, said)
		read, answer, users, everywhere, in := granted(t, raw)
		bound := map[string]bool{}
		for name := range read {
			bound[name] = true
		}
		for name := range answer {
			bound[name] = c.everywhere
		}
		for name, all := range bound {
			if everywhere[name] != all {
				t.Errorf("%s: %s is bound in all namespaces: %t", said, name, everywhere[name])
			}
		}
		taken := c.user != ""
		if (len(read) == 1) != taken || (len(answer) == 1) != taken || !slices.Equal(in, c.in) || users[c.user] != taken || everywhere[c.user] {
			t.Errorf("%s: %v read, %v answer, in %v, users %v", said, read, answer, in, users)
		}
		if flag := "--requests-from=" + strings.Trim(said, "{}"); strings.Contains(string(raw), "--requests-from") != taken || taken && !strings.Contains(string(raw), flag) {
			t.Errorf("%s: expected the flag %s", said, flag)
		}
	}
}

// granted returns the names of the ClusterRoles that let an account read requests, answer them, and make them; the names
// of what is bound in all namespaces, and the namespaces in which requests are answered.
func granted(t *testing.T, raw []byte) (read, answer, users, everywhere map[string]bool, in []string) {
	t.Helper()
	read, answer, users, everywhere = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, o := range decode(t, raw) {
		switch o.GetKind() {
		case "ClusterRoleBinding":
			everywhere[o.GetName()] = true
		case "RoleBinding":
			if answer[o.GetName()] {
				in = append(in, o.GetNamespace())
			}
		case "ClusterRole":
			for _, rule := range into[rbacv1.ClusterRole](t, o).Rules {
				switch verbs := strings.Join(rule.Verbs, " "); {
				case !slices.Contains(rule.APIGroups, "stsmigrate.dev"):
				case verbs == "get list watch":
					read[o.GetName()] = true
				case verbs == "patch":
					answer[o.GetName()] = true
				default:
					users[o.GetName()] = true
				}
			}
		}
	}
	slices.Sort(in)
	return read, answer, users, everywhere, in
}

// requesting renders an orchestrator that takes requests from these namespaces.
func requesting(t *testing.T, from string) []byte {
	t.Helper()
	values, err := Values("orchestrator")
	if err == nil && from != "" {
		err = strvals.ParseInto("orchestrator.requestsFrom="+from, values)
	}
	if err != nil {
		t.Fatal(err)
	}
	raw, err := Render("home", "", values)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
