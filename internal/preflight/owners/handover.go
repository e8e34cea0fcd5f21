package owners

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Handover warns of who applies the source set, and would make it again after its end: with new, empty volumes, beside
// the one that has moved. A release of Helm is told by its own check, and a manifest that a user applies, as most are, at
// the end of the move alone.
func Handover(_ context.Context, i check.Inspection) ([]check.Finding, error) {
	if i.Now.Set == nil {
		return nil, nil
	}
	return ofTheKind(i, gitOps(i, i.Now.Set, declaring(i, i.Now.Set))), nil
}

// Successors lists all of them, for a set as it is at the end of a move: the source's, or once that is gone the
// destination's, which has its labels and annotations.
func Successors(ctx context.Context, i check.Inspection, set *appsv1.StatefulSet) ([]check.Finding, error) {
	out := gitOps(i, set, append(declaring(i, set), byHand(i, set)...))
	if release := set.Annotations[releaseName]; release != "" && set.Labels[managedBy] == "Helm" && set.Labels[fluxHelm+"/name"] == "" {
		objects, err := released(ctx, i, release)
		if err != nil {
			return nil, err
		}
		out = append(out, handHelm(i, release, releaseIn(set), objects))
	}
	return ofTheKind(i, out), nil
}

// ofTheKind says first, where the set has become one of another kind, what its manifest would make there: a second set of the
// old kind, for the same pods and claims.
func ofTheKind(i check.Inspection, found []check.Finding) []check.Finding {
	from, to := i.Plan.Source, i.Plan.Destination
	if from.SetKind() == to.SetKind() {
		return found
	}
	first := fmt.Sprintf("after `finalize` make the set there a %s again (`stsmigrate adopt %s -n %s --yes`), or have kind %s in the manifest: one of a %s makes a second set %s there, for the same pods and claims. Then: ",
		from.SetKind(), to.Typed(), to.Namespace, to.SetKind(), from.SetKind(), to.Name)
	for k := range found {
		found[k].Remedy = first + found[k].Remedy
	}
	return found
}

const (
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
	managedBy        = "app.kubernetes.io/managed-by"
)

// releaseIn returns the namespace of the release that has a set.
func releaseIn(set *appsv1.StatefulSet) string {
	if n := set.Annotations[releaseNamespace]; n != "" {
		return n
	}
	return set.Namespace
}

// again is what an applier does whose manifests still have the set in the old place.
func again(i check.Inspection) string {
	return fmt.Sprintf("makes %s again once it is gone, with new and empty volumes", i.Name(plans.Source))
}

// handHelm says how the objects of a release change hands.
func handHelm(i check.Inspection, release, namespace string, objects []string) check.Finding {
	to := kubectl(i, plans.Destination)
	all := strings.Join(objects, " ")
	next := i.Plan.Destination.Namespace
	return check.Finding{
		Check: "helm", Level: check.Warn, Object: fmt.Sprintf("Helm release %s/%s", namespace, release),
		Saw:  fmt.Sprintf("the set is of it: the next `helm upgrade %s -n %s` %s, and a release in namespace %s refuses the objects there, as their annotations name another one", release, namespace, again(i), next),
		Want: "one release that has the set where it is",
		Remedy: lines("after `finalize`, before any other command of helm: give the objects to a release of namespace "+next+", install that with the same replicas and pod template, and then take the old release away (`helm get manifest` lists what that deletes; what has to stay needs helm.sh/resource-policy: keep in the chart first)",
			to+" annotate --overwrite "+all+" "+releaseName+"="+release+" "+releaseNamespace+"="+next,
			to+" label --overwrite "+all+" "+managedBy+"=Helm",
			"helm upgrade --install "+release+" CHART -n "+next+" -f VALUES",
			"helm get manifest "+release+" -n "+namespace,
			"helm uninstall "+release+" -n "+namespace),
	}
}

// released lists the objects on the destination that the release has, as kubectl names them.
func released(ctx context.Context, i check.Inspection, release string) (out []string, err error) {
	to := i.Plan.Destination
	out = []string{strings.ToLower(to.SetKind()) + "/" + to.Name}
	for _, g := range guardedObjects(i) {
		if name, _ := i.Plan.BudgetOn(plans.Destination); g.group == "policy" && g.object.GetAnnotations()[releaseName] == release && !slices.Contains(out, "poddisruptionbudget/"+name) {
			out = append(out, "poddisruptionbudget/"+name)
		}
	}
	for _, d := range i.Plan.Dependencies {
		from, there, err := i.OnBoth(ctx, d)
		if check.IgnoreForbidden(err) != nil {
			return nil, err
		}
		if there == nil {
			there = from
		}
		if there != nil && d.Required == "" && there.GetAnnotations()[releaseName] == release {
			out = append(out, strings.ToLower(d.Kind)+"/"+d.Name)
		}
	}
	return out, nil
}

// gitOps returns the findings about the tools of Git that apply a set, and appends the others.
func gitOps(i check.Inspection, set *appsv1.StatefulSet, others []check.Finding) (out []check.Finding) {
	g := guardedObject{side: plans.Source, group: appsv1.GroupName, kind: i.Plan.Source.SetKind(), object: set, name: i.Name(plans.Source)}
	if set.Namespace != i.Plan.Source.Namespace { // a copy, with the marks of its original
		g.object = set.DeepCopy()
		g.object.SetNamespace(i.Plan.Source.Namespace)
	}
	to := i.Plan.Destination
	for _, m := range g.marks() {
		f := check.Finding{
			Check: "handover", Level: check.Warn, Object: fmt.Sprintf("%s %s", m.By.Kind, strings.Trim(m.namespace+"/"+m.Name, "/")),
			Saw:  fmt.Sprintf("it applies the set (%s): as long as Git has it in namespace %s, its next sync %s", m.sign, i.Plan.Source.Namespace, again(i)),
			Want: "Git to have the set where it is, before anything is synced again",
		}
		switch m.By.Group {
		case fluxHelm:
			f.Remedy = lines(fmt.Sprintf("after `finalize` and before `flux resume`: in Git, spec.targetNamespace: %s of the HelmRelease (and its cluster), and give the objects there to that release", to.Namespace),
				fmt.Sprintf("%s annotate --overwrite %s/%s %s=%s %s=%s", kubectl(i, plans.Destination), strings.ToLower(to.SetKind()), to.Name, releaseName, m.Name, releaseNamespace, to.Namespace))
		case fluxKustomize:
			f.Remedy = fmt.Sprintf("after `finalize` and before `flux resume`: in Git, namespace %s for the set, its budget, Service, ConfigMaps and Secrets (metadata.namespace, or spec.targetNamespace of the Kustomization), in the place of %s; not before `finalize`, or it prunes the source set", to.Namespace, i.Plan.Source.Namespace)
		default:
			f.Remedy = fmt.Sprintf("after `finalize` and before automated sync is turned on again: in Git, namespace %s for the set, its budget, Service, ConfigMaps and Secrets (metadata.namespace, or spec.destination of the Application), in the place of %s; the next sync adopts what is there and writes %s anew; not before `finalize`, or a sync with prune deletes the source set", to.Namespace, i.Plan.Source.Namespace, tracking)
		}
		out = append(out, f)
	}
	return append(out, others...)
}

// declaring finds other programs that keep the manifest of the set: those with a state of their own, and those that declare
// it by server-side apply.
func declaring(i check.Inspection, set *appsv1.StatefulSet) (out []check.Finding) {
	seen := map[string]bool{}
	for _, e := range set.ManagedFields {
		remedy := ""
		switch name := e.Manager; {
		case seen[name], strings.HasPrefix(name, "argocd"), name == "kustomize-controller", name == "helm-controller", name == "helm", name == "stsmigrate", strings.HasPrefix(name, "kubectl"):
			continue
		case strings.Contains(strings.ToLower(name), "terraform"), name == "HashiCorp":
			remedy = lines("a changed namespace would make it replace the set. After `finalize`, let it forget the old one and import the one that is there, with the new namespace in its configuration",
				"terraform state rm kubernetes_stateful_set_v1."+set.Name, fmt.Sprintf("terraform import kubernetes_stateful_set_v1.%s %s/%s", set.Name, i.Plan.Destination.Namespace, set.Name))
		case strings.HasPrefix(name, "pulumi"):
			remedy = lines("a changed namespace would make it replace the set. After `finalize`, let it forget the old one and import the one that is there, with the new namespace in its program",
				"pulumi state delete URN", fmt.Sprintf("pulumi import kubernetes:apps/v1:StatefulSet %s %s/%s", set.Name, i.Plan.Destination.Namespace, set.Name))
		case e.Operation == metav1.ManagedFieldsOperationApply:
			remedy = fmt.Sprintf("find out what it is, and give it namespace %s in the place of %s before it applies again", i.Plan.Destination.Namespace, i.Plan.Source.Namespace)
		default:
			continue
		}
		seen[e.Manager] = true
		out = append(out, check.Finding{
			Check: "handover", Level: check.Warn, Object: i.Name(plans.Source), Saw: fmt.Sprintf("%s keeps its manifest, and the next time that it is applied %s", e.Manager, again(i)),
			Want: "it to have the set where it is", Remedy: remedy,
		})
	}
	return out
}

// byHand is the manifest that a user has applied.
func byHand(i check.Inspection, set *appsv1.StatefulSet) []check.Finding {
	applied := set.Annotations[corev1.LastAppliedConfigAnnotation] != "" || slices.ContainsFunc(set.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == "kubectl" && e.Operation == metav1.ManagedFieldsOperationApply
	})
	if !applied {
		return nil
	}
	return []check.Finding{{
		Check: "handover", Level: check.Warn, Object: i.Name(plans.Source), Saw: "it was made from a manifest with `kubectl apply`, which " + again(i),
		Want: "no manifest that has the set in the old place", Remedy: fmt.Sprintf("write namespace %s into the manifest, also where a pipeline has it, and the cluster %s", i.Plan.Destination.Namespace, i.Plan.Destination.Context),
	}}
}
