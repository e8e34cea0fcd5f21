package pods

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling"
	"github.com/stsmigrate/stsmigrate/plans"
)

// crowd is the cluster that the pods come to, and what of it may not be read: the pods of other namespaces, and the labels
// of namespaces that a rule asks for.
type crowd struct {
	world              scheduling.World
	partly, unlabelled bool
}

// crowdOf reads the cluster that the pods come to. Those that leave it go into the question, since they are there until
// their wave.
func crowdOf(ctx context.Context, i check.Inspection, q question, nodes []corev1.Node) (c crowd, err error) {
	c.world.Nodes = nodes
	all, err := residents(ctx, i)
	if err != nil {
		return c, err
	}
	c.partly = all.partly
	if err := c.populate(ctx, i, q, all); err != nil {
		return c, err
	}
	if err := c.label(ctx, i, q); err != nil {
		return c, err
	}
	return c, c.attach(ctx, i, q)
}

// population are the pods of a cluster that have a node, by UID.
type population struct {
	pods   map[types.UID]scheduling.Pod
	partly bool // of the namespaces of the plan alone
}

// residents lists the pods of the cluster. Those of the set are read again before every wave, the others as often as the
// standing checks.
func residents(ctx context.Context, i check.Inspection) (population, error) {
	return check.Kept(i, residentsOf(i.To()), func() (out population, err error) {
		out.pods = map[types.UID]scheduling.Pod{}
		var wrong error
		visit := func(p *corev1.Pod) {
			if p.Spec.NodeName == "" || ended(p) || placeholder(i, p) {
				return
			}
			of, err := scheduling.PodOf(p)
			if err != nil && wrong == nil {
				wrong = err
			}
			of.Labels = maps.Clone(p.Labels)
			out.pods[p.UID] = of
		}
		list := func(opts ...client.ListOption) error {
			return clusters.Each(ctx, i.On[i.To()], func() client.ObjectList { return &corev1.PodList{} }, visit, opts...)
		}
		if err = list(); apierrors.IsForbidden(err) {
			out.partly, err = true, nil
			for _, side := range here(i) {
				if err == nil {
					err = list(client.InNamespace(i.Plan.On(side).Namespace))
				}
			}
		}
		if err == nil {
			err = wrong
		}
		if err != nil {
			return out, fmt.Errorf("listing the pods on the %s: %w", i.To(), err)
		}
		return out, nil
	})
}

// here returns the sides that are in the cluster which the pods come to.
func here(i check.Inspection) []plans.Side {
	if i.Plan.OneCluster() {
		return plans.Sides()
	}
	return []plans.Side{i.To()}
}

// populate puts the pods into the cluster: the set's own as they are now, and the others as they were listed.
func (c *crowd) populate(ctx context.Context, i check.Inspection, q question, all population) error {
	for _, side := range here(i) {
		list, err := i.EveryPod(ctx, side)
		if err != nil {
			return err
		}
		live := map[string]*corev1.Pod{}
		for k := range list {
			if p := &list[k]; i.Plan.HasPod(side, p.Name) && p.Spec.NodeName != "" && !ended(p) {
				live[p.Name] = p
			}
		}
		if side == i.From {
			if err := q.leave(i, live); err != nil {
				return err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(live)) {
			stays, err := staying(i, side, live[name], all)
			if err != nil {
				return err
			}
			c.world.Pods = append(c.world.Pods, stays)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(all.pods)) {
		if p := all.pods[uid]; !ofSet(i, p) {
			c.world.Pods = append(c.world.Pods, p)
		}
	}
	return nil
}

// leave adds those that leave to their waves, and takes them out of those that are there.
func (q question) leave(i check.Inspection, live map[string]*corev1.Pod) error {
	n := 0
	for w, wave := range i.Waves() {
		for o := range wave.All() {
			disks := q.disksOf(n)
			n++
			pod := live[i.Plan.Pod(i.From, o)]
			if pod == nil || !metav1.IsControlledBy(pod, i.Leaves()) {
				continue
			}
			leaves, err := rebuilt(i.Leaves(), pod)
			if err != nil {
				return err
			}
			leaves.Disks = disks
			delete(live, pod.Name)
			q.Waves[w].Leaves = append(q.Waves[w].Leaves, leaves)
		}
	}
	return nil
}

// staying is a pod of the set that does not leave: one that has come, or that no wave takes. Little of it is read before
// each wave, and that is newer than the list.
func staying(i check.Inspection, side plans.Side, pod *corev1.Pod, all population) (stays scheduling.Pod, err error) {
	stays, known := all.pods[pod.UID]
	set := i.Now.Set
	if side == plans.Destination {
		set = i.Now.Existing
	}
	if !known && set != nil {
		if stays, err = rebuilt(set, pod); err != nil {
			return stays, err
		}
	}
	stays.Namespace, stays.Name, stays.Labels, stays.Node, stays.Going = pod.Namespace, pod.Name, pod.Labels, pod.Spec.NodeName, pod.DeletionTimestamp != nil
	return stays, nil
}

// ofSet reports whether a pod that was listed has the name of one of the set, of which it is read anew what is there.
func ofSet(i check.Inspection, p scheduling.Pod) bool {
	return slices.ContainsFunc(here(i), func(side plans.Side) bool {
		return p.Namespace == i.Plan.On(side).Namespace && i.Plan.HasPod(side, p.Name)
	})
}

// rebuilt is a pod of a set of which little was read: its template says the rest.
func rebuilt(set *appsv1.StatefulSet, of *corev1.Pod) (scheduling.Pod, error) {
	t := set.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: of.ObjectMeta, Spec: t.Spec}
	pod.Spec.NodeName = of.Spec.NodeName
	return scheduling.PodOf(pod)
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// label reads the labels of namespaces: that of the pods, by which the rules of other pods may mean them, and all if
// the rules of the pods mean namespaces by labels.
func (c *crowd) label(ctx context.Context, i check.Inspection, q question) error {
	c.world.Namespaces = map[string]labels.Set{}
	if !q.pod.SelectsNamespaces() {
		name := i.Plan.On(i.To()).Namespace
		own, err := clusters.Get[corev1.Namespace](ctx, i.On[i.To()], "", name, "the "+string(i.To()))
		if err = check.IgnoreForbidden(err); err != nil {
			return err
		}
		if own != nil {
			c.world.Namespaces[name] = own.Labels
		}
		return nil
	}
	all, err := check.Kept(i, namespacesOf(i.To()), func() (map[string]labels.Set, error) {
		out := map[string]labels.Set{}
		err := clusters.Each(ctx, i.On[i.To()], func() client.ObjectList { return &corev1.NamespaceList{} }, func(n *corev1.Namespace) { out[n.Name] = maps.Clone(n.Labels) })
		return out, err
	})
	c.world.Namespaces, c.unlabelled = all, apierrors.IsForbidden(err)
	return check.IgnoreForbidden(err)
}

// attach reads how many volumes are attached, where a driver of the pods has a limit.
func (c *crowd) attach(ctx context.Context, i check.Inspection, q question) error {
	if len(q.pod.Disks) == 0 {
		return nil
	}
	limits, err := check.Kept(i, limitsOf(i.To()), func() (map[string]map[string]int, error) {
		out := map[string]map[string]int{}
		err := clusters.Each(ctx, i.On[i.To()], func() client.ObjectList { return &storagev1.CSINodeList{} }, func(n *storagev1.CSINode) {
			for _, d := range n.Spec.Drivers {
				if d.Allocatable != nil && d.Allocatable.Count != nil {
					if out[n.Name] == nil {
						out[n.Name] = map[string]int{}
					}
					out[n.Name][d.Name] = int(*d.Allocatable.Count)
				}
			}
		})
		return out, check.IgnoreForbidden(err) // an older Role has no such right
	})
	if err != nil || len(limits) == 0 {
		return err
	}
	c.world.Limits, c.world.Attached = limits, map[string]map[scheduling.Disk]bool{}
	err = clusters.Each(ctx, i.On[i.To()], func() client.ObjectList { return &storagev1.VolumeAttachmentList{} }, func(a *storagev1.VolumeAttachment) {
		if of := a.Spec.Source.PersistentVolumeName; of != nil && !q.volumes[*of] {
			if c.world.Attached[a.Spec.NodeName] == nil {
				c.world.Attached[a.Spec.NodeName] = map[scheduling.Disk]bool{}
			}
			c.world.Attached[a.Spec.NodeName][scheduling.Disk{Driver: a.Spec.Attacher, Handle: *of}] = true
		}
	})
	return check.IgnoreForbidden(err)
}

// residentsOf, namespacesOf and limitsOf are keys of check.Kept for what is read of a side.
type (
	residentsOf  plans.Side
	namespacesOf plans.Side
	limitsOf     plans.Side
)
