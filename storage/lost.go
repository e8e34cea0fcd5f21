package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// LastSeen reconstructs the last known state of the pod of an ordinal that has left a side, when no record of
// it exists. It returns the pod itself while it exists, else the node that its volumes name, so that Vacate
// checks that node. If nothing names a node, the kubelet of every node of the cluster must be trustworthy,
// and no node may use the volumes. why is the reason why the end of its containers cannot be proven.
func LastSeen(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client, side plans.Side, ordinal int32, volumes []plans.Volume) (out plans.Pod, why string, err error) {
	v := vacancy{objects: objects{clusters.Pair{Plan: p, On: on}}}
	out.Ordinal = ordinal
	pod, err := v.Pod(ctx, side, ordinal)
	if err != nil {
		return out, "", err
	}
	if pod != nil {
		out.UID, out.Node = pod.UID, pod.Spec.NodeName
		out.NodeUID, err = v.nodeUID(ctx, side, out.Node)
		return out, "", err
	}
	if out.Node, err = v.attachedTo(ctx, side, volumes); err != nil {
		return out, "", err
	}
	var doubtful string
	err = clusters.Each(ctx, on[side], func() client.ObjectList { return &corev1.NodeList{} }, func(n *corev1.Node) {
		switch {
		case out.Node == "" && unused(n, volumes).Standing != plans.After:
			out.Node = n.Name
		case !NodeReady(n) && !outOfService(n):
			doubtful = n.Name
		}
	})
	if err != nil {
		return out, "", fmt.Errorf("listing the nodes on the %s: %w", side, err)
	}
	if out.Node != "" {
		out.NodeUID, err = v.nodeUID(ctx, side, out.Node)
		return out, "", err
	}
	attaches := len(volumes) > 0
	for _, vol := range volumes {
		each, err := v.attaches(ctx, side, vol)
		if err != nil {
			return out, "", err
		}
		attaches = attaches && each
	}
	switch name := p.Pod(side, ordinal); {
	case !attaches:
		return out, fmt.Sprintf("the node on which %s ran is unknown, and the pod has no volume whose VolumeAttachment would name it", name), nil
	case doubtful != "":
		return out, fmt.Sprintf("the node on which %s ran is unknown, and node %s is not Ready", name, doubtful), nil
	}
	out.Stopped = fmt.Sprintf("every node of the %s is Ready and uses none of its volumes (the record of its node was lost with the journal)", side)
	return out, "", nil
}

func (v vacancy) nodeUID(ctx context.Context, side plans.Side, name string) (uid types.UID, err error) {
	if name == "" {
		return "", nil
	}
	node, err := v.nodeOf(ctx, side, name)
	if err != nil || node == nil {
		return "", err
	}
	return node.UID, nil
}

// attachedTo returns the node that a VolumeAttachment names for one of the volumes, or "".
func (v vacancy) attachedTo(ctx context.Context, side plans.Side, volumes []plans.Volume) (node string, err error) {
	err = clusters.Each(ctx, v.On[side], func() client.ObjectList { return &storagev1.VolumeAttachmentList{} }, func(a *storagev1.VolumeAttachment) {
		for _, vol := range volumes {
			if n := a.Spec.Source.PersistentVolumeName; n != nil && *n == vol.Name {
				node = a.Spec.NodeName
			}
		}
	})
	if err != nil {
		return "", fmt.Errorf("listing VolumeAttachments on the %s: %w", side, err)
	}
	return node, nil
}
