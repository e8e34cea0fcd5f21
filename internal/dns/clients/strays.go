package clients

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Strays says in one line each, which Services of clients are not served as the plan says: one that it does not know, since
// it was made, or began to select the pods, after the plan; one that is on neither side any more; a twin that is gone. What
// may not be listed is left out.
func Strays(ctx context.Context, w clusters.Pair) (out []string) {
	if len(w.Plan.Directories()) == 0 {
		return nil // none is bridged, and Roles have no right to look
	}
	set, err := w.Set(ctx, plans.Source)
	if err != nil || set == nil {
		set, err = w.Set(ctx, plans.Destination)
	}
	if err != nil || set == nil {
		return nil
	}
	there := map[plans.Side]map[string]*corev1.Service{}
	for _, side := range plans.Sides() {
		at := Side{On: w.On[side], Namespace: w.Plan.On(side).Namespace, Set: set, Ordinals: w.Plan.Ordinals()}
		found, all, err := at.look(ctx)
		switch {
		case apierrors.IsForbidden(err):
			return nil
		case err != nil:
			return []string{plans.Line("Services of clients: " + err.Error())}
		}
		there[side] = map[string]*corev1.Service{}
		for k := range all {
			there[side][all[k].Name] = &all[k]
		}
		out = append(out, unknown(w.Plan, side, found)...)
	}
	return append(out, gone(w.Plan, there)...)
}

// unknown returns what is to be said of the Services of a side that the plan does not know.
func unknown(p *plans.Plan, side plans.Side, found []Service) (out []string) {
	for _, s := range found {
		if slices.Contains(p.Names.Clients, s.Name) || s.Name == p.Names.Service || len(s.Pods) == 0 {
			continue
		}
		var pods []string
		for _, pod := range s.Pods {
			pods = append(pods, pod.Name)
		}
		slices.Sort(pods)
		line := fmt.Sprintf("Service %s/%s on the %s: it was made, or began to select the pods, after the plan, so that it has those of the %s alone (%s), and loses each that leaves",
			s.Namespace, s.Name, side, side, strings.Join(pods[:min(3, len(pods))], ", "))
		if k := slices.IndexFunc(found, func(o Service) bool {
			return slices.Contains(p.Names.Clients, o.Name) && maps.Equal(o.Spec.Selector, s.Spec.Selector)
		}); k >= 0 {
			line += fmt.Sprintf("; let its clients use Service %s until the end, which has those of both sides", found[k].Name)
		} else {
			line += "; let its clients wait until the end of the plan, or abort, and make a new plan"
		}
		out = append(out, plans.Line(line))
	}
	return out
}

// gone returns what is to be said of the Services of the plan that are not there.
func gone(p *plans.Plan, there map[plans.Side]map[string]*corev1.Service) (out []string) {
	for _, name := range p.Names.Clients {
		if there[plans.Source][name] == nil && there[plans.Destination][name] == nil {
			out = append(out, plans.Line(fmt.Sprintf("Service %s of clients is on neither side any more: make it again if it has clients, and it is bridged", name)))
		}
	}
	for _, d := range p.Dependencies {
		from, to := there[plans.Source][d.Name], there[plans.Destination][d.Name]
		if d.Twin == nil || from == nil {
			continue
		}
		name := fmt.Sprintf("Service %s/%s on the destination", p.Destination.Namespace, d.Name)
		if to == nil {
			out = append(out, plans.Line(name+": the plan makes it once, as the twin of the source's, and it is gone; make it again if it has clients, and it is bridged"))
		} else if s, marked := plans.Stamped(to); !marked || s.Plan != p.ID {
			out = append(out, plans.Line(name+": it is not the twin that the plan makes, but another's: it stays as it is, also after an abort"))
		}
	}
	return out
}
