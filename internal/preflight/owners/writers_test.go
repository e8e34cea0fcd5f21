package owners

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

func entry(manager, fields string, at time.Time) metav1.ManagedFieldsEntry {
	t := metav1.NewTime(at)
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &t, FieldsV1: metav1.NewFieldsV1(fields)}
}

func marked(labels, annotations map[string]string, entries ...metav1.ManagedFieldsEntry) guardedObject {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: labels, Annotations: annotations, ManagedFields: entries}}
	return guardedObject{side: plans.Source, group: "apps", kind: "StatefulSet", object: set, fields: []string{"/spec/replicas", "/spec/ordinals"}}
}

func TestMarksOfGitOpsToolsAreRead(t *testing.T) {
	applied := func(manager string) metav1.ManagedFieldsEntry {
		return entry(manager, `{"f:spec":{"f:replicas":{}}}`, time.Unix(0, 0))
	}
	twin := func(g guardedObject) guardedObject { g.twin = true; return g }
	id := func(id string) map[string]string { return map[string]string{tracking: id} }
	flux := map[string]string{fluxKustomize + "/name": "apps", fluxKustomize + "/namespace": "flux-system"}
	for _, c := range []struct {
		name string
		guardedObject
		want string // kind namespace/name (sign), …
	}{
		{"nothing", marked(nil, nil), ""},
		{"tracking ID", marked(nil, id("shop:apps/StatefulSet:shop/web")), "Application /shop (annotation " + tracking + ")"},
		{"tracking ID with a namespace", marked(nil, id("team_shop:apps/StatefulSet:shop/web")), "Application team/shop (annotation " + tracking + ")"},
		{"tracking ID of another object", marked(nil, id("shop:apps/StatefulSet:mall/web")), ""},
		{"tracking ID of an owner", marked(nil, id("shop:example.com/Database:shop/web")), ""},
		{"malformed tracking ID", marked(nil, id("shop")), ""},
		{"instance label alone", marked(map[string]string{"app.kubernetes.io/instance": "shop"}, nil), ""},
		{"instance label and manager", marked(map[string]string{"app.kubernetes.io/instance": "shop"}, nil, applied("argocd-controller")), "Application /shop (field manager argocd-controller)"},
		{"manager alone", marked(nil, nil, applied("argocd-controller")), "Application / (field manager argocd-controller)"},
		{"manager of the status only", marked(nil, nil, entry("argocd-controller", `{"f:status":{}}`, time.Unix(0, 0))), ""},
		{"Kustomization", marked(flux, nil), "Kustomization flux-system/apps (label " + fluxKustomize + "/name)"},
		{"HelmRelease", marked(map[string]string{fluxHelm + "/name": "web", fluxHelm + "/namespace": "shop"}, nil), "HelmRelease shop/web (label " + fluxHelm + "/name)"},
		{"HelmRelease, by manager", marked(nil, nil, applied("helm-controller")), "HelmRelease / (field manager helm-controller)"},
		{"copied marks", twin(marked(flux, id("shop:apps/StatefulSet:shop/web"))), ""},
		{"copied marks that somebody stands by", twin(marked(flux, nil, applied("kustomize-controller"))), "Kustomization flux-system/apps (field manager kustomize-controller)"},
	} {
		var got []string
		for _, m := range c.marks() {
			got = append(got, m.By.Kind+" "+m.namespace+"/"+m.Name+" ("+m.sign+")")
		}
		if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestAnArgoCDApplicationMustIgnoreEveryField(t *testing.T) {
	type object = map[string]any
	type list = []any
	ignore := func(fields ...any) object {
		return object{"group": "apps", "kind": "StatefulSet", "name": "web", "jsonPointers": list(fields)}
	}
	app := func(automated any, options list, ignored ...any) object {
		policy := object{"syncOptions": options}
		if automated != nil {
			policy["automated"] = automated
		}
		return object{"spec": object{"syncPolicy": policy, "ignoreDifferences": list(ignored)}}
	}
	respect := list{"CreateNamespace=true", "RespectIgnoreDifferences=true"}
	both := ignore("/spec/replicas", "/spec/ordinals")
	elsewhere := ignore("/spec/replicas", "/spec/ordinals")
	elsewhere["namespace"] = "mall"
	whole := object{"group": "*", "kind": "*", "jsonPointers": list{"/spec"}}
	for _, c := range []struct {
		name  string
		app   object
		notes map[string]string
		want  string
	}{
		{"no policy", object{"spec": object{}}, nil, ""},
		{"not automated", app(nil, nil), nil, ""},
		{"automated, switched off", app(object{"enabled": false}, nil), nil, ""},
		{"automated", app(object{}, nil), nil, "syncs it by itself"},
		{"automated without self-heal", app(object{"selfHeal": false}, nil), nil, "syncs it by itself"},
		{"not reconciled at all", app(object{}, nil), map[string]string{"argocd.argoproj.io/skip-reconcile": "true"}, ""},
		{"all ignored and respected", app(object{"selfHeal": true}, respect, both), nil, ""},
		{"in two entries", app(object{}, respect, ignore("/spec/replicas"), ignore("/spec/ordinals")), nil, ""},
		{"by a whole parent", app(object{}, respect, whole), nil, ""},
		{"ignored, not respected", app(object{}, list{}, both), nil, "do not bind a sync without RespectIgnoreDifferences"},
		{"only replicas", app(object{}, respect, ignore("/spec/replicas")), nil, "syncs it by itself"},
		{"a longer field of that beginning", app(object{}, respect, ignore("/spec/rep", "/spec/ordinals")), nil, "syncs it by itself"},
		{"in another namespace", app(object{}, respect, elsewhere), nil, "syncs it by itself"},
	} {
		got := busy(c.app, c.notes, marked(nil, nil))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, expected %q", c.name, got, c.want)
		}
	}
}

func TestWhoWritesReplicasIsToldFromPeople(t *testing.T) {
	made := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	now := made.Add(48 * time.Hour)
	replicas := `{"f:spec":{"f:replicas":{},"f:template":{}}}`
	scaled := entry("kube-controller-manager", replicas, now)
	scaled.Subresource = "scale"
	declares := func(manager string) metav1.ManagedFieldsEntry {
		e := entry(manager, replicas, made)
		e.Operation, e.Time = metav1.ManagedFieldsOperationApply, nil // it has changed nothing yet
		return e
	}
	for _, c := range []struct {
		entry metav1.ManagedFieldsEntry
		want  string
		busy  bool
	}{
		{entry("kubectl-client-side-apply", replicas, now), "", false},
		{entry("kubectl", replicas, now), "", false},
		{entry("stsmigrate", replicas, now), "", false},
		{entry("helm", replicas, now), "", false},
		{entry("kustomize-controller", replicas, now), "", false},
		{entry("pulumi-kubernetes", replicas, now), "", false},
		{declares("pulumi-kubernetes-1a2b3c4d"), "", false},
		{declares("pulumi-resource-kubernetes.exe"), "", false},
		{declares("pulumi-kubernetes-operator"), "pulumi-kubernetes-operator declares, by server-side apply, spec.replicas", true},
		{declares("kluctl"), "kluctl declares, by server-side apply, spec.replicas", false},
		{declares("kapp"), "kapp declares, by server-side apply, spec.replicas", false},
		{entry("werf", replicas, now), "werf wrote spec.replicas at 2026-01-03T12:00:00Z", false},
		{scaled, "", false},
		{entry("kube-controller-manager", `{"f:status":{"f:replicas":{}}}`, now), "", false},
		{entry("kubectlish", replicas, made), "kubectlish wrote spec.replicas at 2026-01-01T12:00:00Z", false},
		{entry("db-operator", replicas, made), "db-operator wrote spec.replicas at 2026-01-01T12:00:00Z", false},
		{entry("db-operator", replicas, now.Add(-2*time.Hour)), "db-operator wrote spec.replicas at 2026-01-03T10:00:00Z", false},
		{entry("db-operator", replicas, now.Add(-time.Minute)), "db-operator wrote spec.replicas at 2026-01-03T11:59:00Z", true},
		{declares("db-operator"), "db-operator declares, by server-side apply, spec.replicas", true},
		{entry("db-operator", `{"f:spec":{"f:ordinals":{"f:start":{}}}}`, now), "db-operator wrote spec.ordinals at 2026-01-03T12:00:00Z", true},
		{entry("db-operator", `{"f:spec":{"f:template":{}}}`, now), "", false},
	} {
		got := managers([]metav1.ManagedFieldsEntry{c.entry}, metav1.NewTime(made), now.Sub)
		switch {
		case c.want == "" && len(got) > 0:
			t.Errorf("%s: %v, expected that it passes", c.entry.Manager, got)
		case c.want != "" && (len(got) != 1 || got[0].String() != c.want || got[0].busy != c.busy):
			t.Errorf("%s: %v, expected %q, busy %t", c.entry.Manager, got, c.want, c.busy)
		}
	}
}

// The creator of a set has written its replicas, and need not write them again.
func TestMakingASetLatelyIsNotWritingIt(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	made := now.Add(-10 * time.Minute)
	for at, busy := range map[time.Time]bool{made: false, made.Add(time.Minute): true} {
		got := managers([]metav1.ManagedFieldsEntry{entry("db-operator", `{"f:spec":{"f:replicas":{}}}`, at)}, metav1.NewTime(made), now.Sub)
		if len(got) != 1 || got[0].busy != busy {
			t.Errorf("written %s after the set was made: %+v, expected busy %t", at.Sub(made), got, busy)
		}
	}
}

func TestAScaledObjectIsPausedOnlyWithoutANumber(t *testing.T) {
	const paused, number = "autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas"
	for _, c := range []struct {
		notes map[string]string
		want  bool
	}{
		{nil, false},
		{map[string]string{paused: "true"}, true},
		{map[string]string{paused: "false"}, false},
		{map[string]string{number: "5"}, false},
		{map[string]string{paused: "true", number: "5"}, false},
	} {
		if got := pausedKEDA(c.notes); got != c.want {
			t.Errorf("%v: %t, expected %t", c.notes, got, c.want)
		}
	}
}

// A command reaches the cluster of the finding by the flags of its reader, and not by the context that the plan records.
func TestAnAutoscalerIsDeletedWhereItWasFound(t *testing.T) {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "busy"}}
	hpa.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{Kind: plans.NativeKind, Name: "web"}
	here, there := hpa.DeepCopy(), hpa.DeepCopy()
	here.Namespace, there.Namespace = "shop", "mall"
	checktest.Estate{Here: []client.Object{here}, There: []client.Object{there}}.Finds(
		t, Autoscaler, "FAIL ...\nkubectl --context my-east -n shop delete hpa busy", "FAIL ...\nkubectl --context my-west -n mall delete hpa busy",
	)
}
