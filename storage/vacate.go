package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// vacate is the gate between the two sides (S1). It proves for each ordinal of the
// wave, in this order, that the pod object is gone, that its node is one whose
// kubelet can be believed, that the kubelet no longer uses the volumes, and that no
// node has them attached any more. It never writes; the proofs go into the journal.
func (v mover) vacate(ctx context.Context, m plans.Moment) (plans.Sight, error) {
	if !m.Turned && !m.InFlight() {
		return plans.Stop(unknown(m)), nil
	}
	for o := range m.Ordinals.All() {
		if s, err := v.gone(ctx, m, o); err != nil || s.Standing != plans.After {
			return s.In(plans.Terminating), err
		}
	}
	if m.Turned {
		return plans.Done(), nil // they never ran on this side
	}
	flight := *m.Flight
	flight.Pods = slices.Clone(flight.Pods)
	for i, pod := range flight.Pods {
		proof, s, err := v.nodeFree(ctx, m, pod)
		if err != nil || s.Standing != plans.After {
			return s.In(plans.Detaching).Idly(), err
		}
		flight.Pods[i].Proof = proof
	}
	if s, err := v.detached(ctx, m); err != nil || s.Standing != plans.After {
		return s.In(plans.Detaching).Idly(), err
	}
	return proven(flight), nil
}

// proven is the sight of a wave that has left, with the proofs to be kept.
func proven(flight plans.Flight) plans.Sight {
	done := plans.Done()
	done.Undo.Flight = &flight
	for _, pod := range flight.Pods {
		done.Reason += "; " + pod.Proof
	}
	return done
}

// gone waits until the pod object of an ordinal is gone, by UID.
func (v mover) gone(ctx context.Context, m plans.Moment, ordinal int32) (plans.Sight, error) {
	pod, err := v.podOf(ctx, m.From, ordinal)
	if err != nil || pod == nil {
		return plans.Done(), err
	}
	if !m.Turned {
		if known := m.Flight.Pod(ordinal).UID; known != "" && pod.UID != known && pod.DeletionTimestamp == nil {
			return plans.Stop(fmt.Sprintf("pod %s of %s was made again after it was taken out of the set's range; find out who made it and delete it", pod.Name, v.plan.On(m.From))), nil
		}
	}
	if pod.DeletionTimestamp == nil {
		return plans.Wait(fmt.Sprintf("pod %s of %s is to be deleted by the controller of its set", pod.Name, v.plan.On(m.From))), nil
	}
	return plans.Wait(fmt.Sprintf("pod %s of %s is terminating", pod.Name, v.plan.On(m.From))).Idly(), nil
}

// nodeFree believes "the pod is gone" only from a node that is there and Ready: a
// pod object that was deleted by force says nothing about its containers.
func (v mover) nodeFree(ctx context.Context, m plans.Moment, pod plans.Pod) (proof string, s plans.Sight, err error) {
	name := v.plan.Pod(pod.Ordinal)
	if pod.Node == "" {
		return fmt.Sprintf("pod %s (UID %s) is gone and was never on a node", name, pod.UID), plans.Done(), nil
	}
	var node corev1.Node
	if err := v.on[m.From].Get(ctx, client.ObjectKey{Name: pod.Node}, &node); err != nil {
		if err = ignoreAbsent(err, "node %s", pod.Node); err != nil {
			return "", plans.Sight{}, err
		}
		return "", plans.Stop(fmt.Sprintf("node %s, where %s ran, no longer exists: nobody can say that its containers have stopped; make sure that the machine is off, then bring a Node of that name back or abort",
			pod.Node, name)), nil
	}
	if !isReady(node) {
		return "", plans.Wait(fmt.Sprintf("node %s, where %s ran, is not Ready: its containers may still run; repair the node", node.Name, name)), nil
	}
	if s := unused(node, m.Flight.Of(pod.Ordinal)); s.Standing != plans.After {
		return "", s, nil
	}
	proof = fmt.Sprintf("pod %s (UID %s) is gone, node %s is Ready", name, pod.UID, node.Name)
	if len(m.Flight.Of(pod.Ordinal)) > 0 {
		proof += " and uses none of its volumes, no VolumeAttachment names one"
	}
	return proof, plans.Done(), nil
}

func isReady(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// unused waits until the kubelet no longer reports the volumes in use. Only CSI
// volumes have a name here that can be told from their handle.
func unused(node corev1.Node, volumes []plans.Volume) plans.Sight {
	for _, vol := range volumes {
		for _, used := range node.Status.VolumesInUse {
			if name, ok := strings.CutPrefix(string(used), "kubernetes.io/csi/"); ok && (SameDisk(name, vol.Handle) || strings.HasSuffix(name, "/"+vol.Handle)) {
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
		still := ""
		err := Each(ctx, v.on[side], func() client.ObjectList { return &storagev1.VolumeAttachmentList{} }, func(a *storagev1.VolumeAttachment) {
			for _, vol := range m.Flight.Volumes {
				if n := a.Spec.Source.PersistentVolumeName; n != nil && *n == vol.Name && still == "" {
					still = fmt.Sprintf("volume %s is still attached to node %s (VolumeAttachment %s)", vol.Name, a.Spec.NodeName, a.Name)
				}
			}
		})
		if err != nil {
			return plans.Sight{}, fmt.Errorf("listing VolumeAttachments on the %s: %w", side, err)
		}
		if still != "" {
			return plans.Wait(still), nil
		}
	}
	return plans.Done(), nil
}
