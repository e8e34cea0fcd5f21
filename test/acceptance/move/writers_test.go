package move_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// The kinds that identify other writers of a set. Their controllers do not run here: the checks read what
// these controllers, and users, leave on objects.
var (
	scaledObject  = schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}
	vertical      = schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}
	application   = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"}
	kustomization = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
	helmRelease   = schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}
)

// learns installs a custom kind in the cluster of an end.
func (s *migration) learns(on *end, kind schema.GroupVersionKind) {
	s.t.Helper()
	plural := strings.ToLower(kind.Kind) + "s"
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{
			"name":        plural + "." + kind.Group,
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for tests"},
		},
		"spec": map[string]any{
			"group": kind.Group, "scope": "Namespaced", "names": map[string]any{"kind": kind.Kind, "plural": plural},
			"versions": []any{map[string]any{
				"name": kind.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
	if err := on.Create(s.t.Context(), definition); client.IgnoreAlreadyExists(err) != nil {
		s.t.Fatal(err)
	}
	s.eventually(kind.Kind+" is served", func(ctx context.Context) bool {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return on.List(ctx, &list, client.InNamespace(on.namespace)) == nil
	})
}

func custom(on *end, kind schema.GroupVersionKind, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(on.namespace)
	o.SetName(name)
	return o
}

// writer is another writer of a set.
type writer struct {
	name, check string
	level       check.Level
	// appears creates the traces of the writer on one side, and returns a function that removes them.
	appears func(*migration, *end) (gone func())
	// says has %c for the context of the side and %n for its namespace.
	says []string
	// quiet carries out the remedy.
	quiet func(*migration, *end)
}

// patched changes the set of a side, and returns a function that reverts the change.
func patched(s *migration, on *end, patch, back string) func() {
	s.change(on, &appsv1.StatefulSet{}, "web", patch)
	return func() { s.change(on, &appsv1.StatefulSet{}, "web", back) }
}

// both returns a function that runs both.
func both(a, b func()) func() { return func() { a(); b() } }

func (s *migration) changeCustom(on *end, kind schema.GroupVersionKind, name, patch string) {
	s.t.Helper()
	s.change(on, custom(on, kind, name, nil), name, patch)
}

func writers() []writer {
	target := func(kind string) map[string]any {
		return map[string]any{kind: map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}}
	}
	tracked := func(s *migration, on *end) func() {
		return both(
			s.put(on, custom(on, application, "shop", map[string]any{"syncPolicy": map[string]any{"automated": map[string]any{"selfHeal": true}}})),
			patched(s, on, `{"metadata":{"annotations":{"argocd.argoproj.io/tracking-id":"`+on.namespace+`_shop:apps/StatefulSet:`+on.namespace+`/web"}}}`,
				`{"metadata":{"annotations":{"argocd.argoproj.io/tracking-id":null}}}`))
	}
	argo := []string{
		"Application %n/shop syncs it by itself", ` --context %c -n %n patch application shop --type merge -p '{"spec":{"syncPolicy":{"automated":null}}}'`,
		"argocd app set %n/shop --sync-policy none", "name: web, jsonPointers: [/spec/replicas, /spec/ordinals, /spec/persistentVolumeClaimRetentionPolicy]}", "syncOptions: [RespectIgnoreDifferences=true]",
	}
	kustomized := func(s *migration, on *end) func() {
		return both(s.put(on, custom(on, kustomization, "apps", map[string]any{})),
			patched(s, on, `{"metadata":{"labels":{"kustomize.toolkit.fluxcd.io/name":"apps","kustomize.toolkit.fluxcd.io/namespace":"`+on.namespace+`"}}}`,
				`{"metadata":{"labels":{"kustomize.toolkit.fluxcd.io/name":null,"kustomize.toolkit.fluxcd.io/namespace":null},"annotations":{"kustomize.toolkit.fluxcd.io/reconcile":null}}}`))
	}
	flux := []string{"Kustomization %n/apps applies it", " --context %c -n %n suspend kustomization apps", " --context %c -n %n annotate statefulset web kustomize.toolkit.fluxcd.io/reconcile=disabled"}
	return []writer{
		{name: "KEDA", check: "keda", level: check.Fail, appears: func(s *migration, on *end) func() {
			return s.put(on, custom(on, scaledObject, "web-scaler", target("scaleTargetRef")))
		}, says: []string{"ScaledObject web-scaler of KEDA", " --context %c -n %n annotate scaledobject web-scaler --overwrite autoscaling.keda.sh/paused=true"}, quiet: func(s *migration, on *end) {
			s.changeCustom(on, scaledObject, "web-scaler", `{"metadata":{"annotations":{"autoscaling.keda.sh/paused":"true"}}}`)
		}},
		{name: "a VerticalPodAutoscaler", check: "vertical-autoscaler", level: check.Warn, appears: func(s *migration, on *end) func() {
			return s.put(on, custom(on, vertical, "web", target("targetRef")))
		}, says: []string{"evicts its pods (updateMode Auto)", ` --context %c -n %n patch verticalpodautoscaler web --type merge -p '{"spec":{"updatePolicy":{"updateMode":"Off"}}}'`}, quiet: func(s *migration, on *end) {
			s.changeCustom(on, vertical, "web", `{"spec":{"updatePolicy":{"updateMode":"Off"}}}`)
		}},
		{name: "Argo CD, until its sync is off", check: "argocd", level: check.Fail, appears: tracked, says: argo, quiet: func(s *migration, on *end) {
			s.changeCustom(on, application, "shop", `{"spec":{"syncPolicy":{"automated":null}}}`)
		}},
		{name: "Argo CD, until it ignores what moves", check: "argocd", level: check.Fail, appears: tracked, says: argo, quiet: func(s *migration, on *end) {
			s.changeCustom(on, application, "shop", `{"spec":{"syncPolicy":{"syncOptions":["RespectIgnoreDifferences=true"]},"ignoreDifferences":[{"group":"apps","kind":"StatefulSet","jsonPointers":["/spec/replicas","/spec/ordinals","/spec/persistentVolumeClaimRetentionPolicy"]}]}}`)
		}},
		{name: "Flux, until it is suspended", check: "flux", level: check.Fail, appears: kustomized, says: flux, quiet: func(s *migration, on *end) {
			s.changeCustom(on, kustomization, "apps", `{"spec":{"suspend":true}}`)
		}},
		{name: "Flux, until it leaves the set alone", check: "flux", level: check.Fail, appears: kustomized, says: flux, quiet: func(s *migration, on *end) {
			s.change(on, &appsv1.StatefulSet{}, "web", `{"metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/reconcile":"disabled"}}}`)
		}},
		{name: "a HelmRelease", check: "flux", level: check.Fail, appears: func(s *migration, on *end) func() {
			return both(s.put(on, custom(on, helmRelease, "db", map[string]any{})),
				patched(s, on, `{"metadata":{"labels":{"helm.toolkit.fluxcd.io/name":"db","helm.toolkit.fluxcd.io/namespace":"`+on.namespace+`"}}}`,
					`{"metadata":{"labels":{"helm.toolkit.fluxcd.io/name":null,"helm.toolkit.fluxcd.io/namespace":null}}}`))
		}, says: []string{"HelmRelease %n/db applies it", " --context %c -n %n suspend helmrelease db"}, quiet: func(s *migration, on *end) {
			s.changeCustom(on, helmRelease, "db", `{"spec":{"suspend":true}}`)
		}},
		{name: "a mark of what is not there", check: "writers-unseen", level: check.Fail, appears: func(s *migration, on *end) func() {
			return patched(s, on, `{"metadata":{"labels":{"kustomize.toolkit.fluxcd.io/name":"gone","kustomize.toolkit.fluxcd.io/namespace":"flux-system"}}}`,
				`{"metadata":{"labels":{"kustomize.toolkit.fluxcd.io/name":null,"kustomize.toolkit.fluxcd.io/namespace":null},"annotations":{"kustomize.toolkit.fluxcd.io/reconcile":null}}}`)
		}, says: []string{"there is no such Kustomization", "--ignore writers-unseen", " --context %c -n flux-system suspend kustomization gone"}, quiet: func(s *migration, on *end) {
			s.change(on, &appsv1.StatefulSet{}, "web", `{"metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/reconcile":"disabled"}}}`)
		}},
		{name: "Helm", check: "helm", level: check.Warn, appears: func(s *migration, on *end) func() {
			return patched(s, on, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm"},"annotations":{"meta.helm.sh/release-name":"db","meta.helm.sh/release-namespace":"`+on.namespace+`"}}}`,
				`{"metadata":{"labels":{"app.kubernetes.io/managed-by":null},"annotations":{"meta.helm.sh/release-name":null,"meta.helm.sh/release-namespace":null}}}`)
		}, says: []string{"Helm release %n/db has it", "helm upgrade db -n %n"}},
	}
}

func TestOthersWhoWriteAreFoundOnBothSides(t *testing.T) {
	inBothModes(t, options{replicas: 1, empty: func(*appsv1.StatefulSet) {}}, func(s *migration) {
		t := s.t
		for _, kind := range []schema.GroupVersionKind{scaledObject, vertical, application, kustomization, helmRelease} {
			for _, on := range []*end{s.source, s.destination} {
				s.learns(on, kind)
			}
		}
		for _, w := range writers() {
			for name, on := range map[string]*end{"source": s.source, "destination": s.destination} {
				t.Run(w.name+" on the "+name, func(t *testing.T) {
					s.t = t
					s.appears(w, on)
				})
			}
		}
		s.t = t
		s.operated()
		s.syncedBudget()
	})
}

func (s *migration) appears(w writer, on *end) {
	s.t.Helper()
	gone := w.appears(s, on)
	defer gone()
	fill := strings.NewReplacer("%c", on.cluster.Name, "%n", on.namespace)
	object := fmt.Sprintf("StatefulSet %s/web in %s", on.namespace, on.cluster.Name)
	says := []string{"  " + string(w.level) + " " + w.check + ": " + object}
	for _, words := range w.says {
		says = append(says, fill.Replace(words))
	}
	code := blocked
	if w.level == check.Warn {
		code = done
	}
	before := s.versions()
	run(s.t, s.planArgs()...).expect(s.t, code, says...)
	same(s.t, "objects", before, s.versions())
	if w.quiet == nil {
		return
	}
	w.quiet(s, on)
	if got := s.checked(done)[w.check]; got.Level != check.Pass {
		s.t.Errorf("it is quiet, but: %+v", got)
	}
}

// operated lets an unknown operator write the replicas of the source.
func (s *migration) operated() {
	s.t.Helper()
	set := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(1)}}}
	set.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	set.SetNamespace(s.source.namespace)
	set.SetName("web")
	if err := s.source.Patch(s.t.Context(), set, client.Apply, client.FieldOwner("db-operator"), client.ForceOwnership); err != nil { //nolint:staticcheck // as an operator does it
		s.t.Fatal(err)
	}
	s.finds("an operator that writes", "field-managers", check.Fail, "db-operator declares, by server-side apply, spec.replicas", "--ignore field-managers")
	s.checked(done, "--ignore", "field-managers")
}

// syncedBudget creates an Application that ignores the set but syncs the budget.
func (s *migration) syncedBudget() {
	s.t.Helper()
	ns := s.source.namespace
	mend := s.put(s.source, custom(s.source, application, "shop-"+ns, map[string]any{
		"syncPolicy":        map[string]any{"automated": map[string]any{}, "syncOptions": []any{"RespectIgnoreDifferences=true"}},
		"ignoreDifferences": []any{map[string]any{"group": "apps", "kind": "StatefulSet", "jsonPointers": []any{"/spec"}}},
	}))
	defer mend()
	s.change(s.source, &policyv1.PodDisruptionBudget{}, "web", `{"metadata":{"annotations":{"argocd.argoproj.io/tracking-id":"shop-`+ns+`:policy/PodDisruptionBudget:`+ns+`/web"}}}`)
	s.finds("an Application that syncs the budget", "argocd", check.Fail, "PodDisruptionBudget "+ns+"/web in east", "jsonPointers: [/spec/minAvailable, /spec/maxUnavailable]}")
}

// A user with only the rights that a move needs is warned of what could not be read, and may continue.
func TestWhatMayNotBeLookedAtIsAWarning(t *testing.T) {
	inBothModes(t, options{replicas: 1}, func(s *migration) {
		for _, on := range []*end{s.source, s.destination} {
			s.learns(on, scaledObject)
		}
		paths := s.mover()
		args := with(s.checkArgs(), "--kubeconfig", paths[0])
		if s.mode == reimport {
			args = with(args, "--to-kubeconfig", paths[1])
		}
		run(s.t, args...).expect(s.t, done, "WARN  permissions", "you may not delete pods in namespace "+s.source.namespace, "WARN  keda", "ScaledObjects of namespace "+s.source.namespace+" on the source: you may not list them",
			"WARN  nodes-fit", "you may not list the pods that run there", "0 failed")
	})
}

// mover returns the kubeconfigs of an account that has, on each side, the rights that a move needs and no
// others.
func (s *migration) mover() (paths []string) {
	s.t.Helper()
	p := s.plan()
	for n, on := range []*end{s.source, s.destination} {
		who := on
		if s.mode == rebind {
			who = s.source
		}
		if n == 0 || who != s.source {
			s.create(who, &corev1.ServiceAccount{ObjectMeta: who.named("mover")})
		}
		rights := access.Rights(p, plans.Sides()[n])
		if n == 1 {
			rights = append(rights, access.ForRecords()...)
		}
		for k, r := range rights {
			s.grant(on, who, fmt.Sprintf("%s-mover-%d-%d", who.namespace, n, k), r)
		}
		paths = append(paths, s.kubeconfigOf(who, "mover"))
	}
	return paths
}

func (s *migration) grant(on, who *end, name string, r part.Right) {
	s.t.Helper()
	rules := []rbacv1.PolicyRule{{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: r.Verbs}}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: who.namespace, Name: "mover"}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	s.create(on, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	if r.ClusterWide {
		s.create(on, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: ref, Subjects: subjects})
		return
	}
	namespace := on.namespace
	if r.Namespace != "" {
		namespace = r.Namespace
	}
	s.create(on, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: ref, Subjects: subjects})
}

// plan writes a plan file and reads it.
func (s *migration) plan() *plans.Plan {
	s.t.Helper()
	s.planned()
	raw, err := os.ReadFile(s.planFile)
	if err != nil {
		s.t.Fatal(err)
	}
	p, err := plans.DecodePlan(raw)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}
