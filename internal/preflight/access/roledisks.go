package access

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Disk is a volume that a plan moves, and its handle in the storage system; "" if the handle cannot be read.
type Disk struct{ Name, Handle string }

// Names returns the names of the volumes.
func Names(disks []Disk) (out []string) {
	for _, d := range disks {
		out = append(out, d.Name)
	}
	return out
}

// Disks reads the volumes of a plan at any time of its life, as far as the sides are there: those that the
// claims of either side have, those that carry the plan's stamp, and those of the wave in flight. j may be
// nil. A volume has the same name on both sides.
func Disks(ctx context.Context, p *plans.Plan, on clusters.Clusters, j *journal.Journal) ([]Disk, error) {
	found := map[string]Disk{}
	for _, name := range sharedVolumes(p) {
		found[name] = Disk{Name: name}
	}
	if j != nil && j.Flight != nil {
		for _, v := range j.Flight.Volumes {
			found[v.Name] = Disk{Name: v.Name}
		}
	}
	for _, side := range plans.Sides() {
		if on[side] == nil {
			continue
		}
		bound, err := boundTo(ctx, p, on, side)
		if err != nil {
			return nil, err
		}
		for _, name := range bound {
			found[name] = Disk{name, found[name].Handle}
		}
		err = clusters.Each(ctx, on[side], func() client.ObjectList { return &corev1.PersistentVolumeList{} }, func(pv *corev1.PersistentVolume) {
			if _, known := found[pv.Name]; known || (plans.Stamp{Plan: p.ID}).Mine(pv) {
				handle, _ := storage.Handle(pv)
				found[pv.Name] = Disk{pv.Name, cmp.Or(found[pv.Name].Handle, handle)}
			}
		})
		if err != nil {
			return nil, fmt.Errorf("listing the volumes of the %s: %w", side, err)
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Disk) int { return cmp.Compare(a.Name, b.Name) }), nil
}

// volumeNames reads the names of the volumes that the claims of the source have, of those that have moved, and of those
// that the pod template names. While no wave is in flight these are all volumes of the plan.
func volumeNames(ctx context.Context, p *plans.Plan, on clusters.Clusters) ([]string, error) {
	out, err := boundTo(ctx, p, on, plans.Source)
	if err != nil {
		return nil, err
	}
	moved := *p
	moved.Claims = p.Moved() // the volumes of the others are new there, and no write is about them
	there, err := boundTo(ctx, &moved, on, plans.Destination)
	out = slices.Concat(out, there, sharedVolumes(p))
	slices.Sort(out)
	return slices.Compact(out), err
}

// boundTo reads which volumes the claims of the ordinals have on a side.
func boundTo(ctx context.Context, p *plans.Plan, on clusters.Clusters, side plans.Side) ([]string, error) {
	if len(p.Claims) == 0 {
		return nil, nil
	}
	var claims corev1.PersistentVolumeClaimList
	namespace := p.On(side).Namespace
	if err := on[side].List(ctx, &claims, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the claims of namespace %s: %w", namespace, err)
	}
	ours := claimSet(p, side)
	var out []string
	for _, c := range claims.Items {
		if ours[c.Name] && c.Spec.VolumeName != "" {
			out = append(out, c.Spec.VolumeName)
		}
	}
	return out, nil
}

func sharedVolumes(p *plans.Plan) []string {
	var out []string
	for _, s := range p.Shared {
		out = append(out, s.Volume, p.SecondVolume(s))
	}
	return out
}
