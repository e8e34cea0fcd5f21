// Package stage prepares the demo and the benchmark: a StatefulSet in one of two local clusters,
// and the stsmigrate binary that moves it.
package stage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stsmigrate/stsmigrate/test/cluster"
)

// Build compiles a program of the project into a folder and returns its path.
func Build(ctx context.Context, dir, program string) (string, error) {
	path := filepath.Join(dir, program)
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/stsmigrate/stsmigrate/cmd/"+program).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", program, err, out)
	}
	return path, nil
}

// Kubeconfig writes one kubeconfig with a context per cluster, named after the cluster.
func Kubeconfig(path string, clusters ...*cluster.Cluster) error {
	all := clientcmdapi.NewConfig()
	for _, c := range clusters {
		own, err := clientcmd.LoadFromFile(c.Kubeconfig)
		if err != nil {
			return err
		}
		all.Clusters[c.Name], all.AuthInfos[c.Name], all.Contexts[c.Name] = own.Clusters[c.Name], own.AuthInfos[c.Name], own.Contexts[c.Name]
	}
	return clientcmd.WriteToFile(*all, path)
}

// Command returns a command that sees the clusters of a kubeconfig and no others.
func Command(ctx context.Context, kubeconfig, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	return cmd
}

// Namespace creates a namespace in each of the clusters.
func Namespace(ctx context.Context, name string, clusters ...*cluster.Cluster) error {
	for _, c := range clusters {
		client, err := kubernetes.NewForConfig(c.Config())
		if err != nil {
			return err
		}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create namespace %s in %s: %w", name, c.Name, err)
		}
	}
	return nil
}

// Disk is a claim of the set: an ordinal and a claim template.
type Disk struct {
	Ordinal  int32
	Template string
}

// Handles returns the handle of the volume behind each claim of the set. A claim without a volume
// is left out.
func (s Set) Handles(ctx context.Context, config *rest.Config) (map[Disk]string, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	claims, err := client.CoreV1().PersistentVolumeClaims(s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	// Match by the claim's UID: a volume that merely names a claim is not bound to it.
	behind := map[string]string{}
	for _, v := range volumes.Items {
		if ref := v.Spec.ClaimRef; ref != nil && v.Spec.CSI != nil && v.Status.Phase == corev1.VolumeBound {
			behind[string(ref.UID)] = v.Spec.CSI.VolumeHandle
		}
	}
	of := map[string]string{}
	for _, c := range claims.Items {
		if c.Status.Phase == corev1.ClaimBound {
			of[c.Name] = behind[string(c.UID)]
		}
	}
	handles := map[Disk]string{}
	for _, d := range s.Disks() {
		if handle := of[fmt.Sprintf("%s-%s-%d", d.Template, Name, d.Ordinal)]; handle != "" {
			handles[d] = handle
		}
	}
	return handles, nil
}

// Disks lists the claims of the set, by ordinal.
func (s Set) Disks() []Disk {
	var out []Disk
	for o := range s.Replicas {
		for _, t := range s.Claims {
			out = append(out, Disk{o, t})
		}
	}
	return out
}
