// Command netd is the network of the nodes. On each node it writes the CNI configuration for the
// node's pods, keeps a route to the pods of every other node, and masquerades, behind the node's
// address, the traffic that leaves 10.0.0.0/8. The pods of all clusters of the bed are in that
// range.
//
// It runs in the node's network namespace, with the node's root mounted at /host, and uses the ip
// and iptables of the node.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	host  = "/host"
	chain = "NETD-MASQ"
	// Pods get a point-to-point link and an address of the node's range.
	configuration = `{
  "cniVersion": "0.4.0",
  "name": "pods",
  "plugins": [
    {"type": "ptp", "ipMasq": false, "mtu": 1500, "ipam": {
      "type": "host-local", "dataDir": "/run/cni-ipam-state",
      "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": %q}]]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("NODE_NAME")); err != nil {
		fmt.Fprintln(os.Stderr, "netd:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, self string) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	nodes := factory.Core().V1().Nodes()
	bell := make(chan struct{}, 1)
	ring := func() {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
	if _, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { ring() }, UpdateFunc: func(any, any) { ring() },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for again := time.NewTicker(10 * time.Second); ; { // restores rules and routes that were flushed
		all, err := nodes.Lister().List(labels.Everything())
		if err == nil {
			err = sync(all, self)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "netd: will try again:", err)
		}
		select {
		case <-bell:
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func sync(all []*corev1.Node, self string) error {
	if err := hide(); err != nil {
		return err
	}
	for _, n := range all {
		pods, address := n.Spec.PodCIDR, internalIP(n)
		switch {
		case pods == "" || address == "": // a later change of the node brings it
		case n.Name == self:
			if err := configure(pods); err != nil {
				return err
			}
			if err := rule("POSTROUTING", "-s", pods, "-j", chain); err != nil {
				return err
			}
		default:
			if err := onNode("ip", "route", "replace", pods, "via", address, "onlink", "dev", "eth0"); err != nil {
				return err
			}
		}
	}
	return nil
}

// hide creates the chain that masquerades the traffic that leaves the pods' networks.
func hide() error {
	_ = onNode("iptables", "-w", "-t", "nat", "-N", chain) // exists already, or the next command fails
	for _, keep := range []string{"10.0.0.0/8", "224.0.0.0/4"} {
		if err := rule(chain, "-d", keep, "-j", "RETURN"); err != nil {
			return err
		}
	}
	return rule(chain, "-j", "MASQUERADE")
}

func rule(in string, what ...string) error {
	if onNode(append([]string{"iptables", "-w", "-t", "nat", "-C", in}, what...)...) == nil {
		return nil
	}
	return onNode(append([]string{"iptables", "-w", "-t", "nat", "-A", in}, what...)...)
}

func configure(pods string) error {
	path, text := filepath.Join(host, "etc/cni/net.d/10-pods.conflist"), fmt.Appendf(nil, configuration, pods)
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, text) {
		return nil
	}
	// Write a temporary file and rename it: the kubelet must not read half a file.
	return errors.Join(os.WriteFile(path+".tmp", text, 0o644), os.Rename(path+".tmp", path))
}

func internalIP(n *corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && !strings.Contains(a.Address, ":") {
			return a.Address
		}
	}
	return ""
}

// onNode runs a program of the node, with the node's root.
func onNode(args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: host}
	for _, dir := range []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		// Lstat, because a link may have a target that exists only within the node's root.
		if _, err := os.Lstat(filepath.Join(host, dir, args[0])); err == nil {
			cmd.Path, cmd.Err = filepath.Join(dir, args[0]), nil
			break
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
