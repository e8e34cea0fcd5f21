package storage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Facts are what a cluster agrees to when it lets a plan make a volume: whose it is, for which claim, which disk it
// means, and which Secrets its driver is given. The admission policy of new volumes works out the same lines of the
// object that it is asked about, so their form is part of what is installed in clusters. The driver's attributes are among them, as
// many a driver goes by these and not by the handle.
func Facts(plan string, pv *corev1.PersistentVolume) ([]string, error) {
	out := []string{"plan " + plan}
	if ref := pv.Spec.ClaimRef; ref != nil {
		out = append(out, "claim "+ref.Namespace+"/"+ref.Name)
	}
	switch {
	case pv.Spec.CSI != nil:
		out = append(out, "csi "+pv.Spec.CSI.Driver+" "+pv.Spec.CSI.VolumeHandle)
		for _, k := range slices.Sorted(maps.Keys(pv.Spec.CSI.VolumeAttributes)) {
			out = append(out, "attribute "+k+"="+pv.Spec.CSI.VolumeAttributes[k])
		}
	case pv.Spec.NFS != nil:
		out = append(out, "nfs "+pv.Spec.NFS.Server+":"+pv.Spec.NFS.Path)
	default:
		handle, _ := Handle(pv)
		return nil, fmt.Errorf("volume %s is %s: a plan makes volumes of the sources csi and nfs only", pv.Name, handle)
	}
	for _, s := range Secrets(pv) {
		out = append(out, "secret "+s.Namespace+"/"+s.Name)
	}
	for _, fact := range out {
		// A line break would make two facts of one, and the second could say anything.
		if strings.ContainsFunc(fact, unicode.IsControl) {
			return nil, fmt.Errorf("volume %s cannot be agreed to: %q has control characters", pv.Name, fact)
		}
	}
	return out, nil
}

// Made is the object that a side has of a volume, and otherwise the one that a plan would make there of the other side's;
// there says which. It is nil where neither side has it. A reason says why none can be made.
func Made(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client, side plans.Side, name string) (pv *corev1.PersistentVolume, there bool, why string, err error) {
	v := mover{clusters.Pair{Plan: p, On: on}}
	if pv, err = v.volumeOf(ctx, side, name); err != nil || pv != nil {
		return pv, true, "", err
	}
	from := name
	at := slices.IndexFunc(p.Shared, func(s plans.SharedVolume) bool { return side == plans.Destination && p.SecondVolume(s) == name })
	if at >= 0 {
		from = p.Shared[at].Volume
	} else if p.OneCluster() {
		return nil, false, "", nil
	}
	held, err := v.volumeOf(ctx, side.Other(), from)
	if err != nil || held == nil || held.Spec.ClaimRef == nil {
		return nil, false, "", err
	}
	if at >= 0 {
		if pv, err = v.twice(p.Shared[at], held); err != nil {
			return nil, false, err.Error(), nil //nolint:nilerr // trying again would not mend it
		}
	} else if pv, why, err = v.rewritten(held, side, RefTo(p.On(side).Namespace, held.Spec.ClaimRef.Name, "")); err != nil || why != "" {
		return nil, false, why, err
	}
	plans.Stamp{Plan: p.ID}.Put(pv)
	v.label(pv)
	return pv, false, "", nil
}

// label marks a volume that the plan makes, as the admission policy of new volumes is asked about those that have it.
func (v mover) label(pv *corev1.PersistentVolume) {
	if pv.Labels == nil {
		pv.Labels = map[string]string{}
	}
	pv.Labels[plans.PlanLabel] = v.Plan.Name
}
