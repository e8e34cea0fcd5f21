package move_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// tenant is a user who may write StatefulSetMigrations in the namespace of their set, and nothing else.
type tenant struct {
	*migration
	client.Client
	kubeconfig string
}

func (s *migration) tenant() *tenant {
	s.t.Helper()
	meta := s.source.named("tenant")
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"stsmigrate.dev"}, Resources: []string{"statefulsetmigrations"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
	}}}
	s.create(s.source, role)
	s.create(s.source, &corev1.ServiceAccount{ObjectMeta: meta})
	s.create(s.source, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
	})
	path := s.kubeconfigOf(s.source, "tenant")
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		s.t.Fatal(err)
	}
	by, err := client.New(config, client.Options{Scheme: clusters.Scheme()})
	if err != nil {
		s.t.Fatal(err)
	}
	return &tenant{migration: s, Client: by, kubeconfig: path}
}

// asks requests the move of set web from the namespace of the source into that of the destination.
func (w *tenant) asks(name string) {
	w.t.Helper()
	o := records.NewDeclared(w.source.namespace, name)
	o.Object["spec"] = map[string]any{"source": map[string]any{"name": "web"}, "destination": map[string]any{"namespace": w.destination.namespace}}
	if err := w.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// sees waits until the status of the object satisfies is, as the tenant reads it.
func (w *tenant) sees(what string, is func(*records.Declared) bool) (d *records.Declared) {
	w.t.Helper()
	w.eventually(what, func(ctx context.Context) bool {
		var err error
		d, err = records.ReadDeclared(ctx, w.Client, w.source.namespace, "db")
		return err == nil && d != nil && is(d)
	})
	return d
}

// Two users, each of whom may write StatefulSetMigrations in their own namespace and nothing anywhere else, move their
// sets by one orchestrator, under objects of one name. Neither can touch the object of the other, or speak for the
// namespace of the other, and neither has a right where the records are.
func TestTenantsMoveTheirOwnSets(t *testing.T) {
	t.Parallel()
	all := []*tenant{}
	for range 2 {
		s := newMigration(t, rebind, options{replicas: 2})
		s.learnsMigrations(s.source)
		all = append(all, s.tenant())
	}
	home := newEnd(t, bed.East, all[0].source.namespace+"-home")
	uid, err := clusters.ClusterUID(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	hosted := *all[0].migration
	hosted.destination = home
	hosted.orchestrator("--requests-from=*")
	anna := all[0]

	// Without a word of the destination's namespace, nothing of the set is read.
	anna.asks("db")
	d := anna.sees("the request is refused", func(d *records.Declared) bool { return d.Status.Message != "" })
	if !strings.Contains(d.Status.Message, "may not request a move of namespace "+anna.destination.namespace) {
		t.Errorf("%q", d.Status.Message)
	}
	run(t, "status", "db", "--kubeconfig", anna.kubeconfig, "-n", anna.source.namespace).expect(t, failed, "may not request a move of namespace")
	agree := func(w *tenant) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: w.destination.named(access.ConsentMap), Data: map[string]string{
			"requests-from": fmt.Sprintf("%s/%s", uid, w.source.namespace), "moves-from": "* */*/* plan=* hash=* until=*",
		}}
	}
	for n, w := range all {
		w.create(w.destination, agree(w))
		w.create(w.source, &corev1.ConfigMap{ObjectMeta: w.source.named(access.ConsentMap), Data: map[string]string{"moves-to": "* */*/* plan=* hash=* until=*"}})
		if w == anna { // a change has the plan made at once, and not in a minute
			w.patches(records.NewDeclared(w.source.namespace, "db"), `{"spec":{"maxUnavailable":1}}`)
		} else {
			w.asks("db")
		}
		o, p := w.approves()
		w.isKeptFrom(all[1-n], home, o, p)
		w.moves(home, p)
		// The next plan of this name is made of a new object.
		if err := w.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		w.eventually("the object is gone", func(ctx context.Context) bool {
			gone, err := records.ReadDeclared(ctx, w.Client, w.source.namespace, "db")
			return err == nil && gone == nil
		})
	}
}

func (w *tenant) patches(o client.Object, patch string) {
	w.t.Helper()
	if err := w.Patch(w.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

// approves approves the plan that the object shows, and has it wait.
func (w *tenant) approves() (client.Object, *plans.Plan) {
	w.t.Helper()
	d := w.sees("there is a plan", func(d *records.Declared) bool { return d.Status.State == plans.StatePlanReady })
	p, err := plans.DecodePlan([]byte(d.Status.PlanFile))
	if err != nil || p.Hash != d.Status.Hash || p.Name != w.source.namespace+".db" {
		w.t.Fatalf("the object shows %q: %v", d.Status.PlanFile, err)
	}
	w.patches(d.Object, fmt.Sprintf(`{"spec":{"approvedHash":%q,"paused":true}}`, p.Hash))
	w.sees("it is approved", func(d *records.Declared) bool {
		return d.Status.State == plans.StatePaused || d.Status.State == plans.StatePlanned
	})
	return d.Object, p
}

// isKeptFrom tries what another tenant could do about a plan.
func (w *tenant) isKeptFrom(other *tenant, home *end, o client.Object, p *plans.Plan) {
	w.t.Helper()
	again, _ := o.DeepCopyObject().(client.Object)
	for what, err := range map[string]error{
		"reads it":         other.Get(w.t.Context(), client.ObjectKeyFromObject(o), again),
		"deletes it":       other.Delete(w.t.Context(), again),
		"aborts it":        other.Patch(w.t.Context(), again, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"direction":"Abort"}}`))),
		"reads its record": other.Get(w.t.Context(), home.key(records.RecordName(p.Name)), &corev1.ConfigMap{}),
	} {
		if !apierrors.IsForbidden(err) {
			w.t.Errorf("another tenant %s: %v", what, err)
		}
	}
}

// moves moves the set and finalizes the plan, by commands with the rights of the tenant.
func (w *tenant) moves(home *end, p *plans.Plan) {
	w.t.Helper()
	s, t, before := w.migration, w.t, w.state(w.source)
	own := func(verb string, more ...string) []string {
		return append([]string{verb, "db", "--kubeconfig", w.kubeconfig, "-n", s.source.namespace}, more...)
	}
	run(t, own("status")...).expect(t, done, p.Name, p.Hash)
	run(t, own("wait")...).expect(t, failed, "wait --for=condition=Moved statefulsetmigration/db")
	run(t, own("pause", "--dry-run=server")...).expect(t, done, "nothing was stored")
	run(t, own("resume", "--yes")...).expect(t, done, "the orchestrator answers in its status")
	w.sees("it has moved", func(d *records.Declared) bool { return d.Status.State == plans.StateMoved })
	s.ready(s.destination)
	s.sliceIs(s.source, s.start, 0)
	s.sliceIs(s.destination, s.start, s.replicas)
	run(t, "verify", p.Name, "--kubeconfig", s.source.config(), "-n", home.namespace).expect(t, done, "facts are as the plan and its journal say")
	run(t, own("finalize", "--yes")...).expect(t, done, "has the request")
	w.sees("it is finalized", func(d *records.Declared) bool { return d.Status.State == plans.StateFinalized })
	nothingLost(t, before)
	s.unmarked()
	if !s.gone(s.source, &appsv1.StatefulSet{}, "web") {
		t.Error("the source set is still there")
	}
}
