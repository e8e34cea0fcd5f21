package bed

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
)

// PowerOff stops a node at once: no process of it is asked to end, and nothing is unmounted.
func (b *Bed) PowerOff(ctx context.Context, node string) error {
	return docker(ctx, "kill", node)
}

// PowerOn starts a node that PowerOff stopped, and waits until it is Ready.
func (b *Bed) PowerOn(ctx context.Context, c *Cluster, node string) error {
	began := time.Now()
	if err := docker(ctx, "start", node); err != nil {
		return err
	}
	// The node has lost its routes, and may have another address. Its network is not there at once, nor is the API
	// server if it was a control plane.
	var why error
	err := wait.PollUntilContextTimeout(ctx, time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		why = b.route(ctx)
		return why == nil, nil
	})
	if err != nil {
		return errors.Join(err, why)
	}
	return c.until(ctx, node, corev1.NodeReady, func(ready corev1.NodeCondition) bool {
		// The condition from before the outage does not count.
		return ready.Status == corev1.ConditionTrue && ready.LastHeartbeatTime.After(began)
	})
}

// until waits until a condition of a node is as expected.
func (c *Cluster) until(ctx context.Context, node string, kind corev1.NodeConditionType, expected func(corev1.NodeCondition) bool) error {
	return wait.PollUntilContextTimeout(ctx, time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		condition, err := c.Condition(ctx, node, kind)
		return err == nil && expected(condition), err
	})
}

// Condition returns a condition of a node, or an empty one if the node does not have it.
func (c *Cluster) Condition(ctx context.Context, node string, kind corev1.NodeConditionType) (corev1.NodeCondition, error) {
	n, err := c.Set.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return corev1.NodeCondition{}, err
	}
	for _, condition := range n.Status.Conditions {
		if condition.Type == kind {
			return condition, nil
		}
	}
	return corev1.NodeCondition{}, nil
}

// Cut drops everything that nodes and pods of one cluster send to nodes and pods of the other, in
// both directions. Connect ends it. The machine of the tests still reaches both API servers.
func (b *Bed) Cut(ctx context.Context) error {
	return b.everyWay(ctx, func(n nodes.Node, peer corev1.Node) error {
		for _, to := range []string{internalIP(peer) + "/32", peer.Spec.PodCIDR} {
			if err := n.CommandContext(ctx, "ip", "route", "replace", "blackhole", to).Run(); err != nil {
				return fmt.Errorf("%s drops what is for %s: %w", n, to, err)
			}
		}
		return nil
	})
}

// Connect connects the clusters again.
func (b *Bed) Connect(ctx context.Context) error {
	return errors.Join(b.everyWay(ctx, func(n nodes.Node, peer corev1.Node) error {
		if err := n.CommandContext(ctx, "ip", "route", "del", "blackhole", internalIP(peer)+"/32").Run(); err != nil {
			return fmt.Errorf("%s reaches %s again: %w", n, peer.Name, err)
		}
		return nil
	}), b.route(ctx))
}

// everyWay calls what for each node and each node of the other cluster.
func (b *Bed) everyWay(ctx context.Context, what func(nodes.Node, corev1.Node) error) error {
	for from, to := range map[*Cluster]*Cluster{b.East: b.West, b.West: b.East} {
		there, err := to.Set.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		own, err := b.Nodes(from)
		if err != nil {
			return err
		}
		for _, n := range own {
			for _, peer := range there.Items {
				if err := what(n, peer); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// FillDisk makes the kubelet of a node believe that its disk is full, or that it is not full any
// more: the kubelet then evicts pods, and the node is tainted. The disk is the machine's own, so it
// is the threshold that changes. The kubelet would also remove images, which no registry has: they
// are pinned.
func (b *Bed) FillDisk(ctx context.Context, c *Cluster, node string, full bool) error {
	threshold := "0%"
	if full {
		threshold = "99%" // 100% would mean none
	}
	const script = "for i in $(ctr -n k8s.io images ls -q); do ctr -n k8s.io images label $i io.cri-containerd.pinned=pinned || exit; done; " +
		`sed -i "s/nodefs.available: .*/nodefs.available: $0/" /var/lib/kubelet/config.yaml && systemctl restart kubelet`
	if err := docker(ctx, "exec", node, "sh", "-c", script, threshold); err != nil {
		return err
	}
	return c.until(ctx, node, corev1.NodeDiskPressure, func(pressure corev1.NodeCondition) bool {
		return (pressure.Status == corev1.ConditionTrue) == full
	})
}

// Narrow gives a volume that no pod uses yet a small file system of its own, which all nodes mount
// from one device. The returned function takes it away again.
func (b *Bed) Narrow(ctx context.Context, handle string) (func(context.Context) error, error) {
	var all []nodes.Node
	for _, c := range b.Clusters() {
		own, err := b.Nodes(c)
		if err != nil {
			return nil, err
		}
		all = append(all, own...)
	}
	folder := shared + "/" + handle
	const prepare = `truncate -s 4M "$0.img" && mke2fs -q -F -b 1024 -m 0 "$0.img" && losetup --find --show "$0.img"`
	device, err := said(ctx, "exec", all[0].String(), "sh", "-c", prepare, folder)
	if err != nil {
		return nil, err
	}
	const number = `[ -b "$1" ] || mknod "$1" b 7 "${1#/dev/loop}"; mkdir -p "$0" && mount "$1" "$0"`
	for _, n := range all {
		if err := docker(ctx, "exec", n.String(), "sh", "-c", number, folder, device); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		var failed error
		for _, n := range all {
			failed = errors.Join(failed, docker(ctx, "exec", n.String(), "umount", folder))
		}
		return errors.Join(failed, docker(ctx, "exec", all[0].String(), "losetup", "--detach", device))
	}, nil
}

// FillVolume takes all room of a volume that Narrow has made small, or gives it back.
func (b *Bed) FillVolume(ctx context.Context, handle string, full bool) error {
	all, err := b.Nodes(b.East)
	if err != nil {
		return err
	}
	script := `rm "$0/ballast"`
	if full {
		script = `dd if=/dev/zero of="$0/ballast" bs=1024 2>/dev/null; test "$(df --output=avail "$0" | tail -n 1)" -eq 0`
	}
	return docker(ctx, "exec", all[0].String(), "sh", "-c", script, shared+"/"+handle)
}

func docker(ctx context.Context, args ...string) error {
	_, err := said(ctx, args...)
	return err
}

// said runs docker and returns what it has said.
func said(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
