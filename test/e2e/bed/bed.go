// Package bed creates two kind clusters, east and west, between which a StatefulSet can move. Their
// pods reach one another by address, and one folder of the host is the storage backend of both.
package bed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	kind "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// Cluster is one kind cluster.
type Cluster struct {
	Name       string // in kind
	Kubeconfig string
	Config     *rest.Config
	Client     client.Client
	Set        kubernetes.Interface

	pods, services string // address ranges
	workers        int
}

// Context returns the name of the cluster's context in the kubeconfig.
func (c *Cluster) Context() string { return "kind-" + c.Name }

// Bed is the two clusters.
type Bed struct {
	East, West *Cluster
	// Backend is the storage of the volumes of both.
	Backend *cluster.Backend

	dir      string
	provider *kind.Provider
}

// Workers says how many nodes each cluster has in addition to its control plane, which runs pods too.
type Workers struct{ East, West int }

// each has one worker: a set can be drained from one node to the other.
func each() Workers { return Workers{East: 1, West: 1} }

func describe(dir string, workers Workers) *Bed {
	b := &Bed{provider: kind.NewProvider(kind.ProviderWithDocker()), dir: dir}
	b.East = &Cluster{Name: "stsmigrate-east", pods: "10.30.0.0/17", services: "10.30.128.0/17", workers: workers.East}
	b.West = &Cluster{Name: "stsmigrate-west", pods: "10.40.0.0/17", services: "10.40.128.0/17", workers: workers.West}
	for _, c := range b.Clusters() {
		c.Kubeconfig = filepath.Join(dir, c.Name+".kubeconfig")
	}
	return b
}

// Clusters returns both clusters.
func (b *Bed) Clusters() []*Cluster { return []*Cluster{b.East, b.West} }

// Up creates the bed, with its files below dir. The node image is $KIND_NODE_IMAGE, or kind's own.
// If Up fails, it removes what it created. It refuses if one of the clusters exists already.
func Up(ctx context.Context, dir string) (*Bed, error) { return UpWith(ctx, dir, each()) }

// UpWith creates a bed with other numbers of nodes.
func UpWith(ctx context.Context, dir string, workers Workers) (*Bed, error) {
	b := describe(dir, workers)
	there, err := b.provider.List()
	if err != nil {
		return nil, fmt.Errorf("list the kind clusters: %w", err)
	}
	for _, c := range b.Clusters() {
		if slices.Contains(there, c.Name) {
			return nil, fmt.Errorf("kind cluster %s exists already: remove it first (make kind-down)", c.Name)
		}
	}
	if err := b.up(ctx); err != nil {
		return nil, errors.Join(err, b.Down())
	}
	return b, nil
}

func (b *Bed) up(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(b.dir, "shared"), 0o755); err != nil {
		return err
	}
	archive, err := images(ctx, b.dir, programs()...)
	if err != nil {
		return err
	}
	for _, c := range b.Clusters() { // one after the other: two at once need more than two cores
		fmt.Fprintf(os.Stderr, "creating kind cluster %s ...\n", c.Name)
		if err := b.create(ctx, c, archive); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	}
	if err := b.route(ctx); err != nil {
		return err
	}
	b.Backend, err = cluster.OpenBackend(filepath.Join(b.dir, "shared", backend))
	return err
}

// Open returns the bed that Up created with the same folder.
func Open(dir string) (*Bed, error) {
	b := describe(dir, each())
	for _, c := range b.Clusters() {
		if err := c.connect(); err != nil {
			return nil, fmt.Errorf("cluster %s is not running, or was not created on this machine: %w", c.Name, err)
		}
	}
	var err error
	b.Backend, err = cluster.OpenBackend(filepath.Join(dir, "shared", backend))
	return b, err
}

// Down removes the bed with its volumes, as far as they exist.
func Down(dir string) error { return describe(dir, each()).Down() }

// Down removes the bed with its volumes.
func (b *Bed) Down() error {
	var all error
	for _, c := range b.Clusters() {
		all = errors.Join(all, b.provider.Delete(c.Name, c.Kubeconfig))
	}
	return errors.Join(all, os.RemoveAll(b.dir))
}

// Nodes returns the nodes of a cluster, as containers in which commands can be run.
func (b *Bed) Nodes(c *Cluster) ([]nodes.Node, error) { return b.provider.ListInternalNodes(c.Name) }

func (b *Bed) create(ctx context.Context, c *Cluster, archive string) error {
	node := v1alpha4.Node{Role: v1alpha4.ControlPlaneRole, ExtraMounts: []v1alpha4.Mount{{HostPath: filepath.Join(b.dir, "shared"), ContainerPath: shared}}}
	config := &v1alpha4.Cluster{
		Networking: v1alpha4.Networking{PodSubnet: c.pods, ServiceSubnet: c.services},
		Nodes:      []v1alpha4.Node{node},
		// Kubelets refuse cgroup v1 by default since 1.35; hosts still have it.
		KubeadmConfigPatches:    []string{"kind: KubeletConfiguration\nfailCgroupV1: false\n"},
		ContainerdConfigPatches: registries(),
	}
	for range c.workers {
		node.Role = v1alpha4.WorkerRole
		config.Nodes = append(config.Nodes, node)
	}
	options := []kind.CreateOption{
		kind.CreateWithV1Alpha4Config(config), kind.CreateWithKubeconfigPath(c.Kubeconfig), kind.CreateWithWaitForReady(3 * time.Minute),
		kind.CreateWithDisplayUsage(false), kind.CreateWithDisplaySalutation(false),
	}
	if image := os.Getenv("KIND_NODE_IMAGE"); image != "" {
		options = append(options, kind.CreateWithNodeImage(image))
	}
	if err := b.provider.Create(c.Name, options...); err != nil {
		if ran := exec.RunErrorForError(err); ran != nil { // its message has the command, and not what the command said
			return fmt.Errorf("%w\n%s", err, bytes.TrimSpace(ran.Output))
		}
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	if err := c.allowAll(ctx); err != nil {
		return err
	}
	if err := b.Load(c, archive); err != nil {
		return err
	}
	return c.installStorage(ctx)
}

// Load loads the images of an archive into all nodes of a cluster.
func (b *Bed) Load(c *Cluster, archive string) error {
	all, err := b.Nodes(c)
	if err != nil {
		return err
	}
	for _, n := range all {
		if err := load(n, archive); err != nil {
			return err
		}
	}
	return nil
}

// Inside returns the kubeconfig of a cluster for clients in the other cluster's pods.
func (b *Bed) Inside(c *Cluster) (*clientcmdapi.Config, error) {
	text, err := b.provider.KubeConfig(c.Name, false)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.Load([]byte(text))
	if err != nil {
		return nil, err
	}
	all, err := b.Nodes(c)
	if err != nil {
		return nil, err
	}
	for _, n := range all {
		role, err := n.Role()
		if err != nil {
			return nil, err
		}
		if role != "control-plane" {
			continue
		}
		address, _, err := n.IP()
		if err != nil {
			return nil, err
		}
		for _, to := range config.Clusters { // the certificate is valid for this address too
			to.Server = "https://" + address + ":6443"
		}
	}
	return config, nil
}

func load(n nodes.Node, archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	return errors.Join(nodeutils.LoadImageArchive(n, f), f.Close())
}

func (c *Cluster) connect() (err error) {
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return err
	}
	c.Config.QPS = -1
	if c.Client, err = client.New(c.Config, client.Options{}); err != nil {
		return err
	}
	c.Set, err = kubernetes.NewForConfig(c.Config)
	return err
}

// allowAll removes the taints of all nodes, so that each of them, the control plane too, accepts
// pods.
func (c *Cluster) allowAll(ctx context.Context) error {
	all, err := c.Set.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, n := range all.Items {
		if _, err := c.Set.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// route adds to every node the routes to the pods of the other cluster.
func (b *Bed) route(ctx context.Context) error {
	return b.everyWay(ctx, func(n nodes.Node, peer corev1.Node) error {
		if err := n.CommandContext(ctx, "ip", "route", "replace", peer.Spec.PodCIDR, "via", internalIP(peer)).Run(); err != nil {
			return fmt.Errorf("a route from %s to %s: %w", n, peer.Name, err)
		}
		return nil
	})
}

func internalIP(n corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}
