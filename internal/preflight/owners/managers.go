package owners

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// recentWrite is the age below which a write counts as a sign that its writer is active.
const recentWrite = time.Hour

// FieldManagers checks, by managedFields, which managers have written replicas, ordinals or the retention
// policy of the sets. The rule:
//
//   - this program and the tools of users (kubectl and its plugins, Helm, Terraform,
//     consoles) pass, however recent their write is;
//   - so do writers that other checks cover better: GitOps controllers (argocd, flux,
//     writers-unseen) and the scaling of autoscalers (autoscaler, keda);
//   - any other manager that declares them by server-side apply will declare them again,
//     and is refused;
//   - any other manager that wrote in the last hour, and after the set was made, is taken
//     to be active, and is refused;
//   - one that people and pipelines run once, and that also exists as a controller which
//     repeats itself, is a warning;
//   - every remaining manager is a warning: the creator of the set may be an operator that
//     sets no owner reference.
//
// Once the plan is in progress this check does not run: the engine observes what other managers write.
func FieldManagers(_ context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	for side, set := range i.Sets {
		for _, m := range managers(set.ManagedFields, set.CreationTimestamp, time.Since) {
			f := check.Finding{
				Object: i.Name(side), Saw: m.String(), Want: "no writer but the tools of users", Level: check.Warn,
				Remedy: "find out what it is and stop it for the time of the move; if it does not run any more, --ignore field-managers",
			}
			if m.busy {
				f.Level = check.Fail
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// pulumi is what Pulumi calls itself: with server-side apply, each resource has digits of its own.
var pulumi = regexp.MustCompile(`^pulumi-(resource-)?kubernetes(-[0-9a-f]{8})?(\.exe)?$`)

// manager is a field manager that has written a field which a move writes.
type manager struct {
	name     string
	fields   []string
	at       *metav1.Time // of the last write that changed a field
	declares bool
	busy     bool
}

func (m manager) String() string {
	when := ""
	if m.at != nil {
		when = " at " + m.at.UTC().Format(time.RFC3339)
	}
	verb := "wrote"
	if m.declares {
		verb = "declares, by server-side apply,"
	}
	return fmt.Sprintf("%s %s %s%s", m.name, verb, strings.Join(m.fields, " and "), when)
}

// managers returns the managers that have written a field which a move writes, and that no rule lets pass.
func managers(entries []metav1.ManagedFieldsEntry, made metav1.Time, since func(time.Time) time.Duration) []manager {
	runOnce := []string{"kapp", "kapp-server", "kluctl", "tanka", "timoni", "werf"} // tools that end, unless a controller runs them
	var out []manager
	for _, e := range entries {
		if e.FieldsV1 == nil || passes(e) {
			continue
		}
		m := manager{name: e.Manager, at: e.Time, declares: e.Operation == metav1.ManagedFieldsOperationApply}
		for _, field := range []string{"replicas", "ordinals", "persistentVolumeClaimRetentionPolicy"} {
			if plans.Owns(e.FieldsV1.GetRawBytes(), []string{"spec", field}) {
				m.fields = append(m.fields, "spec."+field)
			}
		}
		if m.declares && ownsPartition(e) {
			m.fields = append(m.fields, "spec.updateStrategy.rollingUpdate.partition")
		}
		if len(m.fields) == 0 {
			continue
		}
		m.busy = !slices.Contains(runOnce, m.name) && (m.declares || e.Time != nil && e.Time.After(made.Time) && since(e.Time.Time) < recentWrite)
		out = append(out, m)
	}
	return out
}

// passes reports whether a manager is a user's tool, this program, or covered by another check.
func passes(e metav1.ManagedFieldsEntry) bool {
	known := []string{
		"argocd-controller", "argocd-application-controller", "kustomize-controller", "helm-controller", // argocd, flux, writers-unseen
		"keda", "keda-operator", // keda
		"k9s", "node-fetch", "Mozilla", "dashboard", "rancher", // consoles
		"terraform-provider-kubernetes", "Terraform", "HashiCorp",
	}
	people := []string{"kubectl", "stsmigrate", "helm", "lens", "OpenLens"}
	return e.Subresource == "scale" && e.Manager == "kube-controller-manager" || slices.Contains(known, e.Manager) || pulumi.MatchString(e.Manager) ||
		slices.ContainsFunc(people, func(p string) bool { return e.Manager == p || strings.HasPrefix(e.Manager, p+"-") })
}
