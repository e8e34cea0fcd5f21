package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/api/consent"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Agreed returns what a cluster agrees to when it lets a plan create a volume: all fields of its spec but those that
// change while a plan waits, and the Secrets that helpers of its driver receive. The admission policy for new volumes
// compares the same with the object under review (deploy/chart/templates/policies.yaml), so its form is part of what is
// installed in clusters. Agreed returns an error for a volume source that is not in sources.
func Agreed(plan string, pv *corev1.PersistentVolume) (consent.Volume, error) {
	out := consent.Volume{Name: pv.Name, Plan: plan}
	if SourceOf(pv) == nil {
		handle, _ := Handle(pv)
		return out, fmt.Errorf("volume %s is %s: a plan makes volumes only of the source %s", pv.Name, handle, Sources())
	}
	spec := pv.Spec.DeepCopy()
	spec.Capacity, spec.PersistentVolumeReclaimPolicy, spec.VolumeAttributesClassName = nil, "", nil
	if spec.VolumeMode != nil && *spec.VolumeMode == corev1.PersistentVolumeFilesystem {
		spec.VolumeMode = nil // the default of API servers
	}
	if ref := spec.ClaimRef; ref != nil {
		spec.ClaimRef = &corev1.ObjectReference{Namespace: ref.Namespace, Name: ref.Name}
	}
	for _, note := range notedSecrets() {
		for _, key := range []string{note + "-name", note + "-namespace"} {
			if value, noted := pv.Annotations[key]; noted {
				out.Annotations = labels.Merge(out.Annotations, labels.Set{key: value})
			}
		}
	}
	raw, err := json.Marshal(spec)
	out.Spec = runtime.RawExtension{Raw: raw}
	return out, err
}

// Made returns the volume object of a side if it exists. Otherwise it returns the object that a plan would
// create there from the one of the other side. there reports which of the two pv is. pv is nil if neither
// side has the volume; why is the reason why none can be created.
func Made(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client, side plans.Side, name string) (pv *corev1.PersistentVolume, there bool, why string, err error) {
	v := keeper{objects{clusters.Pair{Plan: p, On: on}}}
	if pv, err = v.volumeOf(ctx, side, name); err != nil || pv != nil {
		return pv, true, "", err
	}
	from := name
	at := slices.IndexFunc(p.Shared, func(s plans.SharedVolume) bool { return side == plans.Destination && p.SecondVolume(s) == name })
	if at >= 0 {
		from = p.Shared[at].Volume
	} else if !slices.ContainsFunc(p.Moved(), func(c plans.ClaimMove) bool { return !c.Mode.OneObject() }) {
		return nil, false, "", nil
	}
	held, err := v.volumeOf(ctx, side.Other(), from)
	if err != nil || held == nil || held.Spec.ClaimRef == nil {
		return nil, false, "", err
	}
	if at >= 0 {
		if pv, err = (sharedVolumes{v}).twice(p.Shared[at], held); err != nil {
			return nil, false, err.Error(), nil //nolint:nilerr // trying again would not mend it
		}
	} else if pv, why, err = (reimporting{v}).rewritten(held, side, RefTo(p.On(side).Namespace, held.Spec.ClaimRef.Name, "")); err != nil || why != "" {
		return nil, false, why, err
	}
	plans.Stamp{Plan: p.ID}.Put(pv)
	v.label(pv)
	return pv, false, "", nil
}
