package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// patience is how long a cluster may take to become ready before components that have ended are
// restarted.
const patience = 10 * time.Second

// ready creates the nodes, so many more than three, and waits until a pod could start: the API server and the nodes are
// ready, and the default service account exists.
func (c *Cluster) ready(ctx context.Context, more int) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	zones := []string{"zone-a", "zone-b", "zone-c"}
	for i := range len(zones) + more {
		node := fakeNode(fmt.Sprintf("%s-node-%d", c.Name, i), zones[i%len(zones)])
		if err := createNode(ctx, client, node); err != nil {
			return err
		}
	}
	var missing string
	for ctx.Err() == nil {
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			missing = c.notReady(ctx, client)
			return missing == "", nil
		})
		if err == nil {
			return nil
		}
		// Restart the components that have ended, as a kubelet would. On a busy machine the
		// controller manager ends when the API server takes more than ten seconds to become
		// healthy.
		if err := c.kwokctl(ctx, "start", "cluster"); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return fmt.Errorf("not ready: %s\n%s", missing, c.tail())
}

// notReady returns the first missing item, or "" if nothing is missing. An error counts as missing:
// an API server that has just started refuses some requests.
func (c *Cluster) notReady(ctx context.Context, client kubernetes.Interface) string {
	if err := c.Ping(ctx); err != nil {
		return err.Error()
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, node := range nodes.Items {
		if !isReady(node.Status.Conditions) || len(node.Spec.Taints) != 0 {
			return "node " + node.Name
		}
	}
	if _, err = client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return err.Error()
	}
	return ""
}

func isReady(conditions []corev1.NodeCondition) bool {
	for _, c := range conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// createNode creates one simulated node. It retries until ctx ends, because the API server may
// still be installing its own roles.
func createNode(ctx context.Context, client kubernetes.Interface, node *corev1.Node) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, last = client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return last == nil || apierrors.IsAlreadyExists(last), nil
	})
	if err != nil {
		return fmt.Errorf("create node %s: %w", node.Name, last)
	}
	return nil
}

func fakeNode(name, zone string) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("1000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:     name,
				corev1.LabelTopologyZone: zone,
				corev1.LabelOSStable:     "linux",
				corev1.LabelArchStable:   "amd64",
			},
			Annotations: map[string]string{
				"kwok.x-k8s.io/node": "fake",
				// A kubelet sets this annotation when it leaves attaching to the controller.
				"volumes.kubernetes.io/controller-managed-attach-detach": "true",
			},
		},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
}
