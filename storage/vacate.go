package storage

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// vacate is the gate between the two sides (S1). It proves, in this order, that
// the pod object is gone, that its node is one whose kubelet can be believed, and
// that no node has the volumes attached any more. It never writes.
func (v mover) vacate(ctx context.Context, m plans.Moment) (plans.Sight, error) {
	if !m.Turned && !m.InFlight() {
		return plans.Stop(unknown(m)), nil
	}
	pod, err := v.podOf(ctx, m.From, m.Ordinal)
	if err != nil {
		return plans.Sight{}, err
	}
	if pod != nil {
		if !m.Turned && m.Flight.Pod != "" && pod.UID != m.Flight.Pod && pod.DeletionTimestamp == nil {
			return plans.Stop(fmt.Sprintf("pod %s of %s was made again after it was taken out of the set's range; find out who made it and delete it", pod.Name, v.plan.On(m.From))), nil
		}
		return plans.Wait(fmt.Sprintf("pod %s of %s is terminating", pod.Name, v.plan.On(m.From))), nil
	}
	if m.Turned {
		return plans.Done(), nil // it never ran on this side
	}
	return v.nodeFree(ctx, m)
}

// nodeFree believes "the pod is gone" only from a node that is there and Ready: a
// pod object that was deleted by force says nothing about its containers.
func (v mover) nodeFree(ctx context.Context, m plans.Moment) (plans.Sight, error) {
	if m.Flight.Node == "" {
		return v.detached(ctx, m) // not scheduled when it was last seen
	}
	var node corev1.Node
	err := v.on[m.From].Get(ctx, client.ObjectKey{Name: m.Flight.Node}, &node)
	if err != nil {
		if err = ignoreAbsent(err, "node %s", m.Flight.Node); err != nil {
			return plans.Sight{}, err
		}
		return plans.Stop(fmt.Sprintf("node %s, where %s ran, no longer exists: nobody can say that its containers have stopped; make sure that the machine is off, then bring a Node of that name back or abort",
			m.Flight.Node, v.plan.Pod(m.Ordinal))), nil
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			if s, err := v.detached(ctx, m); err != nil || s.Standing != plans.After {
				return s, err
			}
			return v.unused(node, m), nil
		}
	}
	return plans.Wait(fmt.Sprintf("node %s, where %s ran, is not Ready: its containers may still run; repair the node", node.Name, v.plan.Pod(m.Ordinal))), nil
}

// unused waits until the kubelet no longer reports the volumes in use. Only CSI
// volumes have a name here that can be told from their handle.
func (v mover) unused(node corev1.Node, m plans.Moment) plans.Sight {
	for _, vol := range m.Flight.Volumes {
		for _, used := range node.Status.VolumesInUse {
			if strings.HasPrefix(string(used), "kubernetes.io/csi/") && strings.HasSuffix(string(used), "/"+vol.Handle) {
				return plans.Wait(fmt.Sprintf("volume %s is still in use on node %s", vol.Name, node.Name))
			}
		}
	}
	return plans.Done()
}

// detached waits until neither cluster has a VolumeAttachment for the volumes.
func (v mover) detached(ctx context.Context, m plans.Moment) (plans.Sight, error) {
	if len(m.Flight.Volumes) == 0 {
		return plans.Done(), nil
	}
	sides := []plans.Side{m.From}
	if !v.plan.OneCluster() {
		sides = append(sides, m.To())
	}
	for _, side := range sides {
		var all storagev1.VolumeAttachmentList
		if err := v.on[side].List(ctx, &all); err != nil {
			return plans.Sight{}, fmt.Errorf("listing VolumeAttachments on the %s: %w", side, err)
		}
		for _, a := range all.Items {
			for _, vol := range m.Flight.Volumes {
				if n := a.Spec.Source.PersistentVolumeName; n != nil && *n == vol.Name {
					return plans.Wait(fmt.Sprintf("volume %s is still attached to node %s (VolumeAttachment %s)", vol.Name, a.Spec.NodeName, a.Name)), nil
				}
			}
		}
	}
	return plans.Done(), nil
}
