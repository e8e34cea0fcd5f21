package clusters

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kubelets report the status of their nodes again and again, and hundreds of nodes make several reports a second. Most
// of these change nothing that a plan waits for, and none of them wakes one: the watches of nodes read whole nodes, and
// compare what counts.

// node is what a watch keeps of a node.
type node struct {
	metav1.ObjectMeta

	spec corev1.NodeSpec
	// status has the conditions without their times, the volumes, and what pods may be given. It does not have what no
	// look waits for, such as images and addresses.
	status corev1.NodeStatus
}

// asNode returns what counts of a node.
func asNode(n *corev1.Node) *node {
	out := &node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, DeletionTimestamp: n.DeletionTimestamp, Labels: n.Labels},
		spec:       n.Spec,
		status:     corev1.NodeStatus{Allocatable: n.Status.Allocatable, VolumesInUse: n.Status.VolumesInUse, VolumesAttached: n.Status.VolumesAttached},
	}
	for _, c := range n.Status.Conditions {
		out.status.Conditions = append(out.status.Conditions, corev1.NodeCondition{Type: c.Type, Status: c.Status})
	}
	return out
}

// NodeChange returns the change from a node as it was, nil for a new one, to what it is. It is Turned if the node may
// be drained now, or no longer: by its taints, by whether pods may be scheduled on it, or by its end.
func NodeChange(was, is *corev1.Node) Change {
	if was == nil {
		return asNode(is).since(nil)
	}
	return asNode(is).since(asNode(was))
}

func (n *node) since(was *node) Change {
	c := Change{Version: n.ResourceVersion, UID: n.UID}
	c.Turned = was == nil || n.UID != was.UID || !n.DeletionTimestamp.Equal(was.DeletionTimestamp) ||
		n.spec.Unschedulable != was.spec.Unschedulable || !equality.Semantic.DeepEqual(n.spec.Taints, was.spec.Taints)
	c.Idle = !c.Turned && equality.Semantic.DeepEqual(n.spec, was.spec) && equality.Semantic.DeepEqual(n.Labels, was.Labels) &&
		equality.Semantic.DeepEqual(n.status, was.status)
	return c
}
