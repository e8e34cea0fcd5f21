package volumes

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// idNotes returns the annotations by which OpenShift gives the pods of a namespace the user, the groups and
// the SELinux label under which they run and own their files.
func idNotes() []string {
	return []string{"openshift.io/sa.scc.uid-range", "openshift.io/sa.scc.supplemental-groups", "openshift.io/sa.scc.mcs"}
}

// FileOwners requires that pods run under the ids that own the files on the volumes.
func FileOwners(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if len(i.Plan.Moved())+len(i.Plan.Shared) == 0 {
		return nil, nil
	}
	notes := map[plans.Side]map[string]string{}
	for _, side := range plans.Sides() {
		var ns corev1.Namespace
		if err := i.On[side].Get(ctx, client.ObjectKey{Name: i.Plan.On(side).Namespace}, &ns); err != nil {
			return nil, client.IgnoreNotFound(err) // the check namespace reports it
		}
		notes[side] = ns.Annotations
	}
	var saw, set []string
	for _, key := range idNotes() {
		here, there := notes[plans.Source][key], notes[plans.Destination][key]
		if here == there {
			continue
		}
		saw = append(saw, fmt.Sprintf("%s is %q here and %q there", strings.TrimPrefix(key, "openshift.io/sa.scc."), here, there))
		if here != "" && there != "" {
			set = append(set, key+"="+here)
		}
	}
	if len(saw) == 0 {
		return nil, nil
	}
	f := check.Finding{
		Level: check.Warn, Object: "namespace " + i.Plan.Destination.Namespace, Saw: "OpenShift gives its pods other ids than those that own the files on the volumes: " + strings.Join(saw, "; "),
		Want:   "pods that can read what they wrote",
		Remedy: "give the pods the ids of the source's with --patch (runAsUser, fsGroup, seLinuxOptions)",
	}
	if len(set) > 0 {
		f.Remedy = fmt.Sprintf("give the namespace those of the source before any pod runs there\noc%s annotate namespace %s --overwrite %s", i.Flags[plans.Destination], i.Plan.Destination.Namespace, strings.Join(set, " "))
	}
	return []check.Finding{f}, nil
}
