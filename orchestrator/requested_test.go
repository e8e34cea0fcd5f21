package orchestrator

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/orchestrator/fleet"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// requested returns an Orchestrator that takes requests from all namespaces, and the plan of object web of namespace
// shop. Nothing is stored of that plan.
func requested(t *testing.T) (*Orchestrator, *plans.Plan) {
	t.Helper()
	h, _ := fixture(t)
	h.RequestsFrom = []string{All}
	p := plan(t)
	p.Name, p.ID = "shop.web", "shop.web-abc"
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	return h, p
}

func requestOf(p *plans.Plan) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "stsmigrate", Name: p.Name}}
}

// Two objects of one name have two plans. What is made up in the orchestrator's namespace gets the object of nobody.
func TestEachObjectHasAPlanOfItsOwn(t *testing.T) {
	h, _ := requested(t)
	record := func(plan string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: "any", Labels: map[string]string{plans.PlanLabel: plan}}}
	}
	object := func(namespace string) client.Object {
		o := records.NewDeclared(namespace, "web")
		o.SetLabels(map[string]string{plans.PlanLabel: "mall.web"}) // a user writes what they like
		return o
	}
	for _, c := range []struct {
		of   client.Object
		plan string
	}{
		{object("stsmigrate"), "web"},
		{object("shop"), "shop.web"},
		{object("mall"), "mall.web"},
		{record("web"), "web"},
		{record("shop.web"), "shop.web"},
		{record("stsmigrate.web"), ""},
		{record(""), ""},
	} {
		got := ""
		if all := plansOf(h.Namespace)(t.Context(), c.of); len(all) == 1 && all[0].Namespace == "stsmigrate" {
			got = all[0].Name
		}
		if got != c.plan {
			t.Errorf("%s/%s: plan %q, expected %q", c.of.GetNamespace(), c.of.GetName(), got, c.plan)
		}
		if d := records.NewDeclared("stsmigrate", c.plan); c.of.GetObjectKind().GroupVersionKind() == d.GroupVersionKind() && (d.GetNamespace() != c.of.GetNamespace() || d.GetName() != c.of.GetName()) {
			t.Errorf("the object of plan %s is %s/%s", c.plan, d.GetNamespace(), d.GetName())
		}
	}
}

// The owner of a namespace requests no move of another one, in whichever cluster, unless that says so.
func TestAnObjectSpeaksForItsNamespaceOnly(t *testing.T) {
	h, _ := requested(t)
	sets := func(cluster, namespace string) plans.Ref {
		return plans.Ref{Cluster: types.UID(cluster), Context: "of " + cluster, Namespace: namespace, Name: "web"}
	}
	const shop = "own/shop"
	for name, c := range map[string]struct {
		plan                string
		source, destination plans.Ref
		says                string // namespace mall of either cluster
		refused             string
	}{
		"its own":                             {"shop.web", sets("own", "shop"), sets("own", "shop"), "", ""},
		"from another one":                    {"shop.web", sets("own", "mall"), sets("own", "shop"), "", "may not request a move of namespace mall in cluster of own (source)"},
		"into another one":                    {"shop.web", sets("own", "shop"), sets("own", "mall"), "", "of namespace mall in cluster of own (destination)"},
		"between others":                      {"shop.web", sets("own", "mall"), sets("own", "mall"), "", "of namespace mall"},
		"into another one that says so":       {"shop.web", sets("own", "shop"), sets("own", "mall"), shop, ""},
		"one that names several":              {"shop.web", sets("own", "shop"), sets("own", "mall"), "own/other\n" + shop + "\n", ""},
		"one that names another":              {"shop.web", sets("own", "shop"), sets("own", "mall"), "own/other", "of namespace mall"},
		"one that names another's cluster":    {"shop.web", sets("own", "shop"), sets("own", "mall"), "east/shop", "of namespace mall"},
		"one that names a part":               {"shop.web", sets("own", "shop"), sets("own", "mall"), "own/shop-2", "of namespace mall"},
		"one that wants any":                  {"shop.web", sets("own", "shop"), sets("own", "mall"), "*", "of namespace mall"},
		"the same name elsewhere":             {"mall.web", sets("east", "mall"), sets("own", "mall"), "", "of namespace mall in cluster of east"},
		"the same name elsewhere, which says": {"mall.web", sets("east", "mall"), sets("own", "mall"), "own/mall", ""},
		"of the orchestrator's namespace":     {"web", sets("east", "mall"), sets("own", "mall"), "", ""},
	} {
		on := clusters.Clusters{}
		for _, side := range plans.Sides() {
			b := fake.NewClientBuilder().WithScheme(clusters.Scheme())
			if c.says != "" {
				b = b.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: access.ConsentMap}, Data: map[string]string{"requests-from": c.says}})
			}
			on[side] = b.Build()
		}
		err := spokenFor(t.Context(), h.Fleet.Own, c.plan, map[plans.Side]plans.Ref{plans.Source: c.source, plans.Destination: c.destination}, on)
		if (err == nil) != (c.refused == "") || err != nil && (!strings.Contains(err.Error(), c.refused) || reasons.Of(err) != reasons.NoConsent) {
			t.Errorf("%s: %v, expected %q", name, err, c.refused)
		}
	}
}

// What the orchestrator may look at is not shown to who may not request it: nothing of a set is read before.
func TestNothingOfAnothersSetIsReadForAPlan(t *testing.T) {
	h, p := requested(t)
	var lock sync.Mutex
	var read []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		read = append(read, r.URL.Path)
		lock.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/v1/namespaces/kube-system":
			_, _ = w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"own"}}`))
		case "/api":
			_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
		case "/apis":
			_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
		case "/api/v1":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"namespaces","kind":"Namespace"},{"name":"configmaps","kind":"ConfigMap","namespaced":true}]}`))
		default:
			w.WriteHeader(404)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found","details":{"name":"` + path.Base(r.URL.Path) + `"}}`))
		}
	}))
	defer s.Close()
	h.Fleet = fleet.New(fleet.Setup{Home: &rest.Config{Host: s.URL}, Own: "own", Limits: fleet.Limits{QPS: 1000, Burst: 1000}, Agent: "test"})
	d := plans.Declaration{Spec: plans.Spec{Source: plans.Place{Namespace: "mall", Name: "web"}}}
	if err := h.draft(t.Context(), p.Name, &d); err == nil || !strings.Contains(err.Error(), "an object in namespace shop may not request a move of namespace mall") {
		t.Errorf("%v", err)
	}
	for _, at := range read {
		if strings.Contains(at, "/namespaces/mall/") && !strings.HasSuffix(at, "/configmaps/"+access.ConsentMap) {
			t.Errorf("%s was read", at)
		}
	}
	if len(read) == 0 {
		t.Error("nothing was read at all")
	}
}

// keeps stores a plan, and its journal as a test says it is.
func keeps(t *testing.T, h *Orchestrator, p *plans.Plan, change func(*journal.Journal)) {
	t.Helper()
	store := records.NewStore(h.Live, h.Namespace, p.Name)
	if change == nil {
		if err := store.CreatePlan(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return
	}
	j := journal.New(p)
	j.Detached, j.Observed.Direction = true, plans.Move
	change(j)
	if err := store.Create(t.Context(), p, j); err != nil {
		t.Fatal(err)
	}
}

// Who may write an object in another namespace has no right to its record. So an object that goes, or says something else,
// takes with it a record of which nothing was begun. What was begun stays.
func TestTheRecordFollowsItsObject(t *testing.T) {
	unapproved := func(d *plans.Declaration) { d.ApprovedHash = "" }
	otherwise := func(d *plans.Declaration) { d.ApprovedHash, d.Window = "", 7 }
	approved := func(*plans.Declaration) {}
	untouched := func(*journal.Journal) {}
	underWay := func(j *journal.Journal) { j.Epoch, j.Begun = 1, 1 }
	for name, c := range map[string]struct {
		journal func(*journal.Journal) // nil for none
		object  func(*plans.Declaration)
		over    bool
		kept    bool
	}{
		"ready":                            {nil, unapproved, false, true},
		"ready, and the object is gone":    {nil, nil, false, false},
		"ready, and it says another thing": {nil, otherwise, false, false},
		"approved":                         {untouched, approved, false, true},
		"approved, and it is gone":         {untouched, nil, false, false},
		"approved, and it is another one":  {untouched, unapproved, false, false},
		"under way":                        {underWay, approved, false, true},
		"under way, and it is gone":        {underWay, nil, false, true},
		"under way, and another one":       {underWay, otherwise, false, true},
		"over":                             {untouched, approved, true, true},
		"over, and it is gone":             {untouched, nil, true, true},
		"over, and another one":            {untouched, unapproved, true, false},
	} {
		for _, home := range []bool{false, true} {
			h, p := requested(t)
			h.ending = true // nothing is begun
			if home {
				p.Name, p.ID = "db", "db-abc"
				if err := p.Seal(); err != nil {
					t.Fatal(err)
				}
			}
			if keeps(t, h, p, c.journal); c.over {
				err := records.NewStore(h.Live, h.Namespace, p.Name).Change(t.Context(), p, func(j *journal.Journal) error { ended(p, plans.Aborted)(j); return nil })
				if err != nil {
					t.Fatal(err)
				}
			}
			if c.object != nil {
				declare(t, h.Live, p, c.object)
			}
			for range 2 {
				if _, err := h.Reconcile(t.Context(), requestOf(p)); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			for _, o := range []client.Object{h.object(p), journalOf(p)} {
				err := h.Live.Get(t.Context(), client.ObjectKeyFromObject(o), o)
				never := c.journal == nil && o.GetName() == journalOf(p).GetName()
				if there := err == nil; !never && there != (c.kept || home) {
					t.Errorf("%s (home: %t): %s is there: %t, %v", name, home, o.GetName(), there, err)
				}
			}
		}
	}
}

// A plan that another process has begun since the cache was filled keeps its record, and so does one whose journal is lost.
func TestOnlyWhatWasNotBegunIsTakenBack(t *testing.T) {
	h, p := requested(t)
	keeps(t, h, p, func(j *journal.Journal) { j.Epoch, j.Begun = 1, 1 })
	if gone, err := h.retracted(t.Context(), p, nil, nil); gone || err != nil {
		t.Errorf("the cache is old: %t, %v", gone, err)
	}
	if err := h.Live.Delete(t.Context(), journalOf(p)); err != nil {
		t.Fatal(err)
	}
	o := h.object(p)
	if err := h.Live.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	o.Finalizers = []string{records.UnderWay}
	if err := h.Live.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if gone, err := h.retracted(t.Context(), p, nil, nil); gone || err != nil {
		t.Errorf("the journal is lost: %t, %v", gone, err)
	}
	o.Finalizers = nil
	if err := h.Live.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	declare(t, h.Live, p, func(d *plans.Declaration) { d.ApprovedHash = "" })
	if gone, err := h.retracted(t.Context(), p, nil, nil); gone || err != nil {
		t.Errorf("the object is there: %t, %v", gone, err)
	}
	if err := h.Live.Delete(t.Context(), records.NewDeclared(h.Namespace, p.Name)); err != nil {
		t.Fatal(err)
	}
	if gone, err := h.retracted(t.Context(), p, nil, nil); !gone || err != nil {
		t.Errorf("nothing was begun: %t, %v", gone, err)
	}
}

// The object of another namespace shows the whole plan, since its users may not read the record; that of the
// orchestrator's own does not.
func TestAnObjectElsewhereShowsItsPlan(t *testing.T) {
	h, p := requested(t)
	h.ending = true
	keeps(t, h, p, nil)
	declare(t, h.Live, p, func(d *plans.Declaration) { d.ApprovedHash = "" })
	if _, err := h.Reconcile(t.Context(), requestOf(p)); err != nil {
		t.Fatal(err)
	}
	d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
	if err != nil || d == nil {
		t.Fatal(d, err)
	}
	if shown, err := plans.DecodePlan([]byte(d.Status.PlanFile)); err != nil || shown.Hash != p.Hash || d.Status.Hash != p.Hash || d.Status.State != plans.StatePlanReady {
		t.Errorf("%s %s: %q, %v", d.Status.State, d.Status.Hash, d.Status.PlanFile, err)
	}
	if d.Object.GetNamespace() != "shop" || d.Object.GetName() != "web" {
		t.Errorf("its object is %s/%s", d.Object.GetNamespace(), d.Object.GetName())
	}
	if _, err := h.Reconcile(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	if own, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, "web"); err != nil || own.Status.Hash == "" || own.Status.PlanFile != "" {
		t.Errorf("the own one shows %q, %v", own.Status.PlanFile, err)
	}
}

// A namespace from which no requests are taken has no say, and a plan that was requested there is reported and left alone.
func TestNoRequestsAreTakenFromElsewhere(t *testing.T) {
	for _, from := range [][]string{nil, {"mall"}} {
		h, p := requested(t)
		h.RequestsFrom, h.ending = from, true
		declare(t, h.Live, p, func(d *plans.Declaration) { d.ApprovedHash = "" })
		if _, err := h.Reconcile(t.Context(), requestOf(p)); err != nil || len(h.plans) != 0 {
			t.Errorf("%v: it is planned: %v, %v", from, h.plans, err)
		}
		keeps(t, h, p, func(j *journal.Journal) { j.Epoch, j.Begun = 1, 1 })
		if _, err := h.Reconcile(t.Context(), requestOf(p)); err != nil {
			t.Error(err)
		}
		if err := h.unserved(h.Namespace, p); !errors.As(err, new(records.ErrUnreadable)) || !strings.Contains(err.Error(), "from which this orchestrator takes no requests") {
			t.Errorf("%v", err)
		}
		d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
		if err != nil || d.Status.State != "" {
			t.Errorf("%v: its status says %q, %v", from, d.Status.State, err)
		}
		for o, by := range cached("stsmigrate", from).ByObject {
			if _, all := by.Namespaces[""]; all || len(by.Namespaces) != 1+len(from) && o.GetObjectKind().GroupVersionKind().Kind == plans.DeclarationKind {
				t.Errorf("%v: %v are watched", from, by.Namespaces)
			}
		}
	}
}

// A name that no plan can have is reported in the status.
func TestAnObjectWhoseNameIsTooLongIsToldSo(t *testing.T) {
	h, p := requested(t)
	p.Name, p.ID = strings.Repeat("n", 60)+".web", strings.Repeat("n", 60)+".web-abc"
	declare(t, h.Live, p, func(d *plans.Declaration) { d.ApprovedHash = "" })
	if _, err := h.Reconcile(t.Context(), requestOf(p)); err != nil {
		t.Fatal(err)
	}
	d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
	if err != nil || !strings.Contains(d.Status.Message, "it has 64 characters, expected at most 56") {
		t.Errorf("%q, %v", d.Status.Message, err)
	}
	var maps corev1.ConfigMapList
	if err := h.Live.List(t.Context(), &maps); err != nil || slices.ContainsFunc(maps.Items, func(cm corev1.ConfigMap) bool { return strings.Contains(cm.Name, "nnn") }) {
		t.Errorf("%v", err)
	}
	if h.all.Wait(); apierrors.IsNotFound(err) || len(h.news) > 0 {
		t.Error("a plan is made")
	}
}
