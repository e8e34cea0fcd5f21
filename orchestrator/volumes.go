package orchestrator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// volumesUsable wants each volume to mean the same disk on the destination, and
// no other volume object to mean it too.
func volumesUsable(ctx context.Context, i inspection) ([]Finding, error) {
	if len(i.plan.Moved()) == 0 {
		return nil, nil
	}
	here, err := i.shelf(ctx, plans.Source)
	if err != nil {
		return nil, err
	}
	there := here
	if !i.plan.OneCluster() {
		if there, err = i.shelf(ctx, plans.Destination); err != nil {
			return nil, err
		}
	}
	var out []Finding
	seen := map[string]bool{}
	for o := range i.each {
		b, err := i.volumes(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, v := range b.volumes {
			found, err := i.usable(ctx, v, here, there, seen)
			if err != nil {
				return nil, err
			}
			for k := range found {
				found[k].Object = "volume " + v.Name + " of " + i.plan.ClaimName(v.Template, o)
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// shelf is the volumes of one cluster by name and by disk.
type shelf struct {
	byName   map[string]*corev1.PersistentVolume
	byHandle map[string][]string
}

// shelf reads the volumes of a cluster: all of them before the first write, since any
// may mean one of our disks, and later only those of the ordinals that are asked about.
func (i inspection) shelf(ctx context.Context, side plans.Side) (shelf, error) {
	if s, known := i.notes.shelves[side]; known {
		return s, nil
	}
	volumes, err := i.onShelf(ctx, side)
	if err != nil {
		return shelf{}, fmt.Errorf("reading volumes on the %s: %w", side, err)
	}
	s := shelf{byName: map[string]*corev1.PersistentVolume{}, byHandle: map[string][]string{}}
	for k := range volumes {
		pv := &volumes[k]
		handle, _ := storage.Handle(pv)
		s.byName[pv.Name] = pv
		s.byHandle[handle] = append(s.byHandle[handle], pv.Name)
	}
	i.notes.shelves[side] = s
	return s, nil
}

func (i inspection) onShelf(ctx context.Context, side plans.Side) ([]corev1.PersistentVolume, error) {
	if !i.midway {
		var list corev1.PersistentVolumeList
		err := i.on[side].List(ctx, &list)
		return list.Items, err
	}
	var out []corev1.PersistentVolume
	for o := range i.each {
		b, err := i.volumes(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, v := range b.volumes {
			var pv corev1.PersistentVolume
			err := i.on[side].Get(ctx, client.ObjectKey{Name: v.Name}, &pv)
			if err == nil {
				out = append(out, pv)
			} else if !apierrors.IsNotFound(err) {
				return nil, err
			}
		}
	}
	return out, nil
}

// usable looks at one volume. What is true of a whole StorageClass or driver is
// reported once (seen).
func (i inspection) usable(ctx context.Context, v plans.Volume, here, there shelf, seen map[string]bool) ([]Finding, error) {
	var out []Finding
	add := func(saw, want, remedy string) { out = append(out, Finding{Saw: saw, Want: want, Remedy: remedy}) }
	pv := here.byName[v.Name]
	if pv == nil {
		return nil, nil // gone since; the claims' check will say so next time
	}
	if s, ok := plans.Stamped(pv); ok && !i.ours(pv) {
		add("it is held by plan "+s.Plan, "no plan to hold it", "finish or abort that plan")
	}
	if twins := here.byHandle[v.Handle]; len(twins) > 1 {
		add(fmt.Sprintf("the volumes %v all mean disk %s", twins, v.Handle), "one volume object for a disk", "delete the one that is not bound, with reclaim policy Retain")
	}
	if i.plan.OneCluster() {
		return out, nil
	}
	if _, portable := storage.Handle(pv); !portable {
		add("its source means something only inside its cluster", "a csi or nfs source", "this kind of volume cannot be re-imported; its data would have to be copied")
	}
	if other := there.byName[v.Name]; other != nil && !i.ours(other) {
		add("the destination has a volume of this name", "the name to be free", "delete it there if it is a leftover (reclaim policy Retain first)")
	} else if twins := there.byHandle[v.Handle]; other == nil && len(twins) > 0 {
		add(fmt.Sprintf("the destination has volume %v for the same disk", twins), "none", "delete it there (reclaim policy Retain first)")
	}
	if pinned(pv) {
		add("its node affinity names a host", "a volume that any node can reach", "a volume of one machine cannot be re-imported; its data would have to be copied")
	}
	if i.midway {
		return out, nil
	}
	found, err := i.shared(ctx, pv, seen)
	return append(out, found...), err
}

// pinned says whether a volume belongs to one machine.
func pinned(pv *corev1.PersistentVolume) bool {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return false
	}
	for _, t := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range t.MatchExpressions {
			if e.Key == corev1.LabelHostname {
				return true
			}
		}
		if len(t.MatchFields) > 0 {
			return true
		}
	}
	return false
}

// shared looks for signs that both clusters use one storage backend: the same
// driver, a class of the same provisioner and parameters, the Secrets the driver
// needs. No API can prove that a handle means the same disk; these can refute it.
func (i inspection) shared(ctx context.Context, pv *corev1.PersistentVolume, seen map[string]bool) ([]Finding, error) {
	var out []Finding
	if csi := pv.Spec.CSI; csi != nil && !seen["driver "+csi.Driver] {
		seen["driver "+csi.Driver] = true
		err := i.on[plans.Destination].Get(ctx, client.ObjectKey{Name: csi.Driver}, &storagev1.CSIDriver{})
		if apierrors.IsNotFound(err) {
			out = append(out, Finding{Saw: "CSI driver " + csi.Driver + " is not installed on the destination", Want: "the same driver on the same backend", Remedy: "install it there"})
		} else if err != nil {
			return nil, err
		}
	}
	if class := pv.Spec.StorageClassName; class != "" && !seen["class "+class] {
		seen["class "+class] = true
		f, err := i.sameClass(ctx, class)
		if err != nil {
			return nil, err
		}
		out = append(out, f...)
	}
	f, err := i.secretsThere(ctx, pv, seen)
	return append(out, f...), err
}

func (i inspection) sameClass(ctx context.Context, name string) ([]Finding, error) {
	var a, b storagev1.StorageClass
	if err := i.on[plans.Source].Get(ctx, client.ObjectKey{Name: name}, &a); err != nil {
		return nil, client.IgnoreNotFound(err) // nothing to compare with
	}
	err := i.on[plans.Destination].Get(ctx, client.ObjectKey{Name: name}, &b)
	if apierrors.IsNotFound(err) {
		return []Finding{{Saw: "StorageClass " + name + " does not exist on the destination", Want: "a class of that name on the same backend", Remedy: "create it there"}}, nil
	}
	if err != nil {
		return nil, err
	}
	if a.Provisioner != b.Provisioner || !equality.Semantic.DeepEqual(a.Parameters, b.Parameters) {
		return []Finding{{
			Saw: "StorageClass " + name + " has another provisioner or other parameters on the destination", Want: "one and the same storage backend",
			Remedy: "volumes can be re-imported only from a backend that both clusters share",
		}}, nil
	}
	return nil, nil
}

func (i inspection) secretsThere(ctx context.Context, pv *corev1.PersistentVolume, seen map[string]bool) ([]Finding, error) {
	csi := pv.Spec.CSI
	if csi == nil {
		return nil, nil
	}
	var out []Finding
	for _, ref := range []*corev1.SecretReference{csi.ControllerPublishSecretRef, csi.NodeStageSecretRef, csi.NodePublishSecretRef, csi.ControllerExpandSecretRef, csi.NodeExpandSecretRef} {
		if ref == nil || seen["secret "+ref.Namespace+"/"+ref.Name] {
			continue
		}
		seen["secret "+ref.Namespace+"/"+ref.Name] = true
		err := i.on[plans.Destination].Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &corev1.Secret{})
		if apierrors.IsNotFound(err) {
			out = append(out, Finding{Saw: fmt.Sprintf("its driver needs Secret %s/%s, which the destination does not have", ref.Namespace, ref.Name), Want: "the Secret on both sides", Remedy: "create it there"})
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}
