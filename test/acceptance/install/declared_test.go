package install_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

const underWay = "stsmigrate.dev/under-way"

type fields = map[string]any

// migration returns a StatefulSetMigration whose plan is approved.
func migration(name string, change func(spec fields)) *unstructured.Unstructured {
	o := records.NewDeclared("stsmigrate", name)
	spec := fields{
		"source": fields{"context": "east", "namespace": "shop", "name": "web"}, "destination": fields{"context": "west"},
		"maxUnavailable": int64(2), "approvedHash": "abc123",
	}
	change(spec)
	o.Object["spec"] = spec
	return o
}

// declarable installs the kind and the policies, and waits until both are in force.
func declarable(t *testing.T) client.Client {
	t.Helper()
	if out, err := stsmigrate(t, "install", "orchestrator", "policies", "--apply", "--set", "policies.movers.users={anna}", "--set", "policies.movers.groups={movers}", "--set", "policies.accounts={"+other+"}", "--set", "orchestrator.requesters=true"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	owner, eve := as(t, ""), as(t, "eve")
	bait := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: "stsmigrate-bait-journal"}}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		policies := eve.Create(ctx, bait.DeepCopy(), client.DryRunAll)
		kind := owner.Create(ctx, migration("bait", func(fields) {}), client.DryRunAll)
		return policies != nil && strings.Contains(policies.Error(), "stsmigrate-records") && kind == nil, nil
	})
	if err != nil {
		t.Fatalf("kind and policies are not in force: %v", err)
	}
	return owner
}

// The API server itself refuses invalid values, and the withdrawal of decisions that cannot be
// withdrawn.
func TestTheKindRefusesWhatCannotBeMeant(t *testing.T) {
	owner := declarable(t)
	sets := func(field string, value any) func(fields) { return func(s fields) { s[field] = value } }
	for _, c := range []struct {
		name    string
		object  string
		change  func(fields)
		refused string
	}{
		{"a small one", "small", func(s fields) { delete(s, "maxUnavailable") }, ""},
		{"a share of the ordinals", "a", sets("maxUnavailable", "25%"), ""},
		{"no ordinal", "a", sets("maxUnavailable", int64(0)), "spec.maxUnavailable"},
		{"no share", "a", sets("maxUnavailable", "0%"), "spec.maxUnavailable"},
		{"more than all", "a", sets("maxUnavailable", "101%"), "spec.maxUnavailable"},
		{"a word", "a", sets("maxUnavailable", "half"), "spec.maxUnavailable"},
		{"a direction that there is not", "a", sets("direction", "Fly"), `Unsupported value: "Fly"`},
		{"a name of no set", "a", sets("source", fields{"name": "Web!"}), "spec.source.name"},
		{"two names", "a", sets("destination", fields{"name": "other"}), "pods keep their names"},
		{"no source", "a", func(s fields) { delete(s, "source") }, "spec.source: Required value"},
		{"a window for a whole set", "a", sets("window", int64(65)), "spec.window"},
		{"a mode of names that there is not", "a", sets("names", "magic"), "spec.names"},
		{"places that are left open", "a", sets("placeholder", fields{"priorityClass": "low", "reach": []any{"peers"}}), ""},
		{"no places", "a", sets("placeholder", fields{"proof": "off"}), ""},
		{"a class for no places", "a", sets("placeholder", fields{"proof": "off", "priorityClass": "low"}), "none is made"},
		{"a hash that is none", "a", sets("approvedHash", "latest"), "spec.approvedHash"},
		{"a gate without a place", "a", sets("gates", []any{fields{"name": "leader"}}), "when: Required value"},
		{"a gate with a Job", "gate", sets("gates", []any{fields{"name": "leader", "when": "AfterGrow", "job": fields{"template": fields{"spec": fields{"containers": []any{}}}}}}), ""},
		{"a Job that would fill the memory", "gate", sets("gates", []any{fields{"name": "leader", "when": "AfterGrow", "job": fields{"template": fields{"spec": fields{"containers": many(300_000)}}}}}), "spec.gates[0].job.template.spec.containers: Too many"},
		{"volumes that would", "gate", sets("gates", []any{fields{"name": "leader", "when": "AfterGrow", "job": fields{"template": fields{"spec": fields{"volumes": many(65)}}}}}), "spec.gates[0].job.template.spec.volumes: Too many"},
		{"gates that would", "gate", sets("gates", many(33)), "spec.gates: Too many"},
		{"a Job with a field of a later Kubernetes", "gate", sets("gates", []any{fields{"name": "leader", "when": "AfterGrow", "job": fields{"later": "a", "template": fields{"later": "a", "spec": fields{"later": many(2), "containers": []any{fields{"name": "a", "later": "a"}}}}}}}), ""},
		{"a request for nothing", "a", sets("request", fields{"id": "1"}), "set a field beside id"},
		{"a request for names", "a", sets("request", fields{"id": "1", "removeNames": true}), ""},
		{"a request for names and more", "a", sets("request", fields{"id": "1", "removeNames": true, "resume": true}), "must be the only field beside id, and the"},
		{"a request for no names", "a", sets("request", fields{"id": "1", "removeNames": false}), "set a field beside id"},
		{"a request without an id", "a", sets("request", fields{"resume": true}), "request.id"},
		{"a name that is a journal's", "a-journal", func(fields) {}, "the name of a plan must not end with -journal"},
		{"a name that is too long", strings.Repeat("a", 41), func(fields) {}, "metadata.name"},
	} {
		err := owner.Create(t.Context(), migration(c.object, c.change), client.DryRunAll)
		refusedWith(t, c.name, err, c.refused)
	}
	for name, c := range map[string]struct {
		direction string // the current direction of the plan
		before    func(fields)
		change    func(fields)
		refused   string
	}{
		"an approved plan goes elsewhere":    {"", func(fields) {}, sets("destination", fields{"context": "north"}), "this field cannot change after the approval"},
		"an approved plan gets other limits": {"", func(fields) {}, sets("maxUnavailable", int64(3)), "this field cannot change after the approval"},
		"or writes them as a share":          {"", func(fields) {}, sets("maxUnavailable", "50%"), "this field cannot change after the approval"},
		"a share stays":                      {"", sets("maxUnavailable", "50%"), sets("paused", true), ""},
		"or loses them":                      {"", func(fields) {}, func(s fields) { delete(s, "maxUnavailable") }, "this field cannot change after the approval"},
		"another hash":                       {"", func(fields) {}, sets("approvedHash", "def456"), "the approved hash cannot change"},
		"a plan that nobody has approved":    {"", func(s fields) { delete(s, "approvedHash") }, sets("maxUnavailable", int64(3)), ""},
		"and its approval":                   {"", func(s fields) { delete(s, "approvedHash") }, sets("approvedHash", "def456"), ""},
		"a pause":                            {"", func(fields) {}, sets("paused", true), ""},
		"the abort":                          {"Move", func(fields) {}, sets("direction", "Abort"), ""},
		"the abort, taken back in time":      {"Move", sets("direction", "Abort"), sets("direction", "Move"), ""},
		"the abort, taken back too late":     {"Abort", sets("direction", "Abort"), sets("direction", "Move"), "the direction of the plan is Abort"},
		"the abort, turned by a request":     {"Abort", sets("direction", "Abort"), func(s fields) { s["direction"], s["request"] = "Move", fields{"id": "1", "resume": true} }, ""},
		"the end, taken back":                {"Finalize", sets("direction", "Finalize"), sets("direction", "Abort"), ""},
		"the end, set back":                  {"Finalize", sets("direction", "Finalize"), sets("direction", "Move"), "the direction of the plan is Finalize"},
		"a request altered under its id":     {"", sets("request", fields{"id": "1", "resume": true}), sets("request", fields{"id": "1", "readopt": true}), "an id of its own"},
		"another request":                    {"", sets("request", fields{"id": "1", "resume": true}), sets("request", fields{"id": "2", "readopt": true}), ""},
	} {
		o := migration("web", c.before)
		if err := owner.Create(t.Context(), o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.direction != "" {
			o.Object["status"] = fields{"state": "Blocked", "direction": c.direction, "a condition is": []any{}}
			if err := owner.Status().Update(t.Context(), o); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		next := o.DeepCopy()
		c.change(next.Object["spec"].(fields))
		refusedWith(t, name, owner.Update(t.Context(), next, client.DryRunAll), c.refused)
		if err := owner.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// many returns a list of empty objects.
func many(n int) []any {
	out := make([]any, n)
	for k := range out {
		out[k] = fields{}
	}
	return out
}

func refusedWith(t *testing.T, name string, err error, refused string) {
	t.Helper()
	switch {
	case refused == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
		t.Errorf("%s: %v, expected it to be refused with %q", name, err, refused)
	}
}

// The records of plans belong to the orchestrator, and the requests belong to the users.
func TestPoliciesKeepTheRecordsOfPlans(t *testing.T) {
	owner := declarable(t)
	there := func(namespace, name string, data map[string]string) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{plans.PlanLabel: "web"}}, Data: data}
		if err := as(t, account).Create(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = as(t, account).Delete(context.Background(), cm) })
		return cm
	}
	journal := there("stsmigrate", "stsmigrate-web-journal", map[string]string{"journal.json": "{}"})
	plan := there("stsmigrate", "stsmigrate-web", map[string]string{"plan.yaml": "name: web"})
	tenants := there("stsmigrate", "stsmigrate-shop.db", map[string]string{"plan.yaml": "name: shop.db"})
	other := there("stsmigrate", "notes", map[string]string{"a": "b"})
	elsewhere := there("default", "stsmigrate-web-journal", map[string]string{"journal.json": "{}"})
	o := migration("kept", func(fields) {})
	o.SetFinalizers([]string{underWay})
	if err := owner.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	shops := migration("kept", func(fields) {})
	shops.SetNamespace("default")
	shops.SetFinalizers([]string{underWay})
	if err := owner.Create(t.Context(), shops); err != nil {
		t.Fatal(err)
	}
	eve, admin, orch := as(t, "eve"), as(t, "admin", "system:masters"), as(t, account)
	labelled := func(cm *corev1.ConfigMap) *corev1.ConfigMap {
		cm = cm.DeepCopy()
		cm.Labels["a"] = "b"
		return cm
	}
	for name, c := range map[string]struct {
		err     error
		refused string
	}{
		"somebody makes a journal":                    {eve.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: "stsmigrate-db-journal"}}, client.DryRunAll), "belongs to the journal of a plan"},
		"a person who moves volumes recovers one":     {as(t, "anna").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: "stsmigrate-db-journal"}}, client.DryRunAll), ""},
		"and changes none":                            {as(t, "anna").Update(t.Context(), labelled(journal), client.DryRunAll), "belongs to the journal of a plan"},
		"somebody changes one":                        {eve.Update(t.Context(), labelled(journal), client.DryRunAll), "belongs to the journal of a plan"},
		"somebody deletes one":                        {eve.Delete(t.Context(), journal, client.DryRunAll), "belongs to the journal of a plan"},
		"an administrator deletes one":                {admin.Delete(t.Context(), journal, client.DryRunAll), "belongs to the journal of a plan"},
		"the orchestrator changes one":                {orch.Update(t.Context(), labelled(journal), client.DryRunAll), ""},
		"it deletes one":                              {orch.Delete(t.Context(), journal, client.DryRunAll), ""},
		"it goes with its namespace":                  {as(t, "system:serviceaccount:kube-system:namespace-controller").Delete(t.Context(), journal, client.DryRunAll), ""},
		"a journal of commands, in another namespace": {eve.Update(t.Context(), labelled(elsewhere), client.DryRunAll), ""},
		"somebody changes a plan":                     {eve.Update(t.Context(), labelled(plan), client.DryRunAll), "contains a plan, which never changes"},
		"somebody deletes a plan":                     {eve.Delete(t.Context(), plan, client.DryRunAll), ""},
		"somebody makes a plan":                       {eve.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: "stsmigrate-db"}}, client.DryRunAll), ""},
		"the orchestrator keeps a plan":               {orch.Update(t.Context(), labelled(plan), client.DryRunAll), ""},
		"somebody makes a plan of another namespace":  {eve.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: "stsmigrate-shop.web"}}, client.DryRunAll), "was requested in another namespace"},
		"somebody deletes one of these":               {eve.Delete(t.Context(), tenants, client.DryRunAll), "was requested in another namespace"},
		"the orchestrator deletes it":                 {orch.Delete(t.Context(), tenants, client.DryRunAll), ""},
		"a person recovers such a plan":               {as(t, "anna").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: "stsmigrate-shop.web"}}, client.DryRunAll), ""},
		"an adoption of a set with a dot":             {eve.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: "stsmigrate-adopt-my.web"}}, client.DryRunAll), ""},
		"the orchestrator asks itself elsewhere":      {orch.Update(t.Context(), asking(shops, func(s fields) { s["direction"] = "Abort" }), client.DryRunAll), "the orchestrator must not change the spec"},
		"somebody takes that finalizer off":           {eve.Update(t.Context(), bare(shops), client.DryRunAll), "its plan is under way"},
		"the orchestrator takes that off":             {orch.Update(t.Context(), bare(shops), client.DryRunAll), ""},
		"what has nothing to do with plans":           {eve.Update(t.Context(), labelled(other), client.DryRunAll), ""},
		"the orchestrator asks itself":                {orch.Update(t.Context(), asking(o, func(s fields) { s["direction"] = "Abort" }), client.DryRunAll), "the orchestrator must not change the spec"},
		"somebody asks it":                            {eve.Update(t.Context(), asking(o, func(s fields) { s["direction"] = "Abort" }), client.DryRunAll), ""},
		"somebody takes its finalizer off":            {eve.Update(t.Context(), bare(o), client.DryRunAll), "its plan is under way"},
		"the orchestrator takes it off":               {orch.Update(t.Context(), bare(o), client.DryRunAll), ""},
	} {
		refusedWith(t, name, c.err, c.refused)
	}
	for _, o := range []*unstructured.Unstructured{o, shops} {
		if err := orch.Update(t.Context(), bare(o)); err != nil {
			t.Error(err)
		}
	}
}

func asking(o *unstructured.Unstructured, change func(fields)) *unstructured.Unstructured {
	o = o.DeepCopy()
	change(o.Object["spec"].(fields))
	return o
}

func bare(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetFinalizers(nil)
	return o
}

// The API server writes down who has set each request, whatever clients say about that, and only for what has changed.
func TestRequestsNameTheirUsers(t *testing.T) {
	owner := declarable(t)
	by := func(o *unstructured.Unstructured, field string) string {
		return o.GetAnnotations()[records.RequesterAnnotation(field)]
	}
	o := migration("asked", func(s fields) { delete(s, "approvedHash") })
	forged := map[string]string{"mine": "stays", records.RequesterAnnotation(plans.ApprovalField): "anna", records.RequesterAnnotation(plans.DirectionField): "anna"}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		trial := o.DeepCopy()
		err := as(t, "eve").Create(ctx, trial, client.DryRunAll)
		return by(trial, plans.DirectionField) == "eve", err
	})
	if err != nil {
		t.Fatalf("the policy is not in force: %v", err)
	}
	o.SetAnnotations(forged)
	if err := as(t, "eve").Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Delete(context.Background(), o) })
	said := func() [4]string {
		return [4]string{by(o, plans.ApprovalField), by(o, plans.DirectionField), by(o, plans.RequestField), by(o, plans.PausedField)}
	}
	for _, c := range []struct {
		what, user string
		change     func(o *unstructured.Unstructured)
		want       [4]string
	}{
		{"eve has created it", "eve", func(*unstructured.Unstructured) {}, [4]string{"", "eve", "", ""}},
		{"anna approves", "anna", func(o *unstructured.Unstructured) { o.Object["spec"].(fields)["approvedHash"] = "abc123" }, [4]string{"anna", "eve", "", ""}},
		{"eve blames ben", "eve", func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{records.RequesterAnnotation(plans.ApprovalField): "ben", records.RequesterAnnotation(plans.RequestField): "ben"})
		}, [4]string{"anna", "eve", "", ""}},
		{"eve takes the names off", "eve", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }, [4]string{"anna", "eve", "", ""}},
		{"eve asks, as ben", "eve", func(o *unstructured.Unstructured) {
			o.Object["spec"].(fields)["request"] = fields{"id": "1", "resume": true}
			o.SetAnnotations(map[string]string{records.RequesterAnnotation(plans.RequestField): "ben"})
		}, [4]string{"anna", "eve", "eve", ""}},
		{"ben pauses", "ben", func(o *unstructured.Unstructured) { o.Object["spec"].(fields)["paused"] = true }, [4]string{"anna", "eve", "eve", "ben"}},
		{"anna aborts", "anna", func(o *unstructured.Unstructured) { o.Object["spec"].(fields)["direction"] = "Abort" }, [4]string{"anna", "anna", "eve", "ben"}},
		{"the orchestrator adds its finalizer", account, func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/test"}) }, [4]string{"anna", "anna", "eve", "ben"}},
		{"and takes it off", account, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) }, [4]string{"anna", "anna", "eve", "ben"}},
	} {
		c.change(o)
		if err := as(t, c.user).Update(t.Context(), o); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if got := said(); got != c.want {
			t.Errorf("%s: %q, expected %q", c.what, got, c.want)
		}
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+records.RequesterAnnotation(plans.PausedField)+`":"anna"}},"spec":{"paused":false}}`))
	if err := as(t, "eve").Patch(t.Context(), o, patch); err != nil || by(o, plans.PausedField) != "eve" {
		t.Errorf("a patch of eve: %q, %v", by(o, plans.PausedField), err)
	}
}
