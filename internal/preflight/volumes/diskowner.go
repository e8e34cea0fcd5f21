package volumes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/owners"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Backend is what both clusters must share so that the volumes of a driver are the same disks in both.
type Backend struct {
	Driver string `json:"driver"`
	Share  string `json:"share"`
}

// Backends lists the drivers of the volumes that move to another cluster.
func Backends(ctx context.Context, i check.Inspection) ([]Backend, error) {
	if i.Plan.OneCluster() || !i.Plan.HasVolumes() {
		return nil, nil
	}
	volumes, err := departing(ctx, i)
	if err != nil {
		return nil, err
	}
	share := map[string]string{}
	for _, pv := range volumes {
		if s := storage.SourceOf(pv); s != nil {
			share[s.Driver] = s.Share
		}
	}
	var out []Backend
	for _, driver := range slices.Sorted(maps.Keys(share)) {
		out = append(out, Backend{driver, share[driver]})
	}
	return out, nil
}

// departing returns the volumes of the source that the plan is about, as far as they exist.
func departing(ctx context.Context, i check.Inspection) ([]*corev1.PersistentVolume, error) {
	here, err := On(ctx, i, plans.Source)
	if err != nil {
		return nil, err
	}
	wanted, err := wanted(ctx, i)
	var out []*corev1.PersistentVolume
	for _, v := range wanted {
		if pv := here.ByName[v.Name]; pv != nil {
			out = append(out, pv)
		}
	}
	return out, err
}

// arrived returns the volumes of the claims that the destination has received.
func arrived(ctx context.Context, i check.Inspection) ([]*corev1.PersistentVolume, error) {
	ours := map[string]bool{}
	for _, name := range movedClaims(i.Plan, plans.Destination) {
		ours[name] = true
	}
	var claims corev1.PersistentVolumeClaimList
	if err := i.On[plans.Destination].List(ctx, &claims, client.InNamespace(i.Plan.Destination.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the claims of %s: %w", i.Plan.Destination, err)
	}
	names := map[string]bool{}
	for _, c := range claims.Items {
		if ours[c.Name] { // another claim may name the same volume, and come later in the list
			names[c.Spec.VolumeName] = true
		}
	}
	var out []*corev1.PersistentVolume
	err := clusters.Each(ctx, i.On[plans.Destination], func() client.ObjectList { return &corev1.PersistentVolumeList{} }, func(pv *corev1.PersistentVolume) {
		if names[pv.Name] {
			out = append(out, pv.DeepCopy())
		}
	})
	return out, err
}

// movedClaims returns the names of the claims that the plan hands over, on a side.
func movedClaims(p *plans.Plan, side plans.Side) []string {
	var out []string
	for o := range p.Ordinals().All() {
		for _, c := range p.Moved() {
			out = append(out, p.ClaimName(side, c.Template, o))
		}
	}
	for _, s := range p.Shared {
		out = append(out, s.Claim)
	}
	return out
}

// DiskOwner requires disks that stay when the old cluster is deleted: to the cloud they belong to the cluster
// that made them, and the deletion ignores the reclaim policy of a volume object.
func DiskOwner(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if i.Plan.OneCluster() || !i.Plan.HasVolumes() {
		return nil, nil
	}
	volumes, err := departing(ctx, i)
	if err != nil {
		return nil, err
	}
	return diskOwners(ctx, i, volumes)
}

func diskOwners(ctx context.Context, i check.Inspection, volumes []*corev1.PersistentVolume) ([]check.Finding, error) {
	byDriver := map[string][]*corev1.PersistentVolume{}
	azure := false
	for _, pv := range volumes {
		if s := pv.Spec.CSI; s != nil && storage.Known(s).Owner != "" {
			byDriver[s.Driver] = append(byDriver[s.Driver], pv)
			azure = azure || resourceGroup(s.VolumeHandle) != ""
		}
	}
	groups := map[string]bool{}
	var err error
	if azure {
		if groups, err = nodeGroups(ctx, i); err != nil {
			return nil, err
		}
	}
	var out []check.Finding
	for _, driver := range slices.Sorted(maps.Keys(byDriver)) {
		doomed, others := map[string][]*corev1.PersistentVolume{}, []*corev1.PersistentVolume{}
		for _, pv := range byDriver[driver] {
			if group := resourceGroup(pv.Spec.CSI.VolumeHandle); groups[group] {
				doomed[group] = append(doomed[group], pv)
			} else {
				others = append(others, pv)
			}
		}
		for _, group := range slices.Sorted(maps.Keys(doomed)) {
			out = append(out, goesWith(group, doomed[group]))
		}
		if len(others) > 0 {
			out = append(out, mayGo(others))
		}
	}
	return out, nil
}

const oldClusterPage = "docs/storage/before-the-old-cluster-goes.md"

func goesWith(group string, volumes []*corev1.PersistentVolume) check.Finding {
	return check.Finding{
		Object: several(volumes), Saw: fmt.Sprintf("Azure keeps them in resource group %s, where the nodes of the source are: it goes with that cluster, and everything in it, whatever the reclaim policy says", group),
		Want: "disks that stay when the old cluster is deleted",
		Remedy: "--ignore disk-owner, and keep the old cluster until each disk lies in another group; a disk that was moved has another handle, and needs a new volume object (" + oldClusterPage + ")\n" +
			"az resource move --destination-group GROUP --ids " + volumes[0].Spec.CSI.VolumeHandle + "   # of " + volumes[0].Name + ", while nothing has it attached",
	}
}

func mayGo(volumes []*corev1.PersistentVolume) check.Finding {
	known := storage.Known(volumes[0].Spec.CSI)
	f := check.Finding{
		Level: check.Warn, Object: several(volumes), Saw: fmt.Sprintf("the disks of driver %s may be taken for the old cluster's by %s", volumes[0].Spec.CSI.Driver, known.Owner),
		Want: "disks that stay when the old cluster is deleted", Remedy: "see to it before the old cluster is deleted (" + oldClusterPage + ")",
	}
	if known.Look != "" {
		f.Remedy += "\n" + known.Look
	}
	return f
}

// several names the first few of many volumes.
func several(volumes []*corev1.PersistentVolume) string {
	var names []string
	for _, pv := range volumes {
		names = append(names, pv.Name)
	}
	slices.Sort(names)
	return "volumes " + check.Few(slices.Compact(names))
}

// nodeGroups returns as true the resource groups in which the source has nodes and the destination has none.
// Where nodes may not be listed, their groups are unknown.
func nodeGroups(ctx context.Context, i check.Inspection) (map[string]bool, error) {
	out := map[string]bool{}
	for _, side := range plans.Sides() {
		err := clusters.Each(ctx, i.On[side], func() client.ObjectList { return &corev1.NodeList{} }, func(n *corev1.Node) {
			if group := resourceGroup(n.Spec.ProviderID); group != "" {
				out[group] = side == plans.Source
			}
		})
		if check.IgnoreForbidden(err) != nil {
			return nil, fmt.Errorf("listing the nodes of the %s: %w", side, err)
		}
	}
	return out, nil
}

// resourceGroup returns the Azure resource group of a provider ID or of a volume handle, in lower case
// because Azure ignores case, or "". The handle of a disk is a path; that of a share begins with the group.
func resourceGroup(id string) string {
	parts := strings.Split(strings.ToLower(id), "/")
	if n := slices.Index(parts, "resourcegroups"); n >= 0 && n+1 < len(parts) {
		return parts[n+1]
	}
	group, _, share := strings.Cut(strings.ToLower(id), "#")
	if !share {
		return ""
	}
	return group
}

// pruned warns of the label by which Argo CD may take the objects that were made on the destination for its own:
// they all carry the labels of the source's objects.
func pruned(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	set, err := i.Set(ctx, plans.Destination)
	if err != nil || set == nil {
		return nil, err
	}
	label := set.Labels[owners.InstanceLabel]
	apps, err := owners.Claimants(ctx, i, label)
	if err != nil || len(apps) == 0 {
		return nil, err
	}
	return []check.Finding{{
		Check: "argocd", Level: check.Warn, Object: i.Name(plans.Destination), Saw: fmt.Sprintf("it and what was copied with it have the label %s=%s, as the source had", owners.InstanceLabel, label),
		Want:   "an Application that does not take them for leftovers",
		Remedy: fmt.Sprintf("where Argo CD tracks by label (its default before 3.0), put them into Git for Application %s before its automated sync or its prune is turned on again, or take the label off: it would prune them", apps[0].GetName()),
	}}, nil
}

// Farewell lists what the user must do before the source's cluster, or in one cluster its namespace, is
// deleted: the findings about the volumes, checked again for those that the destination has, and the effect
// that a GitOps tool may have on the copies.
func Farewell(ctx context.Context, p *plans.Plan, on clusters.Clusters, by check.Caller) ([]check.Finding, error) {
	i := check.Inspect(p, on)
	i.Caller = by
	labelled, err := pruned(ctx, i)
	if err != nil || !p.HasVolumes() {
		return labelled, err
	}
	volumes, err := arrived(ctx, i)
	if err != nil {
		return nil, err
	}
	name, ask := "disk-owner", diskOwners
	if p.OneCluster() {
		name, ask = "namespace-kept", bequest
	}
	out, err := ask(ctx, i, volumes)
	for k := range out {
		out[k].Check, out[k].Level = name, check.Warn
	}
	return append(out, labelled...), err
}
