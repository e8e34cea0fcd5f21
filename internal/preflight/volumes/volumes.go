package volumes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// VolumeUsable requires that each volume means the same disk on the destination, and that no other volume
// object means that disk too.
func VolumeUsable(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if len(i.Plan.Moved()) == 0 {
		return nil, nil
	}
	here, err := On(ctx, i, plans.Source)
	if err != nil {
		return nil, err
	}
	there := here
	if !i.Plan.OneCluster() {
		if there, err = On(ctx, i, plans.Destination); err != nil {
			return nil, err
		}
	}
	var out []check.Finding
	seen := map[string]bool{}
	for o := range i.Ordinals.All() {
		b, err := i.Volumes(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, v := range b.Volumes {
			found, err := usable(ctx, i, v, here, there, seen)
			if err != nil {
				return nil, err
			}
			for k := range found {
				found[k].Object = "volume " + v.Name + " of " + i.Plan.ClaimName(i.From, v.Template, o)
			}
			out = append(out, found...)
		}
	}
	for _, v := range i.Plan.Shared {
		found, err := usable(ctx, i, plans.Volume{Name: v.Volume, Handle: v.Handle}, here, there, seen)
		if err != nil {
			return nil, err
		}
		for k := range found {
			found[k].Object = "volume " + v.Volume + " of " + v.Claim
		}
		out = append(out, found...)
	}
	return out, nil
}

// volumeIndex has the volumes of the plan in one cluster: the objects by name, and the names of all objects
// that mean one of the plan's disks.
type volumeIndex struct {
	ByName   map[string]*corev1.PersistentVolume
	byHandle map[string][]string // by the plan's handle of a disk
	twins    map[string]*corev1.PersistentVolume
}

// On indexes the volumes of a cluster: all of them before the first write, since any of them may mean one of
// our disks, and later only those of the inspected ordinals.
func On(ctx context.Context, i check.Inspection, side plans.Side) (volumeIndex, error) {
	return check.Once(i, shelfOf(side), func() (volumeIndex, error) {
		wanted, err := wanted(ctx, i)
		if err != nil {
			return volumeIndex{}, err
		}
		s := volumeIndex{ByName: map[string]*corev1.PersistentVolume{}, byHandle: map[string][]string{}, twins: map[string]*corev1.PersistentVolume{}}
		handles := map[string]string{}
		for _, v := range wanted {
			s.ByName[v.Name], handles[storage.Canonical(v.Handle)] = nil, v.Handle
		}
		take := func(pv *corev1.PersistentVolume) {
			if _, ours := s.ByName[pv.Name]; ours {
				s.ByName[pv.Name] = destined(i, pv.DeepCopy())
			}
			if wanted, ok := handles[storage.Canonical(storage.HandleFor(i.Plan, pv))]; ok {
				s.byHandle[wanted] = append(s.byHandle[wanted], pv.Name)
				s.twins[pv.Name] = pv.DeepCopy()
			}
		}
		if err := onShelf(ctx, i, side, wanted, take); err != nil {
			return volumeIndex{}, fmt.Errorf("reading volumes on the %s: %w", side, err)
		}
		return s, nil
	})
}

// destined returns a volume of the source as the checks for another cluster must see it: as a CSI volume. A
// volume that cannot be written as one is returned unchanged, and refused.
func destined(i check.Inspection, pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	if i.Plan.OneCluster() {
		return pv
	}
	if csi, err := storage.AsCSI(pv); err == nil {
		return csi
	}
	return pv
}

// wanted returns the volumes of the inspected ordinals and, before the first write, those that all pods
// share.
func wanted(ctx context.Context, i check.Inspection) ([]plans.Volume, error) {
	var out []plans.Volume
	for o := range i.Ordinals.All() {
		b, err := i.Volumes(ctx, o)
		if err != nil {
			return nil, err
		}
		out = append(out, b.Volumes...)
	}
	if i.Midway {
		return out, nil
	}
	for _, v := range i.Plan.Shared {
		out = append(out, plans.Volume{Name: v.Volume, Handle: v.Handle})
	}
	return out, nil
}

func onShelf(ctx context.Context, i check.Inspection, side plans.Side, wanted []plans.Volume, take func(*corev1.PersistentVolume)) error {
	if !i.Midway {
		return clusters.Each(ctx, i.On[side], func() client.ObjectList { return &corev1.PersistentVolumeList{} }, take)
	}
	on := i.On.MayBeMissing()[side] // what the destination does not have is created, and Shrink reads what it has
	for _, v := range wanted {
		var pv corev1.PersistentVolume
		err := on.Get(ctx, client.ObjectKey{Name: v.Name}, &pv)
		if err == nil {
			take(&pv)
		} else if !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// usable checks one volume.
func usable(ctx context.Context, i check.Inspection, v plans.Volume, here, there volumeIndex, seen map[string]bool) ([]check.Finding, error) {
	pv := here.ByName[v.Name]
	if pv == nil {
		return nil, nil // gone since; the check of the claims reports it next time
	}
	var out []check.Finding
	add := func(saw, want, remedy string) { out = append(out, check.Finding{Saw: saw, Want: want, Remedy: remedy}) }
	if s, ok := plans.Stamped(pv); ok && !i.Ours(pv) {
		add("it is protected by plan "+s.Plan, "no plan to protect it", "finish or abort that plan")
	}
	if twins := here.byHandle[v.Handle]; len(twins) > 1 {
		add(fmt.Sprintf("the volumes %v all mean disk %s", twins, v.Handle), "one volume object for a disk", "delete the one that is not bound, with reclaim policy Retain")
	}
	if i.Plan.OneCluster() {
		if pv.Spec.HostPath != nil && pv.Spec.NodeAffinity == nil {
			out = append(out, check.Finding{
				Level: check.Warn, Saw: "it is a hostPath without node affinity: another folder on every node", Want: "the pod to find its data wherever it runs",
				Remedy: "keep the pod on its node, by a patch of the pod template or by the other nodes' taints",
			})
		}
		return out, nil
	}
	if why := immovable(pv); why != "" {
		add(why, "a source ("+storage.Sources()+") that both clusters reach", "its data would have to be copied, which this program does not do; if the application replicates its data, --empty "+v.Template)
	}
	if other := there.ByName[v.Name]; other != nil && !i.Ours(other) {
		add("the destination has a volume of this name"+usedBy(other), "the name to be free", leftover(other))
	} else if twins := there.byHandle[v.Handle]; other == nil && len(twins) > 0 {
		twin := there.twins[twins[0]]
		add(fmt.Sprintf("the destination has volume %v for the same disk%s", twins, usedBy(twin)), "none", leftover(twin))
	}
	if i.Midway {
		return out, nil
	}
	found, err := backend(ctx, i, pv, seen)
	return append(out, found...), err
}

// usedBy says which claim a volume belongs to, or "".
func usedBy(pv *corev1.PersistentVolume) string {
	if pv == nil || pv.Spec.ClaimRef == nil || pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed {
		return ""
	}
	return fmt.Sprintf(", of claim %s/%s", pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name)
}

// leftover is the remedy for a volume object in the way. One that belongs to a claim is in use, or of another move.
func leftover(pv *corev1.PersistentVolume) string {
	if s, held := plans.Stamped(pv); held {
		return "finish or abort plan " + s.Plan + ", which protects it; `stsmigrate get -A` lists the plans"
	}
	if usedBy(pv) != "" {
		return "it is in use: you have probably named the wrong cluster (--to-context), or the set was moved there before. Nothing that is in use is to be deleted for a move"
	}
	return "no claim has it: delete the object there if it is a leftover (reclaim policy Retain first)"
}

// immovable returns the reason why a volume means nothing in another cluster, or "".
func immovable(pv *corev1.PersistentVolume) string {
	s := pv.Spec.PersistentVolumeSource
	switch {
	case s.HostPath != nil:
		return "it is a hostPath: a folder on a node of its cluster"
	case s.Local != nil:
		return "it is a local volume: a disk of one node of its cluster"
	case pinned(pv):
		return "its node affinity names a single machine"
	case s.CSI != nil && storage.Known(s.CSI).Handles == storage.ClusterHandles:
		return "CSI driver " + s.CSI.Driver + " keeps its volumes in objects or on nodes of its own cluster"
	case ofCluster(fileServer(pv)):
		return "its file server " + fileServer(pv) + " is a Service of its own cluster: in another one that name means another server, or none"
	case storage.SourceOf(pv) == nil:
		return "its source is one of Kubernetes' own that means something only inside its cluster"
	}
	return ""
}

// Within returns the reason why the volumes of a set mean nothing in another cluster, or "".
func Within(ctx context.Context, i check.Inspection) (string, error) {
	if len(i.Plan.Moved())+len(i.Plan.Shared) == 0 {
		return "", nil
	}
	here, err := On(ctx, i, plans.Source)
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(here.ByName)) {
		pv := here.ByName[name]
		if pv == nil {
			continue
		}
		if csi, err := storage.AsCSI(pv); err == nil {
			pv = csi
		}
		if why := immovable(pv); why != "" {
			return "volume " + name + ": " + why, nil
		}
	}
	return "", nil
}

// pinned reports whether a volume belongs to one machine: by the node's name, or by a label that drivers of
// local disks give each node.
func pinned(pv *corev1.PersistentVolume) bool {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return false
	}
	for _, t := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range t.MatchExpressions {
			switch e.Key[strings.LastIndex(e.Key, "/")+1:] {
			case "hostname", "node", "nodename", "host":
				return true
			}
		}
		if len(t.MatchFields) > 0 {
			return true
		}
	}
	return false
}

// shelfOf is the key of check.Once for the volumes of a side.
type shelfOf plans.Side
