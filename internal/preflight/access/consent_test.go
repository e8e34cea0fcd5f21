package access

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

func TestANamespaceAgreesToOnePlanUntilSomeDay(t *testing.T) {
	p, now := checktest.ConsentPlan(), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	source := Parties(p)[0]
	for lines, want := range map[string]string{
		"web uid-1/mall/web plan=web-1a2b hash=f00d until=2026-01-03T00:00:00Z":                          "",
		"  web uid-1/mall/web until=2026-01-03T00:00:00+02:00 hash=f00d plan=web-1a2b \n":                "",
		"web uid-1/mall/db plan=x hash=y until=*\nweb uid-1/mall/web plan=web-1a2b hash=f00d until=*":    "",
		"web uid-1/mall/web plan=old hash=y until=*\nweb uid-1/mall/web plan=web-1a2b hash=f00d until=*": "",
		"* */*/* plan=* hash=* until=*": "",
		"":                              "it has no line for web under moves-to",
		"uid-1/mall/web":                "says nothing: expected OWN",
		"db uid-1/mall/web plan=web-1a2b hash=f00d until=*":                     "it has no line for web",
		"web uid-1/mall/db plan=web-1a2b hash=f00d until=*":                     "it has no line for web",
		"web uid-2/mall/web plan=web-1a2b hash=f00d until=*":                    "it has no line for web",
		"web uid-1/ma*/web plan=web-1a2b hash=f00d until=*":                     "it has no line for web",
		"web uid-1/mall/web plan=web-9 hash=f00d until=*":                       "it agrees to plan web-9, and not to web-1a2b",
		"web uid-1/mall/web plan=web-1a2b hash=beef until=*":                    "with another content",
		"web uid-1/mall/web plan=web-1a2b hash=f00d until=2026-01-02T00:00:00Z": "it has agreed until 2026-01-02",
		"web uid-1/mall/web plan=web-1a2b hash=f00d until=tomorrow":             "no time such as",
		"web uid-1/mall/web plan=web-1a2b hash=f00d":                            "says nothing",
		"web uid-1/mall/web plan=web-1a2b hash=f00d until=* dry=yes":            "says nothing",
		"web uid-1/mall/web plan=web-1a2b hash=f00d hash=f00d":                  "says nothing",
		"web uid-1/mall/web plan=web-1a2b hash=f00d end=*":                      "says nothing",
	} {
		_, why := source.Agrees(p, &corev1.ConfigMap{Data: map[string]string{"moves-to": lines}}, now)
		if (why == "") != (want == "") || !strings.Contains(why, want) {
			t.Errorf("%q: %q, expected %q", lines, why, want)
		}
		if _, why := source.Agrees(p, &corev1.ConfigMap{Data: map[string]string{"moves-from": lines}}, now); why == "" {
			t.Errorf("%q agrees under another key", lines)
		}
	}
}

// Beside the namespaces of the two sets, a plan writes to those in which it makes a Service for the bridged
// names.
func TestEveryNamespaceThatIsWrittenToIsAsked(t *testing.T) {
	p, now := checktest.ConsentPlan(), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	until := now.Add(time.Hour)
	on := clusters.Clusters{}
	for _, side := range plans.Sides() {
		on[side] = fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	}
	agreeing := Parties(p)
	if len(agreeing) != 4 {
		t.Fatalf("%d namespaces are asked: %+v", len(agreeing), agreeing)
	}
	for k, n := range agreeing {
		found, err := Agreed(t.Context(), p, on, now)
		if err != nil || len(found) != len(agreeing)-k || !strings.Contains(found[0].Object, n.Namespace+"/"+ConsentMap) {
			t.Fatalf("%d have agreed: %v, %v", k, found, err)
		}
		if !mayLook(p, n) {
			t.Errorf("%s: the Roles do not let anybody look whether namespace %s agrees", n.Side, n.Namespace)
		}
		if err := on[n.Side].Create(t.Context(), n.Agree(p, until, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := Agreed(t.Context(), p, on, now); len(found) > 0 || err != nil {
		t.Errorf("all have agreed: %v, %v", found, err)
	}
	if found, err := Agreed(t.Context(), p, on, until); len(found) != 4 || err != nil {
		t.Errorf("all have agreed until now: %v, %v", found, err)
	}
	p.Names = plans.Names{Mode: plans.NoNames}
	if n := len(Parties(p)); n != 2 {
		t.Errorf("without bridged names %d namespaces are asked", n)
	}
}

// mayLook reports whether the Roles of a plan let the orchestrator read the consent of a namespace.
func mayLook(p *plans.Plan, n Party) bool {
	return slices.ContainsFunc(Roles(p, n.Side, types.NamespacedName{}, nil), func(o client.Object) bool {
		return o.GetNamespace() == n.Namespace && slices.ContainsFunc(rulesOf(o), func(r rbacv1.PolicyRule) bool {
			return r.Resources[0] == "configmaps" && slices.Contains(r.ResourceNames, ConsentMap) && slices.Contains(r.Verbs, "get")
		})
	})
}

func TestALineThatAgreesToMoreIsWarnedOf(t *testing.T) {
	p := checktest.ConsentPlan()
	p.Names = plans.Names{}
	lines := map[string]string{"moves-to": "web uid-1/mall/web plan=* hash=* until=*", "moves-from": "* */*/* plan=* hash=* until=*"}
	on := clusters.Clusters{}
	for _, side := range plans.Sides() {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.On(side).Namespace, Name: ConsentMap}, Data: lines}
		on[side] = fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(cm).Build()
	}
	found, err := Agreed(t.Context(), p, on, time.Time{})
	if err != nil || len(found) != 2 || found[0].Level != check.Warn || found[1].Level != check.Warn {
		t.Errorf("%+v, %v", found, err)
	}
}

// A new agreement to a plan, and its withdrawal, keep the agreements to other plans.
func TestConsentToAPlanIsOnlyAboutThat(t *testing.T) {
	p, until := checktest.ConsentPlan(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n := Parties(p)[0]
	have := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: ConsentMap, ResourceVersion: "7"}, Data: map[string]string{
		"moves-to": "db uid-9/there/db plan=db-1 hash=a until=*\nweb uid-1/mall/web plan=web-1a2b hash=old until=*\nwhat is this", "moves-from": "# nobody",
	}}
	next := n.Agree(p, until, have)
	const rest = "db uid-9/there/db plan=db-1 hash=a until=*\nwhat is this\n"
	if got := next.Data["moves-to"]; got != rest+"web uid-1/mall/web plan=web-1a2b hash=f00d until=2026-01-02T03:04:05Z\n" || next.Data["moves-from"] != "# nobody" {
		t.Errorf("agreed to: %q", next.Data)
	}
	gone, less := n.Withdraw(p, next)
	if gone.Data["moves-to"] != rest || !less || gone.ResourceVersion != "7" {
		t.Errorf("withdrawn: %+v", gone)
	}
	if _, less := n.Withdraw(p, gone); less {
		t.Error("there is nothing to withdraw any more")
	}
}

func TestRevokeTakesAwayWhatWasGivenForOnePlan(t *testing.T) {
	p, other := checktest.ConsentPlan(), checktest.ConsentPlan()
	other.ID, other.Hash = "web-9z9z", "beef"
	on, before := granted(p, other)
	var gone []string
	for _, side := range plans.Sides() {
		g, err := Revoke(t.Context(), p, side, on)
		if err != nil {
			t.Fatal(err)
		}
		gone = append(gone, g...)
	}
	if len(gone) != before+4 {
		t.Errorf("taken away: %q, expected %d Roles and bindings, and 4 consents", gone, before)
	}
	for _, side := range plans.Sides() {
		for _, o := range Roles(other, side, types.NamespacedName{}, nil) {
			if err := on[side].Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Errorf("the Roles of another plan: %v", err)
			}
		}
	}
	for _, n := range Parties(p) {
		cm, err := n.Consent(t.Context(), on)
		if err != nil || n.key == answersFor != (cm == nil) {
			t.Fatalf("%s of the %s: %+v, %v", n.Namespace, n.Side, cm, err)
		}
		if _, why := n.Agrees(other, orNothing(cm), time.Time{}.Add(-time.Hour)); why != "" && cm != nil {
			t.Errorf("another plan: %s", why)
		}
	}
}

func TestRevokeLeavesAStrangersRole(t *testing.T) {
	p := checktest.ConsentPlan()
	stranger := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: RolesName(p, plans.Source)}}
	on := clusters.Clusters{plans.Source: fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(stranger).Build()}
	if gone, err := Revoke(t.Context(), p, plans.Source, on); err == nil || len(gone) > 0 {
		t.Errorf("%q, %v", gone, err)
	}
}

func orNothing(cm *corev1.ConfigMap) *corev1.ConfigMap {
	if cm == nil {
		return &corev1.ConfigMap{}
	}
	return cm
}

// The Roles of a plan name every object whose name is known. They have no wildcards. Of pods
// they may delete those of the plan, and read all.
func TestRolesNameWhatTheyAreAbout(t *testing.T) {
	p := &plans.Plan{
		Name: "web", Start: 0, Count: 2, Claims: []plans.ClaimMove{{Template: "data", Mode: plans.Reimport}},
		Source: plans.Ref{Cluster: "a", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: "b", Namespace: "mall", Name: "web"},
		Budget:       plans.Budget{Source: "web-pdb", Destination: "web-pdb"},
		Dependencies: []plans.Dependency{{Kind: "Secret", Name: "password"}},
	}
	for _, side := range plans.Sides() {
		names := map[string][]string{}
		tells := false
		for _, o := range Roles(p, side, types.NamespacedName{Namespace: "stsmigrate", Name: "orchestrator"}, []string{"pv-1", "pv-2"}) {
			for _, r := range rulesOf(o) {
				harmless(t, r)
				tells = tells || o.GetNamespace() == p.On(side).Namespace && r.Resources[0] == "events" && slices.Equal(r.Verbs, []string{"create", "list"})
				if slices.Contains(r.Verbs, "patch") || slices.Contains(r.Verbs, "delete") {
					names[r.Resources[0]] = r.ResourceNames
				}
			}
			if _, ok := o.(*rbacv1.Role); ok && o.GetNamespace() != p.On(side).Namespace {
				t.Errorf("%s: a Role in namespace %s", side, o.GetNamespace())
			}
		}
		if !tells {
			t.Errorf("%s: no Events may be written", side)
		}
		if slices.ContainsFunc(Rights(p, side), func(r part.Right) bool { return slices.Contains([]string{"events", "resourcequotas"}, r.Resource) }) {
			t.Errorf("%s: a plan is refused where Events cannot be written, or quotas cannot be read", side)
		}
		for resource, want := range map[string][]string{
			"statefulsets": {"web"}, "poddisruptionbudgets": {"web-pdb"}, "persistentvolumeclaims": {"data-web-0", "data-web-1"}, "persistentvolumes": {"pv-1", "pv-2"},
		} {
			if !slices.Equal(names[resource], want) {
				t.Errorf("%s: %s may be changed: %v, expected %v", side, resource, names[resource], want)
			}
		}
	}
}

func rulesOf(o client.Object) []rbacv1.PolicyRule {
	switch o := o.(type) {
	case *rbacv1.Role:
		return o.Rules
	case *rbacv1.ClusterRole:
		return o.Rules
	}
	return nil
}

// harmless checks that a rule has no wildcards, changes no pods, and reads only the Secrets that it names.
func harmless(t *testing.T, r rbacv1.PolicyRule) {
	t.Helper()
	verbs := strings.Join(r.Verbs, " ")
	wildcard := strings.Contains(strings.Join(slices.Concat(r.APIGroups, r.Resources, r.Verbs), " "), "*")
	pods := r.Resources[0] == "pods" && verbs != "get list watch" && verbs != "list" && (verbs != "delete" || len(r.ResourceNames) == 0)
	secrets := r.Resources[0] == "secrets" && len(r.ResourceNames) == 0 && verbs != "create"
	if wildcard || pods || secrets {
		t.Errorf("%+v", r)
	}
}

// granted returns clusters in which two plans have the rights and consent that an orchestrator needs, and the
// number of Roles and bindings of the first plan. Only the first plan has the consent of the namespaces where
// the other side's names are answered.
func granted(p, other *plans.Plan) (on clusters.Clusters, roles int) {
	on = clusters.Clusters{}
	for _, side := range plans.Sides() {
		all := Roles(p, side, types.NamespacedName{Namespace: "stsmigrate", Name: "orchestrator"}, nil)
		roles += len(all)
		all = append(all, Roles(other, side, types.NamespacedName{Namespace: "elsewhere", Name: "orchestrator"}, nil)...)
		for _, n := range Parties(p) {
			cm := n.Agree(p, time.Time{}, nil)
			if n.key != answersFor {
				cm = n.Agree(other, time.Time{}, cm)
			}
			if n.Side == side {
				all = append(all, cm)
			}
		}
		on[side] = fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(all...).Build()
	}
	return on, roles
}

// Roles have the rights by which the checks see what would leave a pod Pending on either side. The steps of a move need
// none of them, so that the check of the rights asks for none.
func TestRolesLetTheChecksSeeWhatLeavesAPodPending(t *testing.T) {
	account := types.NamespacedName{Namespace: "stsmigrate", Name: "orchestrator"}
	for name, c := range map[string]struct {
		cluster types.UID
		mode    plans.Mode
		want    map[plans.Side][]string
	}{
		"volumes that move":          {"b", plans.Reimport, map[plans.Side][]string{plans.Source: {"get storageclasses", "list resourcequotas in shop"}, plans.Destination: {"get storageclasses", "list resourcequotas in mall"}}},
		"an empty start":             {"b", plans.Empty, map[plans.Side][]string{plans.Source: {"get storageclasses", "list resourcequotas in shop"}, plans.Destination: {"get storageclasses", "list resourcequotas in mall", "list storageclasses"}}},
		"volumes within one cluster": {"a", plans.Rebind, map[plans.Side][]string{plans.Source: {"list resourcequotas in shop"}, plans.Destination: {"list resourcequotas in mall"}}},
		"an empty start within it":   {"a", plans.Empty, map[plans.Side][]string{plans.Source: {"list resourcequotas in shop"}, plans.Destination: {"get storageclasses", "list resourcequotas in mall", "list storageclasses"}}},
	} {
		p := &plans.Plan{
			Name: "web", ID: "abc", Count: 2, Claims: []plans.ClaimMove{{Template: "data", Mode: c.mode}},
			Source: plans.Ref{Cluster: "a", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: c.cluster, Namespace: "mall", Name: "web"},
		}
		for _, side := range plans.Sides() {
			for whose, printed := range map[string][]client.Object{"an orchestrator": Roles(p, side, account, nil), "a user": UserRoles(p, side, []string{"anna"}, nil, nil)} {
				var got []string
				for _, o := range printed {
					for _, r := range rulesOf(o) {
						if !slices.Contains([]string{"resourcequotas", "storageclasses"}, r.Resources[0]) {
							continue
						}
						for _, verb := range r.Verbs {
							what := verb + " " + r.Resources[0]
							if in := o.GetNamespace(); in != "" {
								what += " in " + in
							}
							got = append(got, what)
						}
					}
				}
				slices.Sort(got)
				if !slices.Equal(got, c.want[side]) {
					t.Errorf("%s, %s of %s may %v, expected %v", name, whose, side, got, c.want[side])
				}
			}
		}
	}
}
