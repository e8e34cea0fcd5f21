package access

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Roles returns the Roles that an account needs on one side for one plan, and their bindings. Rights with
// known names are limited to these names; listing, watching and creating cannot be limited. volumes are the
// names of the plan's volumes.
func Roles(p *plans.Plan, side plans.Side, account types.NamespacedName, volumes []string) []client.Object {
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
	return rolesOf(grant{RolesName(p, side), []rbacv1.Subject{subject}}, p, side, volumes, slices.Concat(Rights(p, side), ForConsent(p, side), ForChecks(p, side), []part.Right{ForEvents(), ForStranded(p, side)}))
}

// UserRoles returns the Roles and bindings of the users and groups who carry one plan out with commands. Consent is for
// orchestrators alone; plan, journal and Lease are kept on the destination.
func UserRoles(p *plans.Plan, side plans.Side, users, groups, volumes []string) []client.Object {
	return rolesOf(grant{RolesName(p, side), subjects(users, groups)}, p, side, volumes, userRights(p, side))
}

func userRights(p *plans.Plan, side plans.Side) []part.Right {
	rights := append(slices.Concat(Rights(p, side), ForChecks(p, side)), ForEvents(), ForStranded(p, side))
	if side == plans.Destination {
		rights = append(rights, ForRecords()...)
	}
	return rights
}

func subjects(users, groups []string) (out []rbacv1.Subject) {
	for _, name := range users {
		out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name})
	}
	for _, name := range groups {
		out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name})
	}
	return out
}

// grant is what Roles and their bindings are called, and for whom they are.
type grant struct {
	name     string
	subjects []rbacv1.Subject
}

func rolesOf(to grant, p *plans.Plan, side plans.Side, volumes []string, rights []part.Right) []client.Object {
	rules := map[string][]rbacv1.PolicyRule{} // by namespace, "" for cluster-wide rights
	var where []string
	for _, r := range rights {
		if r.Resource == "persistentvolumes" {
			r = about(r, volumes)
		}
		in := ""
		if !r.ClusterWide {
			in = r.In(p, side)
		}
		if _, known := rules[in]; !known {
			where = append(where, in)
		}
		rules[in] = append(rules[in], policyRules(r)...)
	}
	var out []client.Object
	for _, in := range where {
		labels := map[string]string{plans.PlanLabel: p.Name, "app.kubernetes.io/managed-by": "stsmigrate"}
		meta := metav1.ObjectMeta{Name: to.name, Namespace: in, Labels: labels}
		typed := func(kind string) metav1.TypeMeta {
			return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
		}
		if in == "" {
			out = append(out, &rbacv1.ClusterRole{TypeMeta: typed("ClusterRole"), ObjectMeta: meta, Rules: rules[in]},
				&rbacv1.ClusterRoleBinding{TypeMeta: typed("ClusterRoleBinding"), ObjectMeta: meta, Subjects: to.subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: to.name}})
			continue
		}
		out = append(out, &rbacv1.Role{TypeMeta: typed("Role"), ObjectMeta: meta, Rules: rules[in]},
			&rbacv1.RoleBinding{TypeMeta: typed("RoleBinding"), ObjectMeta: meta, Subjects: to.subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: to.name}})
	}
	return out
}

// RolesName returns the name of all Roles and bindings of one plan on one side. It has the plan's ID: two
// namespaces may keep plans of one name, and their ClusterRoles would collide.
func RolesName(p *plans.Plan, side plans.Side) string {
	return fmt.Sprintf("stsmigrate-%s-%s", p.ID, side)
}

// about limits a right to the objects with these names. Without any, none may be changed: a rule without names is about
// every object of the cluster.
func about(r part.Right, names []string) part.Right {
	if r.Names = names; len(names) == 0 {
		r.Verbs = slices.DeleteFunc(slices.Clone(r.Verbs), func(verb string) bool { return !r.Nameless(verb) && verb != "get" })
	}
	return r
}

// policyRules returns a right as RBAC rules. A subject that may list may read each object anyway.
func policyRules(r part.Right) []rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}}
	if len(r.Names) == 0 {
		rule.Verbs = r.Verbs
		return []rbacv1.PolicyRule{rule}
	}
	all, named := rule, rule
	named.ResourceNames = r.Names
	for _, verb := range r.Verbs {
		if r.Nameless(verb) || verb == "get" && slices.Contains(r.Verbs, "list") {
			all.Verbs = append(all.Verbs, verb)
		} else {
			named.Verbs = append(named.Verbs, verb)
		}
	}
	var out []rbacv1.PolicyRule
	for _, rule := range []rbacv1.PolicyRule{all, named} {
		if len(rule.Verbs) > 0 {
			out = append(out, rule)
		}
	}
	return out
}
