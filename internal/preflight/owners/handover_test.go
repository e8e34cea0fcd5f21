package owners

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Whoever has the manifest of the set makes it again, empty, after the end of the move.
func TestWhoWouldMakeTheSetAgainIsNamed(t *testing.T) {
	const made = `{"f:spec":{"f:replicas":{}}}`
	wrote := func(manager string) metav1.ManagedFieldsEntry { return entry(manager, made, time.Unix(0, 0)) }
	declared := func(manager string) metav1.ManagedFieldsEntry {
		e := wrote(manager)
		e.Operation = metav1.ManagedFieldsOperationApply
		return e
	}
	flux := func(group string) map[string]string {
		return map[string]string{group + "/name": "apps", group + "/namespace": "flux-system"}
	}
	helm := func(namespace string) map[string]string {
		return map[string]string{releaseName: "shop", releaseNamespace: namespace}
	}
	for name, c := range map[string]struct {
		labels, notes map[string]string
		entries       []metav1.ManagedFieldsEntry
		plan, end     []string
	}{
		"none": {},
		"Helm": {
			labels: map[string]string{managedBy: "Helm"}, notes: helm("shop"),
			end: []string{"WARN...Helm release shop/shop...helm upgrade shop -n shop` makes StatefulSet shop/web...again once it is gone, with new and empty volumes...namespace mall refuses...after `finalize`...-n mall annotate --overwrite statefulset/web service/peers " + releaseName + "=shop " + releaseNamespace + "=mall...label --overwrite...helm upgrade --install shop CHART -n mall...helm uninstall shop -n shop"},
		},
		"Helm, without its namespace": {labels: map[string]string{managedBy: "Helm"}, notes: map[string]string{releaseName: "shop"}, end: []string{"Helm release shop/shop"}},
		"Argo CD":                     {notes: map[string]string{tracking: "team_shop:apps/StatefulSet:shop/web"}, plan: []string{"WARN...Application team/shop...as long as Git has it in namespace shop, its next sync makes...namespace mall for the set...not before `finalize`"}, end: []string{"Application team/shop"}},
		"Argo CD of another":          {notes: map[string]string{tracking: "shop:apps/StatefulSet:other/web"}},
		"Flux":                        {labels: flux(fluxKustomize), plan: []string{"Kustomization flux-system/apps...flux resume...or it prunes the source set"}, end: []string{"Kustomization"}},
		"a HelmRelease":               {labels: merged(flux(fluxHelm), map[string]string{managedBy: "Helm"}), notes: helm("shop"), plan: []string{"HelmRelease flux-system/apps...targetNamespace: mall...annotate --overwrite statefulset/web"}, end: []string{"HelmRelease"}},
		"Terraform":                   {entries: []metav1.ManagedFieldsEntry{wrote("terraform-provider-kubernetes")}, plan: []string{"terraform-provider-kubernetes...terraform state rm...terraform import kubernetes_stateful_set_v1.web mall/web"}, end: []string{"terraform"}},
		"Pulumi, with its digits":     {entries: []metav1.ManagedFieldsEntry{declared("pulumi-kubernetes-3fab1")}, plan: []string{"pulumi-kubernetes-3fab1...pulumi import"}, end: []string{"pulumi"}},
		"another one that declares":   {entries: []metav1.ManagedFieldsEntry{declared("deployer")}, plan: []string{"deployer...before it applies again"}, end: []string{"deployer"}},
		"another one that wrote":      {entries: []metav1.ManagedFieldsEntry{wrote("deployer")}},
		"a user":                      {notes: map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}, end: []string{"made from a manifest with `kubectl apply`...write namespace mall"}},
		"a user of the server":        {entries: []metav1.ManagedFieldsEntry{declared("kubectl")}, end: []string{"kubectl apply"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := checktest.Estate{One: true, Here: []client.Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "peers", Annotations: helm("shop")}}}}
			i := e.Inspected(t)
			set := i.Now.Set
			set.Labels, set.Annotations, set.ManagedFields = c.labels, c.notes, c.entries
			i.Plan.Dependencies = []plans.Dependency{{Kind: "Service", Name: "peers"}}
			found, err := Handover(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.plan...)
			if found, err = Successors(t.Context(), i, set); err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.end...)
			if len(c.entries) > 0 || name == "a user" {
				return // a copy does not have them
			}
			copied := set.DeepCopy() // when the source set is gone
			copied.Namespace = "mall"
			i.Now.Set = nil
			if found, err = Successors(t.Context(), i, copied); err != nil {
				t.Fatal(err)
			}
			if name != "Helm, without its namespace" {
				checktest.ExpectFindings(t, found, c.end...)
			}
		})
	}
}

func merged(a, b map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// A manifest of a StatefulSet that is given the new namespace makes one beside the slice that has the pods.
func TestAManifestOfAnotherKindMakesNoSecondSet(t *testing.T) {
	for kind, want := range map[string]bool{"": false, plans.SliceKind: true} {
		i := checktest.Estate{Kind: kind}.Inspected(t)
		set := i.Now.Set
		set.Annotations = map[string]string{tracking: "shop:apps/StatefulSet:shop/web", corev1.LastAppliedConfigAnnotation: "{}"}
		planned, err := Handover(t.Context(), i)
		if err != nil || len(planned) != 1 {
			t.Fatal(planned, err)
		}
		ended, err := Successors(t.Context(), i, set)
		if err != nil || len(ended) != 2 {
			t.Fatal(ended, err)
		}
		for _, f := range append(planned, ended...) {
			if said := strings.Contains(f.Remedy, "stsmigrate adopt stss/web -n mall --yes") && strings.Contains(f.Remedy, "second set web"); said != want {
				t.Errorf("kind %q: %s", kind, f.Remedy)
			}
		}
	}
}

func TestTheCheckOfHelmSpeaksOfTheTimeAfterTheMove(t *testing.T) {
	i := checktest.Estate{One: true}.Inspected(t)
	i.Now.Set.Labels, i.Now.Set.Annotations = map[string]string{managedBy: "Helm"}, map[string]string{releaseName: "web", releaseNamespace: "shop"}
	found, err := Helm(t.Context(), i)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	for _, words := range []string{"after `finalize` a release of namespace mall", "after `finalize` the release still has the set", "helm upgrade web -n shop"} {
		if !strings.Contains(found[0].String()+found[0].Remedy, words) {
			t.Errorf("%q is not in %s", words, found[0])
		}
	}
}
