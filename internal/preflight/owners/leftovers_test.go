package owners

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

// gitops is a set of Application shop, or one that only has its label, and what the plan copies with it.
type gitops struct {
	notes, labels map[string]string // of all objects of the source
	manager       string
	existed       bool   // whether the destination's objects are the user's
	one           bool   // whether both sides are in one cluster
	automated     any    // the policy of the Application; nil without automated sync
	respects      bool   // whether it ignores the fields that the move writes
	server        string // the cluster that it serves
	name          string // its name in namespace argocd
	made          string // the ApplicationSet that makes it
	helm          bool   // whether the set itself is of another label, which no Application has
}

// inspected returns the input of the check. The Application is in the destination's cluster.
func (g gitops) inspected(t *testing.T) check.Inspection {
	t.Helper()
	i := checktest.Estate{One: g.one}.Inspected(t)
	about := func(namespace, name string, entries ...metav1.ManagedFieldsEntry) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: g.labels, Annotations: g.notes, ManagedFields: entries}
	}
	var written []metav1.ManagedFieldsEntry
	if g.manager != "" {
		written = append(written, entry(g.manager, `{"f:spec":{"f:replicas":{},"f:maxUnavailable":{}}}`, time.Unix(0, 0)))
	}
	i.Now.Set.ObjectMeta = about("shop", "web", written...)
	if g.helm {
		i.Now.Set.Labels = map[string]string{InstanceLabel: "a-release"}
	}
	i.Now.SourceBudget = &policyv1.PodDisruptionBudget{ObjectMeta: about("shop", "web", written...)}
	i.Plan.Dependencies = []plans.Dependency{{Kind: "ConfigMap", Name: "settings"}, {Kind: "Secret", Name: "web-tls", Required: "made by Certificate web"}}
	here := []client.Object{&corev1.ConfigMap{ObjectMeta: about("shop", "settings")}, &corev1.Secret{ObjectMeta: about("shop", "web-tls")}}
	if g.existed {
		i.Plan.Seen.DestinationUID, i.Plan.Budget.DestinationExisted = "u", true
		here = append(here, &corev1.ConfigMap{ObjectMeta: about("mall", "settings")})
	}
	app := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"destination": map[string]any{"server": g.server}, "syncPolicy": map[string]any{}}}}
	kind := Application().WithVersion("v1alpha1")
	app.SetGroupVersionKind(kind)
	app.SetNamespace("argocd")
	app.SetName(g.name)
	if g.made != "" {
		app.SetOwnerReferences([]metav1.OwnerReference{{Kind: "ApplicationSet", Name: g.made}})
	}
	if g.automated != nil {
		_ = unstructured.SetNestedField(app.Object, g.automated, "spec", "syncPolicy", "automated")
	}
	if g.respects {
		_ = unstructured.SetNestedStringSlice(app.Object, []string{"RespectIgnoreDifferences=true"}, "spec", "syncPolicy", "syncOptions")
		_ = unstructured.SetNestedSlice(app.Object, []any{map[string]any{"group": "*", "kind": "*", "jsonPointers": []any{"/spec"}}}, "spec", "ignoreDifferences")
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{kind.GroupVersion()})
	mapper.Add(kind, meta.RESTScopeNamespace)
	for _, k := range []schema.GroupVersionKind{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Secret")} {
		mapper.Add(k, meta.RESTScopeNamespace)
	}
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	argo := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithRESTMapper(mapper).WithIndex(app, "metadata.name", byName).WithObjects(app)
	i.On = clusters.Clusters{}
	if g.one {
		one := argo.WithObjects(here...).Build()
		i.On[plans.Source], i.On[plans.Destination] = one, one
	} else {
		i.On[plans.Source] = fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(here...).Build()
		i.On[plans.Destination] = argo.Build()
	}
	i.Pair.On = i.On
	return i
}

// An Application that tracks by label takes every object of its cluster with its name in the label for its own. The
// copies have the labels of the source's objects, and are not in Git: automated sync would delete the destination set
// with every ordinal that has arrived.
func TestNoApplicationMayDeleteTheCopies(t *testing.T) {
	type object = map[string]any
	const own = "https://kubernetes.default.svc"
	shop := map[string]string{InstanceLabel: "shop"}
	ready := func() gitops {
		return gitops{labels: shop, manager: "argocd-controller", one: true, automated: object{"prune": true}, respects: true, server: own, name: "shop"}
	}
	const copies = "StatefulSet web, PodDisruptionBudget web, ConfigMap settings"
	const prunes = "...StatefulSet mall/web...Application argocd/shop prunes by itself...(" + copies + ")..."
	const off = `kubectl --context my-east -n argocd patch application shop --type merge -p '{"spec":{"syncPolicy":{"automated":{"prune":false}}}}'...argocd app set argocd/shop --auto-prune=false`
	for name, c := range map[string]struct {
		change func(*gitops)
		want   []string
	}{
		"the fields are ignored, and the copies are pruned": {func(*gitops) {}, []string{"FAIL" + prunes + off}},
		"it prunes nothing by itself":                       {func(g *gitops) { g.automated = object{"prune": false} }, []string{"WARN...deletes, when it is synced with prune,...(" + copies + ")...do not sync it with prune"}},
		"automated sync is off":                             {func(g *gitops) { g.automated = object{"prune": true, "enabled": false} }, []string{"WARN...when it is synced with prune"}},
		"nothing is automated":                              {func(g *gitops) { g.automated = nil }, []string{"WARN...when it is synced with prune"}},
		"an ApplicationSet makes it":                        {func(g *gitops) { g.made = "all" }, []string{"FAIL" + prunes + off + "...ApplicationSet all makes this"}},
		"it tracks by annotation": {func(g *gitops) {
			g.notes = map[string]string{tracking: "shop:apps/StatefulSet:shop/web"}
			g.manager = ""
		}, nil},
		"the label is Helm's alone":                {func(g *gitops) { g.manager = "" }, nil},
		"there is another name in the label":       {func(g *gitops) { g.labels = map[string]string{InstanceLabel: "web"} }, nil},
		"the set is Helm's, and the budget is not": {func(g *gitops) { g.helm = true }, []string{"FAIL...(PodDisruptionBudget web, ConfigMap settings)..." + off}},
		"the objects forbid it": {func(g *gitops) {
			g.notes = map[string]string{"argocd.argoproj.io/sync-options": "Validate=false, Prune=false"}
		}, nil},
		"the destination's objects are the user's": {func(g *gitops) { g.existed = true }, nil},
		"its namespace is in the label":            {func(g *gitops) { g.labels = map[string]string{InstanceLabel: "argocd_shop"} }, []string{"FAIL" + prunes + off}},
		"its namespace is another one":             {func(g *gitops) { g.labels = map[string]string{InstanceLabel: "team_shop"} }, nil},
		// Each cluster may have an Argo CD of its own, with an Application of the same name.
		"in another cluster, and it serves that":         {func(g *gitops) { g.one = false }, []string{"FAIL" + prunes + strings.Replace(off, "east", "west", 1)}},
		"in another cluster, with a label of Helm's":     {func(g *gitops) { g.one, g.manager = false, "" }, []string{"WARN" + prunes + "where Argo CD tracks by label"}},
		"in another cluster, and it serves the source's": {func(g *gitops) { g.one, g.server = false, "https://east.example.com" }, nil},
		"in another cluster, and it prunes nothing":      {func(g *gitops) { g.one, g.automated = false, object{} }, nil},
		"in another cluster, and no label":               {func(g *gitops) { g.one, g.labels, g.manager = false, nil, "" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := ready()
			c.change(&g)
			i := g.inspected(t)
			found, err := leftovers(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
		})
	}
}

// What the check says of an Application that would revert the move is enough: what a user does then passes.
func TestTheRemedyForArgoCDIsEnough(t *testing.T) {
	g := gitops{labels: map[string]string{InstanceLabel: "shop"}, manager: "argocd-controller", one: true, automated: map[string]any{"prune": true}, name: "shop"}
	const both = "FAIL...syncs it by itself...RespectIgnoreDifferences=true...and then also turn its prune off...--auto-prune=false"
	found, err := Argocd(t.Context(), g.inspected(t))
	if err != nil {
		t.Fatal(err)
	}
	checktest.ExpectFindings(t, found, both, both, "FAIL...prunes by itself")
	g.respects, g.automated = true, map[string]any{"prune": false}
	if found, err = Argocd(t.Context(), g.inspected(t)); err != nil {
		t.Fatal(err)
	}
	checktest.ExpectFindings(t, found, "WARN...when it is synced with prune")
}
