package preflight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"

	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/volumes"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// SourceSettled requires every ordinal available, one revision and no partition: a move starts from a set at
// rest (S2, S13).
func SourceSettled(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	set := i.Now.Set
	var out []check.Finding
	add := func(saw, want, remedy string) {
		out = append(out, check.Finding{Object: i.Name(plans.Source), Saw: saw, Want: want, Remedy: remedy})
	}
	if why := sets.Unsettled(i.Plan, plans.Source, set); why != "" {
		add(why, "one revision", "wait for the rolling update, or finish it")
	}
	if ru := set.Spec.UpdateStrategy.RollingUpdate; ru != nil && ru.Partition != nil && *ru.Partition != 0 {
		remedy := "set it to 0 and let the update finish"
		if _, paused := set.Annotations[sets.PausedFrom]; paused {
			from := i.Plan.On(plans.Source)
			remedy = fmt.Sprintf("its update is paused: resume it, and let it finish\nstsmigrate rollout resume %s -n %s%s", from.Typed(), from.Namespace, i.Flags[plans.Source])
		}
		add(fmt.Sprintf("updateStrategy has partition %d", *ru.Partition), "no partition", remedy)
	}
	why, err := sets.Unavailable(ctx, i.Pair, plans.Source, set)
	if err != nil {
		return nil, err
	}
	if why != "" {
		add(why, "every ordinal available", "repair it first; `kubectl describe pod` says why")
	}
	if set.DeletionTimestamp != nil {
		add("it is being deleted", "it to stay", "find out who deleted it")
	}
	return out, nil
}

// NameFree requires that no other plan of the same name is still needed.
func NameFree(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if i.Orchestrated != nil {
		return nil, nil // the plan is kept where the orchestrator runs, and storing it has checked the name
	}
	store := records.NewStore(i.On[plans.Destination], i.Plan.Destination.Namespace, i.Plan.Name)
	have, err := store.Plan(ctx)
	if errors.As(err, new(records.ErrNoPlan)) || err == nil && have.ID == i.Plan.ID {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if why := store.Needed(ctx, have); why != nil {
		return []check.Finding{{
			Object: fmt.Sprintf("plan %s of namespace %s on the destination", i.Plan.Name, i.Plan.Destination.Namespace), Saw: fmt.Sprintf("it is another one (%s), %v", have.ID, why),
			Want: "a name that no such plan has", Remedy: "finish it, or give this one another --name",
		}}, nil
	}
	return nil, nil
}

// Names requires what the bridge of the names depends on: the governing Service, headless as when the plan
// was made, and, for names that the other cluster does not know, a namespace to make a Service in that has no
// foreign Service of that name.
func Names(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if i.Midway {
		return served(ctx, i)
	}
	var out []check.Finding
	if names := i.Plan.Names; names.Service != "" && i.Now.Names.Service != names.Service {
		out = append(out, check.Finding{
			Object: fmt.Sprintf("Service %s/%s", i.Plan.Source.Namespace, names.Service), Saw: "it is gone, or no longer headless",
			Want: "the headless Service that gives the pods their names", Remedy: "bring it back, or make a new plan with --names none",
		})
	}
	for _, side := range i.Plan.Exports() {
		err := i.On[side].List(ctx, &mcsv1alpha1.ServiceExportList{}, client.InNamespace(i.Plan.On(side).Namespace))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			out = append(out, check.Finding{
				Object: "the cluster of the " + string(side), Saw: "it does not know ServiceExports (multicluster.x-k8s.io/v1alpha1)",
				Want: "Multi-Cluster Services", Remedy: "install an implementation of them, or make a new plan with --names bridge or none",
			})
		} else if err != nil {
			return nil, err
		}
	}
	for _, d := range i.Plan.Directories() {
		kept, err := kept(ctx, i, d)
		if err != nil {
			return nil, err
		}
		out = append(out, kept...)
		if d.Lists != "" {
			continue
		}
		found, err := standIn(ctx, i, d)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// served requires the Service of the side that the ordinals leave, and room for those that stand in for one of the other
// cluster. Without them no pod that has arrived is found there by its name, and its wave waits for that.
func served(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	for _, d := range i.Plan.Directories() {
		if d.Lists == "" {
			if found, err := standIn(ctx, i, d); err != nil || len(found) > 0 {
				return found, err
			}
		}
		if d.Lists != i.From || d.Client != "" {
			continue
		}
		o, err := i.Dependency(ctx, i.From, plans.Dependency{Kind: "Service", Name: i.Plan.Names.Service})
		if err != nil {
			return nil, err
		}
		if o == nil {
			return []check.Finding{{
				Object: fmt.Sprintf("Service %s/%s on the %s", d.Namespace, i.Plan.Names.Service, d.On), Saw: "it does not exist any more",
				Want: "the Service by which the pods that stay find those that have left", Remedy: "recreate it",
			}}, nil
		}
	}
	return nil, nil
}

// kept requires that no names of an earlier plan are left: no process keeps them correct once the pods move
// again, and DNS would answer with them beside ours.
func kept(ctx context.Context, i check.Inspection, d plans.Directory) ([]check.Finding, error) {
	var all discoveryv1.EndpointSliceList
	err := i.On[d.On].List(ctx, &all, client.InNamespace(d.Namespace), client.MatchingLabels{
		discoveryv1.LabelServiceName: i.Plan.Names.ServiceOf(d), discoveryv1.LabelManagedBy: dns.ManagedBy,
	})
	for _, s := range all.Items {
		if plan := s.Labels[dns.PlanLabel]; plan != i.Plan.ID {
			return []check.Finding{{
				Object: fmt.Sprintf("EndpointSlice %s/%s on the %s", d.Namespace, s.Name, d.On), Saw: "it keeps the names of plan " + plan,
				Want: "no names that an earlier plan has left", Remedy: "take them away with `stsmigrate names PLAN --remove`; `stsmigrate get -A` lists the plans",
			}}, nil
		}
	}
	return nil, err
}

// standIn requires room for a Service that stands in for one of the other cluster.
func standIn(ctx context.Context, i check.Inspection, d plans.Directory) ([]check.Finding, error) {
	var namespace corev1.Namespace
	err := i.On[d.On].Get(ctx, client.ObjectKey{Name: d.Namespace}, &namespace)
	if apierrors.IsNotFound(err) {
		return []check.Finding{{
			Object: fmt.Sprintf("namespace %s on the %s", d.Namespace, d.On), Saw: "it does not exist",
			Want:   fmt.Sprintf("a namespace in which %s can be looked up", i.Plan.Host(i.To(), i.Plan.Start, d.Namespace)),
			Remedy: "create it, move to a namespace of the same name, or make a new plan with --names none",
		}}, nil
	}
	if err != nil {
		return nil, err
	}
	var s corev1.Service
	err = i.On[d.On].Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: i.Plan.Names.Service}, &s)
	if apierrors.IsNotFound(err) || err == nil && s.Labels[dns.PlanLabel] == i.Plan.ID {
		return nil, nil
	}
	f := check.Finding{
		Object: fmt.Sprintf("Service %s/%s on the %s", d.Namespace, i.Plan.Names.Service, d.On), Saw: "it exists",
		Want: "no Service there, so that the names of the other cluster can be answered", Remedy: "make a new plan with --names none, or delete it if no client asks for its name",
	}
	if len(s.Spec.Selector) > 0 || s.Spec.Type == corev1.ServiceTypeExternalName {
		f.Saw, f.Remedy = "it exists, and leads to something ("+whose(&s)+")", "make a new plan with --names none: what is in use is not to be deleted for a move"
	}
	return []check.Finding{f}, err
}

// ClaimsBound requires that each claim of the range and its volume name each other.
func ClaimsBound(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	for o := range i.Ordinals.All() {
		b, err := i.Volumes(ctx, o)
		if err != nil {
			return nil, err
		}
		if b.Why != "" {
			out = append(out, check.Finding{Object: "pod " + i.Plan.Pod(i.From, o), Saw: b.Why, Want: "claims and volumes that name each other", Remedy: "repair the storage of this ordinal first"})
		}
	}
	return out, nil
}

// ClaimsUnshared refuses claims that other pods mount or that a finalizer keeps: they would delay the
// deletion of the claim while an ordinal is down.
func ClaimsUnshared(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	var pods corev1.PodList
	if err := i.On[plans.Source].List(ctx, &pods, client.InNamespace(i.Plan.Source.Namespace)); err != nil {
		return nil, err
	}
	out, err := volumes.ClaimsKept(ctx, i)
	if err != nil {
		return nil, err
	}
	for k := range pods.Items {
		p := &pods.Items[k]
		for o := range i.Ordinals.All() {
			for _, c := range i.Plan.Moved() {
				if claim := i.Plan.ClaimName(i.From, c.Template, o); p.Name != i.Plan.Pod(i.From, o) && storage.Mounts(p, claim) {
					remedy := "wait for that pod, or let its owner end it"
					if ended(p) {
						remedy = "delete that pod: it has ended, and keeps the claim all the same"
					}
					out = append(out, check.Finding{
						Object: "claim " + claim, Saw: "pod " + p.Name + " mounts it too", Want: "no pod but " + i.Plan.Pod(i.From, o), Remedy: remedy,
					})
				}
			}
		}
	}
	return out, nil
}

// DestinationFree refuses pods and claims that are in the way of the ordinals that come. Before the first write it also refuses a
// destination set that has ordinals.
func DestinationFree(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	i.Pair = i.MayBeMissing() // the set's controller will create them
	var out []check.Finding
	if hasOrdinals(i) {
		return occupied(ctx, i)
	}
	template, err := i.Arriving()
	if err != nil {
		return nil, err
	}
	made := slices.Sorted(maps.Keys(sets.Ephemeral(template.Spec)))
	there, err := podsInTheWay(ctx, i)
	if err != nil {
		return nil, err
	}
	for o := range i.Ordinals.All() {
		if pod := i.Plan.Pod(i.To(), o); there[pod] {
			found, err := podInTheWay(ctx, i, pod)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
		for _, c := range i.Plan.Claims {
			if c.Mode == plans.Empty && i.From == plans.Destination {
				continue // the claim that the ordinal had on the source
			}
			found, err := claimFree(ctx, i, i.Plan.ClaimName(i.To(), c.Template, o), "the set would use it instead of the volume of the "+string(i.From))
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
		for _, name := range made {
			found, err := claimFree(ctx, i, i.Plan.Pod(i.To(), o)+"-"+name, "the pod would wait for it: it is not the one that is made with the pod")
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// podsInTheWay returns the names of the pods on the destination that have the name of an inspected ordinal. Before the
// first write it may return other names too.
func podsInTheWay(ctx context.Context, i check.Inspection) (map[string]bool, error) {
	out := map[string]bool{}
	if !i.Midway {
		all, err := i.EveryPod(ctx, i.To())
		for k := range all {
			out[all[k].Name] = true
		}
		return out, err
	}
	for o := range i.Ordinals.All() {
		pod, err := i.Pod(ctx, i.To(), o)
		if err != nil {
			return nil, err
		}
		out[i.Plan.Pod(i.To(), o)] = pod != nil
	}
	return out, nil
}

// claimFree refuses a claim whose name is needed on the destination.
func claimFree(ctx context.Context, i check.Inspection, name, why string) ([]check.Finding, error) {
	ns := i.Plan.On(i.To()).Namespace
	var claim corev1.PersistentVolumeClaim
	err := i.On[i.To()].Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, &claim)
	if apierrors.IsNotFound(err) || err == nil && i.Ours(&claim) { // made late by a process that was fenced, and taken away before the wave leaves
		return nil, nil
	}
	if err != nil {
		return check.Unseen(err, "claim "+ns+"/"+name, "persistentvolumeclaims")
	}
	return claimInTheWay(ctx, i, &claim, why)
}

// hasOrdinals reports whether there is a destination set with ordinals before the first write.
func hasOrdinals(i check.Inspection) bool {
	return i.Now.Existing != nil && !i.Midway && plans.SliceOf(i.Now.Existing).Replicas != 0
}

// DestinationCompatible compares an existing destination set with the result that the same API server returns
// for a copy of the source's set (dry run), so that defaults do not count as differences.
func DestinationCompatible(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	have := i.Now.Existing
	if have == nil || hasOrdinals(i) { // the check destination-free reports one that is in use
		return nil, nil
	}
	want, err := tryOut(ctx, i)
	if err != nil {
		return nil, nil //nolint:nilerr // the check admission reports it
	}
	remedy := "make them equal, or choose another destination. It has no ordinals: if it is needed no more, it can be deleted, and the plan creates it"
	if i.Midway {
		remedy = "find out which of the two was changed, and change it back"
	}
	var out []check.Finding
	for _, field := range sets.Differing(have, want) {
		if i.Midway && field == "template" {
			continue // the looks compare it before every wave, and hear what the user says of it
		}
		out = append(out, check.Finding{Object: i.Name(plans.Destination), Saw: "spec." + field + " differs from the source's", Want: "equal", Remedy: remedy})
	}
	return out, nil
}
