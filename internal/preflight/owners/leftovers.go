package owners

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// InstanceLabel names the Application of an object, where Argo CD tracks by label (its default before 3.0).
const InstanceLabel = "app.kubernetes.io/instance"

// Claimants returns the Applications that may take every object of the destination's cluster with this value of the
// label for their own. An Application may serve another cluster than the one that it is in: between two clusters only
// one that serves its own counts.
func Claimants(ctx context.Context, i check.Inspection, label string) ([]unstructured.Unstructured, error) {
	if label == "" {
		return nil, nil
	}
	apps, _, err := Tools(ctx, i, plans.Destination, named(label))
	if err != nil {
		return nil, fmt.Errorf("reading Application %s on the destination: %w", label, err)
	}
	return slices.DeleteFunc(apps, func(app unstructured.Unstructured) bool {
		server, _, _ := unstructured.NestedString(app.Object, "spec", "destination", "server")
		name, _, _ := unstructured.NestedString(app.Object, "spec", "destination", "name")
		return !i.Plan.OneCluster() && server != "https://kubernetes.default.svc" && name != "in-cluster"
	}), nil
}

// named returns the mark of the Application that a value of the label names. For one outside of Argo CD's namespace the
// value is NAMESPACE_NAME.
func named(label string) Mark {
	m := Mark{By: Application(), Name: label}
	if namespace, name, ok := strings.Cut(label, "_"); ok {
		m.namespace, m.Name = namespace, name
	}
	return m
}

// leftovers refuses copies that automated sync would delete. They have the labels of their originals. So an Application
// that tracks by label takes them for its own, does not find them in Git, and prunes them: the destination set with
// every ordinal that has arrived. An Application that prunes only when the user tells it to is a warning.
func leftovers(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	all, err := appliers(ctx, i)
	if err != nil {
		return nil, err
	}
	var out []check.Finding
	for _, label := range labelled(i) {
		byLabel := slices.ContainsFunc(all, func(a applier) bool {
			return a.side == plans.Source && a.byLabel && a.object.GetLabels()[InstanceLabel] == label
		})
		if i.Plan.OneCluster() && !byLabel {
			continue // an Application that takes the copies for its own would have taken the originals
		}
		apps, err := Claimants(ctx, i, label)
		if err != nil {
			return nil, err
		}
		copies, err := copiesWith(ctx, i, label)
		if err != nil {
			return nil, err
		}
		for _, app := range apps {
			if prunes := prunesByItself(app); len(copies) > 0 && (prunes || i.Plan.OneCluster()) {
				out = append(out, leftover(i, app, copies, prunes, byLabel))
			}
		}
	}
	return out, nil
}

// leftover is the finding about one Application.
func leftover(i check.Inspection, app unstructured.Unstructured, copies []string, prunes, byLabel bool) check.Finding {
	f := check.Finding{
		Object: i.Name(plans.Destination), Want: "no Application that takes the copies for leftovers",
		Saw: fmt.Sprintf("Application %s/%s prunes by itself what is not in Git and has its name in label %s, as the copies will have (%s)",
			app.GetNamespace(), app.GetName(), InstanceLabel, check.Few(copies)),
		Remedy: lines("turn its prune off until the copies are in Git for that Application, with one of", append(quietenPrune(i, app), sameTemplate(app)...)...),
	}
	switch {
	case !prunes:
		f.Level, f.Saw = check.Warn, strings.Replace(f.Saw, "prunes by itself", "deletes, when it is synced with prune,", 1)
		f.Remedy = "do not sync it with prune until the copies are in Git for that Application"
	case !byLabel: // nothing on the source shows that this Argo CD tracks by label
		f.Level = check.Warn
		f.Remedy = "where Argo CD tracks by label (its default before 3.0), " + f.Remedy
	}
	return f
}

// labelled returns the values of the label on the source's set and budget.
func labelled(i check.Inspection) (out []string) {
	for _, g := range guardedObjects(i) {
		if value := g.object.GetLabels()[InstanceLabel]; g.side == plans.Source && value != "" && !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	return out
}

// copiesWith names the objects that the plan makes on the destination with this value of the label. It leaves out
// those that forbid to prune them, since a copy has the annotations of its original.
func copiesWith(ctx context.Context, i check.Inspection, label string) (out []string, err error) {
	_, budgetExisted := i.Plan.BudgetOn(plans.Destination)
	for _, g := range guardedObjects(i) {
		budget := g.group == "policy"
		copied := budget && !budgetExisted || !budget && !i.Plan.Existed()
		if g.side == plans.Source && copied && prunable(g.object, label) {
			out = append(out, g.kind+" "+g.object.GetName())
		}
	}
	dependencies, err := copiedDependencies(ctx, i, label)
	return append(out, dependencies...), err
}

func copiedDependencies(ctx context.Context, i check.Inspection, label string) (out []string, err error) {
	for _, d := range i.Plan.Dependencies {
		if d.Required != "" {
			continue
		}
		from, to, err := i.OnBoth(ctx, d)
		if err != nil {
			return nil, err
		}
		if from != nil && (to == nil || i.Ours(to)) && prunable(from, label) {
			out = append(out, d.Kind+" "+d.Name)
		}
	}
	return out, nil
}

// prunable reports whether an object has this value of the label, and does not forbid to prune it.
func prunable(o client.Object, label string) bool {
	options := strings.Split(o.GetAnnotations()["argocd.argoproj.io/sync-options"], ",")
	return o.GetLabels()[InstanceLabel] == label && !slices.ContainsFunc(options, func(s string) bool { return strings.TrimSpace(s) == "Prune=false" })
}

// prunesByItself reports whether automated sync of an Application deletes what is not in Git.
func prunesByItself(app unstructured.Unstructured) bool {
	policy, on := automated(app.Object, app.GetAnnotations())
	prune, _ := policy["prune"].(bool)
	return on && prune
}

// quietenPrune returns the commands that turn off the prune of an Application in the destination's cluster.
func quietenPrune(i check.Inspection, app unstructured.Unstructured) []string {
	return []string{
		fmt.Sprintf(`%s -n %s patch application %s --type merge -p '{"spec":{"syncPolicy":{"automated":{"prune":false}}}}'`, i.Kubectl(plans.Destination), app.GetNamespace(), app.GetName()),
		"argocd app set " + app.GetNamespace() + "/" + app.GetName() + " --auto-prune=false",
	}
}

// sameTemplate returns what to do about the ApplicationSet of an Application, if there is one.
func sameTemplate(app unstructured.Unstructured) (out []string) {
	for _, o := range app.GetOwnerReferences() {
		if o.Kind == "ApplicationSet" {
			out = append(out, fmt.Sprintf("ApplicationSet %s makes this Application and would change it back: change its template.", o.Name))
		}
	}
	return out
}
