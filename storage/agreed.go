package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Facts lists the facts that a cluster consents to when it lets a plan create a volume: the plan, the claim,
// the disk, and the Secrets that the driver receives. The admission policy for new volumes derives the same
// lines from the object under review, so their form is part of what is installed in clusters. The driver's
// attributes are among them, because many drivers identify the disk by its attributes and not by the handle.
// Facts returns an error for a volume source that is not in sources, and for a fact with control characters.
func Facts(plan string, pv *corev1.PersistentVolume) ([]string, error) {
	out := []string{"plan " + plan}
	if ref := pv.Spec.ClaimRef; ref != nil {
		out = append(out, "claim "+ref.Namespace+"/"+ref.Name)
	}
	source := SourceOf(pv)
	if source == nil {
		handle, _ := Handle(pv)
		return nil, fmt.Errorf("volume %s is %s: a plan makes volumes only of the source %s", pv.Name, handle, Sources())
	}
	out = append(out, source.Facts...)
	for _, s := range Secrets(pv) {
		out = append(out, "secret "+s.Namespace+"/"+s.Name)
	}
	for _, fact := range out {
		// A line break would turn one fact into two, and the second could claim anything.
		if strings.ContainsFunc(fact, unicode.IsControl) {
			return nil, fmt.Errorf("volume %s cannot be agreed to: %q has control characters", pv.Name, fact)
		}
	}
	return out, nil
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
