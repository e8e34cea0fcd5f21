package access

import (
	"context"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// user is what an authorizer allows: rules by namespace, "" for all.
type user map[string][]rbacv1.PolicyRule

func (u user) given(objects []client.Object) {
	for _, o := range objects {
		u[o.GetNamespace()] = append(u[o.GetNamespace()], rulesOf(o)...)
	}
}

func (u user) in(namespace string) (out []authorizationv1.ResourceRule) {
	all := u[""]
	if namespace != nowhere {
		all = slices.Concat(all, u[namespace])
	}
	for _, r := range all {
		out = append(out, authorizationv1.ResourceRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
	}
	return out
}

// authorizer answers for a user. hides reports that it cannot list its rules, as webhooks cannot: each is asked for.
func authorizer(c client.Client, u user, hides bool) client.Client {
	plain, _ := c.(client.WithWatch)
	return interceptor.NewClient(plain, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		switch review := o.(type) {
		case *authorizationv1.SelfSubjectRulesReview:
			if review.Status.Incomplete = hides; !hides {
				review.Status.ResourceRules = u.in(review.Spec.Namespace)
			}
		case *authorizationv1.SelfSubjectAccessReview:
			about, namespace := review.Spec.ResourceAttributes, nowhere
			if about.Namespace != "" {
				namespace = about.Namespace
			}
			r := part.Right{Group: about.Group, Resource: about.Resource, Verbs: []string{about.Verb}}
			if about.Subresource != "" {
				r.Resource += "/" + about.Subresource
			}
			if about.Name != "" {
				r.Names = []string{about.Name}
			}
			review.Status.Allowed = permitted(u.in(namespace), r, about.Verb)
		default:
			return c.Create(ctx, o, opts...)
		}
		return nil
	}})
}

func disks() checktest.Estate {
	csi := "spec: {csi: {driver: disk.example.com, volumeHandle: "
	return checktest.Estate{Volumes: []string{csi + "a}}", csi + "b}}"}, Claim: "{}"}
}

// as returns an inspection by users.
func as(t *testing.T, e checktest.Estate, hides bool, u map[plans.Side]user) check.Inspection {
	t.Helper()
	i := e.Inspected(t)
	on := clusters.Clusters{}
	for side, c := range i.On {
		on[side] = authorizer(c, u[side], hides)
	}
	out := check.Inspect(i.Plan, on)
	out.Now = i.Now
	return out
}

// roles returns the users to whom printed Roles are given.
func roles(t *testing.T, e checktest.Estate, print func(*plans.Plan, plans.Side) []client.Object) map[plans.Side]user {
	t.Helper()
	out := map[plans.Side]user{plans.Source: {}, plans.Destination: {}}
	p := e.Inspected(t).Plan
	for side, u := range out {
		if u.given(print(p, side)); p.OneCluster() {
			u.given(print(p, side.Other()))
		}
	}
	return out
}

func look(p *plans.Plan, side plans.Side) []client.Object {
	return LookRoles(p, side, []string{"anna"}, nil)
}

func move(p *plans.Plan, side plans.Side) []client.Object {
	return MoveRoles(p, side, []string{"anna"}, nil, []string{"pv-0", "pv-1"})
}

// With the Roles to move nothing is missing, and with those to look a plan can be made: what moving needs besides is one
// warning a side, and one failure for who carries the plan out. It makes no difference whether the authorizer can list its
// rules.
func TestTheRolesBeforeAPlanAreEnough(t *testing.T) {
	for _, one := range []bool{false, true} {
		for _, hides := range []bool{false, true} {
			e := disks()
			e.One = one
			may := func(print func(*plans.Plan, plans.Side) []client.Object, draft bool) []check.Finding {
				i := as(t, e, hides, roles(t, e, print))
				i.Draft = draft
				found, err := Permissions(t.Context(), i)
				if err != nil {
					t.Fatal(err)
				}
				return found
			}
			if found := may(move, false); len(found) > 0 {
				t.Errorf("one cluster %t, hides %t: who may move lacks %+v", one, hides, found)
			}
			for _, draft := range []bool{true, false} {
				found := may(look, draft)
				if len(found) != 2 {
					t.Fatalf("%d findings, expected one for each side: %+v", len(found), found)
				}
				for _, f := range found {
					if (f.Level == check.Warn) != draft || strings.Contains(f.Saw, "get ") || strings.Contains(f.Saw, "list ") || !strings.Contains(f.Saw, " persistentvolumes (cluster-wide)") {
						t.Errorf("one cluster %t, hides %t, draft %t: %+v", one, hides, draft, f)
					}
				}
			}
		}
	}
}

// Who may do nothing reads one finding a side, with every rule, and needs no more than these: they are YAML, each right is in
// one of them, and a name is never left out. Without the names of the volumes no right to change all volumes is asked for.
func TestTheRulesOfOneFindingAreAllThatIsMissing(t *testing.T) {
	for name, unreadable := range map[string]bool{"claims are read": false, "claims are not read": true} {
		e := disks()
		if unreadable {
			e.Forbids = "*v1.PersistentVolumeClaimList"
		}
		nobody := map[plans.Side]user{plans.Source: {}, plans.Destination: {}}
		i := as(t, e, false, nobody)
		i.Draft = true
		found, err := Permissions(t.Context(), i)
		if err != nil || len(found) != 2 {
			t.Fatalf("%s: %v, %+v", name, err, found)
		}
		given := map[plans.Side]user{}
		for k, side := range plans.Sides() {
			if found[k].Level != "" && found[k].Level != check.Fail {
				t.Errorf("%s: %+v", name, found[k])
			}
			first, rules, _ := strings.Cut(found[k].Remedy, "\n")
			if !strings.Contains(first, "`stsmigrate rbac web --user NAME`") {
				t.Errorf("%s: %s", name, first)
			}
			given[side] = asked(t, rules)
			if named := strings.Contains(rules, `resourceNames: ["pv-0", "pv-1"]`); named == unreadable || strings.Contains(rules, "resourceNames: []") {
				t.Errorf("%s: %s", name, rules)
			}
			if slices.ContainsFunc(given[side][""], ofEveryVolume) {
				t.Errorf("%s: every volume of the cluster: %+v", name, given[side][""])
			}
		}
		if unreadable {
			continue
		}
		if again, err := Permissions(t.Context(), as(t, e, false, given)); err != nil || len(again) > 0 {
			t.Errorf("%s: with these rules, %+v is missing: %v", name, again, err)
		}
	}
}

// ofEveryVolume reports whether a rule lets change every volume of a cluster.
func ofEveryVolume(r rbacv1.PolicyRule) bool {
	return slices.Contains(r.Resources, "persistentvolumes") && slices.Contains(r.Verbs, "patch") && len(r.ResourceNames) == 0
}

// asked reads the rules of a finding.
func asked(t *testing.T, text string) user {
	t.Helper()
	out := user{}
	for _, block := range strings.Split(text, "# ")[1:] {
		title, rules, _ := strings.Cut(block, "\n")
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(rules), &role); err != nil || len(role.Rules) == 0 {
			t.Fatalf("%v:\n%s", err, block)
		}
		namespace, _ := strings.CutPrefix(title, "Role in namespace ")
		if title == "ClusterRole" {
			namespace = ""
		}
		out[namespace] = role.Rules
	}
	return out
}

// A user with a wildcard lacks nothing. A right to other names is none.
func TestWildcardsAndOtherNames(t *testing.T) {
	all := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	e := disks()
	for name, c := range map[string]struct {
		u    user
		want int
	}{
		"everything":          {user{"": all}, 0},
		"everything in there": {user{"shop": all, "mall": all}, 2}, // nodes and volumes are of the cluster
	} {
		found, err := Permissions(t.Context(), as(t, e, false, map[plans.Side]user{plans.Source: c.u, plans.Destination: c.u}))
		if err != nil || len(found) != c.want {
			t.Errorf("%s: %v, %+v", name, err, found)
		}
	}
	others := roles(t, e, func(p *plans.Plan, side plans.Side) []client.Object {
		return MoveRoles(p, side, []string{"anna"}, nil, []string{"pv-0", "pv-8"})
	})
	found, err := Permissions(t.Context(), as(t, e, false, others))
	if err != nil || len(found) != 2 || !strings.Contains(found[0].Saw, "you may not patch, delete persistentvolumes (cluster-wide)") || strings.Count(found[0].Remedy, "- {") != 1 {
		t.Errorf("%v: %+v", err, found)
	}
}

// An orchestrator and a stored plan get the Roles of the plan.
func TestTheRemedyNamesTheRolesOfWhoLacksTheRight(t *testing.T) {
	nobody := map[plans.Side]user{plans.Source: {}, plans.Destination: {}}
	i := as(t, disks(), false, nobody)
	if found, err := Permissions(t.Context(), i); err != nil || !strings.Contains(found[0].Remedy, "`stsmigrate rbac --plan FILE --user NAME` prints") {
		t.Errorf("%v: %+v", err, found)
	}
	i.Orchestrated = planstest.Noon
	if found, err := Permissions(t.Context(), i); err != nil || !strings.Contains(found[0].Remedy, "`stsmigrate rbac --plan FILE` prints") {
		t.Errorf("%v: %+v", err, found)
	}
}

// Who may not make pods hears how the plan does without them, and no one else does.
func TestWhoMayNotMakePodsHearsOfThePlanWithout(t *testing.T) {
	nobody := map[plans.Side]user{plans.Source: {}, plans.Destination: {}}
	for proof, want := range map[plans.Proof]bool{"": false, plans.NoProof: false, plans.Scheduled: true, plans.Warm: true} {
		i := as(t, disks(), false, nobody)
		i.Plan.Placeholder.Proof = proof
		found, err := Permissions(t.Context(), i)
		if err != nil || len(found) != 2 {
			t.Fatalf("%v: %+v", err, found)
		}
		for _, f := range found {
			if strings.Contains(f.Remedy, "--placeholder off") != want || strings.Contains(f.Saw, "create, delete pods") != want {
				t.Errorf("%q: %+v", proof, f)
			}
		}
	}
}

// The Roles to look write nothing, and name each kind once.
func TestTheRolesToLookWriteNothing(t *testing.T) {
	for _, one := range []bool{false, true} {
		e := disks()
		e.One = one
		p := e.Inspected(t).Plan
		p.Dependencies = []plans.Dependency{{Kind: "Secret", Name: "pw"}, {Kind: "ConfigMap", Name: "conf"}}
		for _, side := range plans.Sides() {
			seen := map[string]bool{}
			for _, o := range LookRoles(p, side, []string{"anna"}, []string{"team"}) {
				for _, r := range rulesOf(o) {
					key := o.GetNamespace() + strings.Join(r.APIGroups, ",") + "/" + strings.Join(r.Resources, ",") + strings.Join(r.ResourceNames, ",")
					if seen[key] {
						t.Errorf("twice: %s", key)
					}
					seen[key] = true
					for _, verb := range r.Verbs {
						if verb != "get" && verb != "list" {
							t.Errorf("%s %s may %s", o.GetName(), key, verb)
						}
					}
					if slices.Contains(r.Resources, "secrets") && !slices.Equal(r.ResourceNames, []string{"pw"}) {
						t.Errorf("Secrets: %+v", r)
					}
				}
			}
		}
	}
}

// A user who may not get or list something makes no plan. Who only may not write makes one, and another user carries it out.
func TestARightToLookIsOneThatAPlanNeeds(t *testing.T) {
	for verbs, want := range map[string]bool{"get": true, "list": true, "get patch": true, "create patch delete": false, "": false} {
		if got := looks(part.Right{Verbs: strings.Fields(verbs)}); got != want {
			t.Errorf("%q: %t", verbs, got)
		}
	}
}
