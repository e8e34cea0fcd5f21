package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// NeverReady is the label (or annotation) that, with the value "true", keeps a pod running but not
// ready. Adding it to a ready pod makes the pod unready; removing it makes the pod ready.
const NeverReady = "test.stsmigrate.dev/never-ready"

// Address is the annotation with the IP address that a pod gets: the address of a server that
// stands in for the pod. The API server reaches no loopback address.
const Address = "test.stsmigrate.dev/address"

// Lost is the annotation that, with the value "true", keeps a node as the test reports it, and a pod from ending when it
// is deleted: there is no kubelet.
const Lost = "test.stsmigrate.dev/lost"

// startTimeout is far longer than the seconds that a start takes. It is for broken machines.
const startTimeout = 3 * time.Minute

// Options are the choices of a test or a demonstration. The zero value fits most of them.
type Options struct {
	// Dir is the work folder, which must not exist yet. Empty means a new temporary folder.
	Dir string
	// Detached leaves the cluster running when this process ends; Remove ends it.
	Detached bool
	// PodStart is how long a scheduled pod takes to become ready.
	PodStart time.Duration
	// PodStop is how long a deleted pod takes to be gone.
	PodStop time.Duration
	// Heartbeat is how often a kubelet writes the status of its node. Zero means every second, so that no
	// test waits for what the controller manager does only then.
	Heartbeat time.Duration
	// Nodes is how many nodes the cluster has beside its three. With them the Leases of nodes are renewed each quarter of
	// an hour, and a node that is silent counts as ready for six: a machine of two cores would do nothing else.
	Nodes int
	// BinderPeriod is how often the binder of claims looks at what it was told of nothing new. Zero means its own 15 s.
	BinderPeriod time.Duration
	// DetachDelay is how long the detach of a volume of AttachDriver takes. It is a setting of the
	// provisioner, so only StartBed uses it.
	DetachDelay time.Duration
	// StopByUID makes this process delete terminating pods by their UID, where KWOK would delete
	// them by their name. It is for sets whose pods are recreated under the same name at once.
	// StartBed does so itself; with Start, the caller runs EndPods.
	StopByUID bool
	// Unmanaged are the names of clusters whose kube-controller-manager leaves StatefulSets to
	// another controller.
	Unmanaged []string
	// Audit makes the API server write a line about every request to AuditLog.
	Audit bool
}

// Cluster is one running control plane.
type Cluster struct {
	// Name is the cluster's name and the name of its kubeconfig context.
	Name string
	// Kubeconfig is the path of a kubeconfig file with this cluster only; other
	// processes can use it.
	Kubeconfig string
	// Dir is the work folder; logs are in Dir/clusters/Name/logs.
	Dir string

	config *rest.Config
	reaper *reaper
	stop   sync.Once
}

// Start starts a control plane with three ready nodes, on loopback only. Unless Detached is set,
// the cluster is removed shortly after this process ends, even if the process is killed. ctx limits
// only the start.
func Start(ctx context.Context, name string, o Options) (*Cluster, error) {
	bin, err := Build(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c, err := prepare(ctx, name, bin, o)
	if err != nil {
		return nil, err
	}
	if err := c.up(ctx, o); err != nil {
		err = fmt.Errorf("start cluster %s: %w", name, err)
		return nil, errors.Join(err, stopAll(ctx, c))
	}
	return c, nil
}

// StartPair starts two clusters at the same time. Either both run or none.
func StartPair(ctx context.Context, first, second string, o Options) (*Cluster, *Cluster, error) {
	if o.Dir != "" {
		if err := os.MkdirAll(o.Dir, 0o755); err != nil {
			return nil, nil, err
		}
	}
	var pair [2]*Cluster
	g, gctx := errgroup.WithContext(ctx)
	for i, name := range []string{first, second} {
		own := o
		if o.Dir != "" {
			own.Dir = filepath.Join(o.Dir, name)
		}
		g.Go(func() (err error) {
			pair[i], err = Start(gctx, name, own)
			return err
		})
	}
	err := g.Wait()
	if err == nil {
		return pair[0], pair[1], nil
	}
	return nil, nil, errors.Join(err, stopAll(ctx, pair[0], pair[1]))
}

// Open returns the cluster of a work folder that another process started.
// Stopping it removes the cluster.
func Open(name, dir string) (*Cluster, error) {
	c := &Cluster{Name: name, Dir: dir, Kubeconfig: kubeconfigPath(dir)}
	return c, c.load()
}

// Config returns a fresh client configuration without client-side throttling.
func (c *Cluster) Config() *rest.Config {
	return rest.CopyConfig(c.config)
}

// Ping returns nil if the API server is ready.
func (c *Cluster) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	_, err = client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err
}

// Stop removes the cluster: when it returns nil, no process and no file of the cluster is left. A
// second call is no error.
func (c *Cluster) Stop(ctx context.Context) (err error) {
	c.stop.Do(func() {
		if c.reaper != nil {
			err = c.reaper.reap(ctx)
			return
		}
		err = Remove(ctx, c.Dir)
	})
	return err
}

// prepare creates the work folder and the process that will remove it. From then on nothing is left
// behind, whatever happens.
func prepare(ctx context.Context, name, bin string, o Options) (*Cluster, error) {
	dir, err := workDir(name, o.Dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Name: name, Dir: dir, Kubeconfig: kubeconfigPath(dir)}
	if c.reaper, err = startReaper(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.configure(ctx, bin, o); err != nil {
		return nil, errors.Join(err, stopAll(ctx, c))
	}
	return c, nil
}

func workDir(name, dir string) (string, error) {
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", "stsmigrate-"+name+"-")
	} else {
		err = os.Mkdir(dir, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("make the work folder of %s: %w", name, err)
	}
	// Processes are recognised by their path, so it must be absolute and without symbolic links.
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, marker), nil, 0o644)
}

func (c *Cluster) up(ctx context.Context, o Options) error {
	if err := c.kwokctl(ctx, "create", "cluster", "--config", configPath(c.Dir), "--kubeconfig", ""); err != nil {
		return err
	}
	if err := c.writeKubeconfig(); err != nil {
		return err
	}
	if err := c.load(); err != nil {
		return err
	}
	if err := c.ready(ctx, o.Nodes); err != nil {
		return err
	}
	if !o.Detached {
		return nil
	}
	err := c.reaper.keep()
	c.reaper = nil
	return err
}

// kwokctl runs kwokctl, which starts the components; "start cluster" starts those that have ended.
// It runs under a path inside the work folder, as the components do, so that the reaper recognises
// it as part of the cluster.
func (c *Cluster) kwokctl(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Dir, "bin", "kwokctl"), append(args, "--name", c.Name)...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), "KWOK_WORKDIR="+c.Dir)
	// Ctrl-C is for this process, which stops kwokctl itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := os.OpenFile(filepath.Join(c.Dir, "kwokctl.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // a log that nobody waits for
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kwokctl: %w\n%s", err, c.tail())
	}
	return nil
}

// tail returns the end of every log, for the error of a failed start: the folder is removed before
// a user could read the logs.
func (c *Cluster) tail() string {
	const most = 1500
	paths, _ := filepath.Glob(filepath.Join(c.Dir, "clusters", c.Name, "logs", "*.log")) // the pattern is valid
	var text string
	for _, path := range append(paths, filepath.Join(c.Dir, "kwokctl.log")) {
		log, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		text += fmt.Sprintf("--- %s\n%s\n", filepath.Base(path), log[max(0, len(log)-most):])
	}
	return text
}

func (c *Cluster) load() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	config.QPS = -1
	c.config = config
	return nil
}
