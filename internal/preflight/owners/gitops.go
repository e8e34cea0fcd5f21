package owners

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// guardedObject is an object that a move writes: a set, or the user's budget over its pods.
type guardedObject struct {
	side        plans.Side
	group, kind string
	object      client.Object
	name        string
	// fields are the fields that the move writes, as JSON pointers.
	fields []string
	// twin reports whether the plan made the object after the source's. Its labels and annotations are copies
	// then, and only its field managers show which controller writes it.
	twin bool
}

// guardedObjects lists the objects that a move writes and that others may write too.
func guardedObjects(i check.Inspection) []guardedObject {
	var out []guardedObject
	for side, set := range i.Sets {
		fields := []string{"/spec/replicas", "/spec/ordinals", "/spec/persistentVolumeClaimRetentionPolicy"}
		if declares(set) { // a tool leaves alone what it does not declare
			fields = append(fields, partition)
		}
		out = append(out, guardedObject{
			side: side, group: clusters.ResourceOf(i.Plan.On(side)).Group, kind: i.Plan.On(side).SetKind(), object: set, name: i.Name(side),
			fields: fields,
			twin:   side == plans.Destination && !i.Plan.Existed(),
		})
	}
	for _, side := range plans.Sides() {
		b := map[plans.Side]*policyv1.PodDisruptionBudget{plans.Source: i.Now.SourceBudget, plans.Destination: i.Now.DestinationBudget}[side]
		if b == nil {
			continue
		}
		at := plans.Ref{Context: i.Plan.On(side).Context, Namespace: b.Namespace, Name: b.Name}
		out = append(out, guardedObject{
			side: side, group: "policy", kind: "PodDisruptionBudget", object: b, name: "PodDisruptionBudget " + at.String(),
			fields: []string{"/spec/minAvailable", "/spec/maxUnavailable"},
		})
	}
	return out
}

// Mark shows that a GitOps tool applies an object, and from which object of the tool.
type Mark struct {
	By schema.GroupKind
	// Name is "" where only a field manager shows the tool. namespace is "" where the mark does not name one.
	namespace, Name string
	// sign is the label, annotation or field manager of the mark, in words.
	sign string
	// byLabel reports whether the mark is of an Argo CD that tracks by label.
	byLabel bool
}

const (
	fluxKustomize = "kustomize.toolkit.fluxcd.io"
	fluxHelm      = "helm.toolkit.fluxcd.io"
	tracking      = "argocd.argoproj.io/tracking-id"
)

// Application is the kind from which Argo CD applies objects.
func Application() schema.GroupKind {
	return schema.GroupKind{Group: "argoproj.io", Kind: "Application"}
}

// marks reads the marks of GitOps tools on an object. As in Argo CD itself, its tracking annotation counts
// only if it names this very object. The label app.kubernetes.io/instance, which Helm and users set as well,
// counts only together with Argo CD's field manager.
func (g guardedObject) marks() []Mark {
	var out []Mark
	labels, notes := g.object.GetLabels(), g.object.GetAnnotations()
	if m, ok := g.tracked(notes[tracking]); ok && !g.twin {
		out = append(out, m)
	} else if manager := g.applied("argocd-controller", "argocd-application-controller"); manager != "" {
		m := named(labels[InstanceLabel])
		m.sign, m.byLabel = "field manager "+manager, labels[InstanceLabel] != ""
		out = append(out, m)
	}
	for _, tool := range []struct{ group, kind, manager string }{{fluxKustomize, "Kustomization", "kustomize-controller"}, {fluxHelm, "HelmRelease", "helm-controller"}} {
		m := Mark{By: schema.GroupKind{Group: tool.group, Kind: tool.kind}, sign: "label " + tool.group + "/name"}
		m.namespace, m.Name = labels[tool.group+"/namespace"], labels[tool.group+"/name"]
		manager := g.applied(tool.manager)
		if g.twin || m.Name == "" {
			if manager == "" {
				continue
			}
			m.sign = "field manager " + manager
		}
		out = append(out, m)
	}
	return out
}

// tracked parses a tracking ID: APPLICATION:GROUP/KIND:NAMESPACE/NAME, where the application may be
// NAMESPACE_NAME.
func (g guardedObject) tracked(id string) (Mark, bool) {
	part := strings.Split(id, ":")
	if len(part) != 3 || part[1] != g.group+"/"+g.kind || part[2] != g.object.GetNamespace()+"/"+g.object.GetName() {
		return Mark{}, false
	}
	m := Mark{By: Application(), Name: part[0], sign: "annotation " + tracking}
	if namespace, name, ok := strings.Cut(part[0], "_"); ok {
		m.namespace, m.Name = namespace, name
	}
	return m, m.Name != ""
}

// applied returns the first of these field managers that has written the object's spec, or "".
func (g guardedObject) applied(managers ...string) string {
	for _, e := range g.object.GetManagedFields() {
		if slices.Contains(managers, e.Manager) && e.FieldsV1 != nil && plans.Owns(e.FieldsV1.GetRawBytes(), []string{"spec"}) {
			return e.Manager
		}
	}
	return ""
}

// applier is a mark on a guarded object, together with the tool's object that the mark names.
type applier struct {
	guardedObject
	Mark
	tool *unstructured.Unstructured // nil if it could not be read
	at   plans.Side                 // the side of its cluster
	// unseen is the reason why tool is nil.
	unseen string
}

// appliers reads the objects that the marks name: first in the cluster of the marked object, then in the
// other one, since one installation may serve both.
func appliers(ctx context.Context, i check.Inspection) ([]applier, error) {
	return check.Once(i, appliersKey{}, func() ([]applier, error) {
		var out []applier
		for _, g := range guardedObjects(i) {
			for _, m := range g.marks() {
				found, err := find(ctx, i, g, m)
				if err != nil {
					return nil, err
				}
				out = append(out, found...)
			}
		}
		return out, nil
	})
}

// find returns the objects that a mark may mean. A mark without a namespace may mean several.
func find(ctx context.Context, i check.Inspection, g guardedObject, m Mark) ([]applier, error) {
	a := applier{guardedObject: g, Mark: m, at: g.side, unseen: "nothing says which " + m.By.Kind + " it is"}
	if m.Name == "" {
		return []applier{a}, nil
	}
	where := []plans.Side{g.side, g.side.Other()}
	if i.Plan.OneCluster() {
		where = where[:1]
	}
	for n, side := range where {
		tools, unseen, err := Tools(ctx, i, side, m)
		if err != nil {
			return nil, fmt.Errorf("reading %s %s on the %s: %w", m.By.Kind, m.Name, side, err)
		}
		var out []applier
		for k := range tools {
			out = append(out, applier{guardedObject: g, Mark: m, at: side, tool: &tools[k]})
		}
		if len(out) > 0 {
			return out, nil
		}
		if n == 0 {
			a.unseen = unseen
		}
	}
	return []applier{a}, nil
}

// mayNotLook begins the reason why a tool is not seen that may be seen in a moment: the API server refuses to show it.
const mayNotLook = "you may not look at "

// Tools reads the objects that a mark names in one cluster, or returns the reason why it cannot.
func Tools(ctx context.Context, i check.Inspection, side plans.Side, m Mark) ([]unstructured.Unstructured, string, error) {
	mapping, err := i.On[side].RESTMapper().RESTMapping(m.By)
	if meta.IsNoMatchError(err) {
		return nil, "its cluster does not know " + m.By.String(), nil
	}
	if err != nil {
		return nil, "", err
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(m.By.Kind + "List"))
	err = i.On[side].List(ctx, &list, client.InNamespace(m.namespace), client.MatchingFields{"metadata.name": m.Name})
	switch {
	case apierrors.IsForbidden(err):
		return nil, mayNotLook + m.By.Kind + "s", nil
	case apierrors.IsNotFound(err) || err == nil && len(list.Items) == 0:
		return nil, "there is no such " + m.By.Kind, nil
	}
	return list.Items, "", err
}

// active returns the findings about those tools of one group that could be read.
func active(ctx context.Context, i check.Inspection, group func(schema.GroupKind) bool, judge func(applier) (why, remedy string)) ([]check.Finding, error) {
	all, err := appliers(ctx, i)
	if err != nil {
		return nil, err
	}
	var out []check.Finding
	for _, a := range all {
		if a.tool == nil || !group(a.By) {
			continue
		}
		if why, remedy := judge(a); why != "" {
			out = append(out, check.Finding{
				Object: a.guardedObject.name, Saw: fmt.Sprintf("%s %s/%s %s (%s)", a.By.Kind, a.tool.GetNamespace(), a.tool.GetName(), why, a.sign),
				Want: "no tool that reverts what the move writes", Remedy: remedy,
			})
		}
	}
	return out, nil
}

// Argocd refuses objects that an Application would revert: an Application with automated sync, unless it
// ignores every field that the move writes. ignoreDifferences alone only hides a difference;
// RespectIgnoreDifferences=true keeps a sync from reverting it. It also refuses an Application that would delete
// what the plan makes on the destination (leftovers).
func Argocd(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	out, err := active(ctx, i, func(by schema.GroupKind) bool { return by == Application() }, func(a applier) (string, string) {
		return busy(a.tool.Object, a.tool.GetAnnotations(), a.guardedObject), quietenArgo(i, a)
	})
	if err != nil {
		return nil, err
	}
	more, err := leftovers(ctx, i)
	return append(out, more...), err
}

// automated returns the policy of an Application's automated sync, and whether it is on.
func automated(app map[string]any, notes map[string]string) (policy map[string]any, on bool) {
	policy, on, _ = unstructured.NestedMap(app, "spec", "syncPolicy", "automated")
	enabled, said := policy["enabled"].(bool)
	return policy, on && (!said || enabled) && notes["argocd.argoproj.io/skip-reconcile"] != "true"
}

// busy returns the reason why an Application would revert an object, or "".
func busy(app map[string]any, notes map[string]string, g guardedObject) string {
	if _, on := automated(app, notes); !on {
		return ""
	}
	options, _, _ := unstructured.NestedStringSlice(app, "spec", "syncPolicy", "syncOptions")
	respects := slices.Contains(options, "RespectIgnoreDifferences=true")
	left := ignoring(app, g)
	switch {
	case respects && left:
		return ""
	case left:
		return "syncs it by itself: its ignoreDifferences do not bind a sync without RespectIgnoreDifferences=true"
	}
	return "syncs it by itself"
}

// ignoring reports whether an Application ignores every field of the object that the move writes.
func ignoring(app map[string]any, g guardedObject) bool {
	entries, _, _ := unstructured.NestedSlice(app, "spec", "ignoreDifferences")
	var ignored []string
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		text := func(key string) string { s, _ := entry[key].(string); return s }
		means := func(key, value string) bool { s := text(key); return s == value || s == "*" }
		if !means("group", g.group) || !means("kind", g.kind) || text("name") != "" && text("name") != g.object.GetName() || text("namespace") != "" && text("namespace") != g.object.GetNamespace() {
			continue
		}
		pointers, _, _ := unstructured.NestedStringSlice(entry, "jsonPointers")
		ignored = append(ignored, pointers...)
	}
	return !slices.ContainsFunc(g.fields, func(field string) bool {
		return !slices.ContainsFunc(ignored, func(p string) bool { return p == field || strings.HasPrefix(field, p+"/") })
	})
}

func quietenArgo(i check.Inspection, a applier) string {
	what, flags := a.tool.GetName(), i.Flags[a.at]+" -n "+a.tool.GetNamespace()
	out := lines("turn its automated sync off, with one of",
		fmt.Sprintf(`kubectl%s patch application %s --type merge -p '{"spec":{"syncPolicy":{"automated":null}}}'`, flags, what),
		"argocd app set "+a.tool.GetNamespace()+"/"+what+" --sync-policy none",
		"or let it ignore the fields that the move writes; both parts are needed, in the spec of the Application:")
	out += "\n  ignoreDifferences:"
	for _, g := range guardedObjects(i) {
		out += fmt.Sprintf("\n  - {group: %s, kind: %s, namespace: %s, name: %s, jsonPointers: [%s]}", g.group, g.kind, g.object.GetNamespace(), g.object.GetName(), strings.Join(g.fields, ", "))
	}
	out += "\n  syncPolicy:\n    syncOptions: [RespectIgnoreDifferences=true]"
	more := sameTemplate(*a.tool)
	if i.Plan.OneCluster() && a.byLabel {
		more = slices.Concat([]string{"and then also turn its prune off, or it deletes the copies, which have its label, with one of"}, quietenPrune(i, *a.tool), more)
	}
	return strings.Join(append([]string{out}, more...), "\n")
}

// Flux refuses objects that a Kustomization or a HelmRelease of Flux would revert: one that is not suspended,
// unless the object itself is excluded from it.
func Flux(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	return active(ctx, i, func(by schema.GroupKind) bool { return by != Application() }, func(a applier) (string, string) {
		if suspended, _, _ := unstructured.NestedBool(a.tool.Object, "spec", "suspend"); suspended || a.left() {
			return "", ""
		}
		return "applies it", quietenFlux(i, a)
	})
}

// left reports whether an object is excluded from the Kustomization that applies it. A HelmRelease has no
// such exclusion.
func (a applier) left() bool {
	const key = fluxKustomize + "/reconcile"
	return a.By.Group == fluxKustomize && (a.object.GetAnnotations()[key] == "disabled" || a.object.GetLabels()[key] == "disabled")
}

func quietenFlux(i check.Inspection, a applier) string {
	kind := map[string]string{fluxKustomize: "kustomization", fluxHelm: "helmrelease"}[a.By.Group]
	command := func(verb string) string {
		return fmt.Sprintf("flux%s -n %s %s %s %s", i.Flags[a.at], a.tool.GetNamespace(), verb, kind, a.tool.GetName())
	}
	out := lines("suspend it for the time of the move (`flux resume` ends that)", command("suspend"))
	if a.By.Group == fluxKustomize {
		out += fmt.Sprintf("\nor take only this object out of it\n%s annotate %s %s %s/reconcile=disabled", kubectl(i, a.side), strings.ToLower(a.kind), a.object.GetName(), fluxKustomize)
	}
	return out
}

// WritersUnseen refuses marks of tools that could not be read. Such a tool may run in a third cluster, the
// user may not be allowed to read it, or it may be gone and have left its mark behind. A user who knows which
// may ignore the check.
func WritersUnseen(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	all, err := appliers(ctx, i)
	if err != nil {
		return nil, err
	}
	var out []check.Finding
	for _, a := range all {
		if a.tool != nil || a.left() {
			continue
		}
		a.tool = &unstructured.Unstructured{}
		a.tool.SetName(cmp.Or(a.Mark.Name, "NAME"))
		a.tool.SetNamespace(cmp.Or(a.namespace, map[bool]string{true: "argocd", false: "NAMESPACE"}[a.By == Application()]))
		remedy := quietenFlux
		if a.By == Application() {
			remedy = quietenArgo
		}
		out = append(out, check.Finding{
			Object: a.guardedObject.name, Saw: fmt.Sprintf("%s says that %s %s applies it, and %s", a.sign, a.By.Kind, a.Mark.Name, a.unseen),
			Passing: strings.HasPrefix(a.unseen, mayNotLook), Unseen: strings.HasPrefix(a.unseen, mayNotLook),
			Want: "proof that it does not revert what the move writes", Remedy: "if it is gone, or once it is stopped where it runs, --ignore writers-unseen; to stop it: " + remedy(i, a),
		})
	}
	return out, nil
}

// appliersKey is the key of check.Once for the appliers.
type appliersKey struct{}
