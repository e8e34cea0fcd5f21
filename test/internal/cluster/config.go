package cluster

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

//go:embed kwokctl.yaml.tmpl
var kwokctlTemplate string

func configPath(dir string) string     { return filepath.Join(dir, "kwokctl.yaml") }
func kubeconfigPath(dir string) string { return filepath.Join(dir, "kubeconfig") }

// configure writes kwokctl's configuration (the components, the ports, and how pods and nodes
// behave) and links kwokctl into the work folder.
func (c *Cluster) configure(ctx context.Context, bin string, o Options) error {
	ports, err := freePorts(ctx, 6)
	if err != nil {
		return err
	}
	// The pod templates are full of {{ }}, so this template uses [[ ]].
	tmpl, err := template.New("kwokctl").Delims("[[", "]]").Parse(kwokctlTemplate)
	if err != nil {
		return err
	}
	var text strings.Builder
	err = tmpl.Execute(&text, map[string]any{
		"Bin":      bin,
		"Ports":    ports,
		"Marked":   map[string]string{"Key": NeverReady, "Operator": "In"},
		"Unmarked": map[string]string{"Key": NeverReady, "Operator": "NotIn"},
		"PodStart": o.PodStart.Milliseconds(),
		"PodStop":  o.PodStop.Milliseconds(),
		"Beat":     cmp.Or(o.Heartbeat, time.Second).Milliseconds(),
		"Binder":   cmp.Or(o.BinderPeriod, 15*time.Second),
		"Without":  without(c.Name, o),
		"Many":     o.Nodes > 0,
		"Stops":    !o.StopByUID,
		"Audit":    o.Audit,
		"Policy":   filepath.Join(c.Dir, "audit-policy.yaml"),
		"Log":      c.AuditLog(),
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(configPath(c.Dir), []byte(text.String()), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "audit-policy.yaml"), []byte(auditPolicy), 0o644); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(c.Dir, "bin"), 0o755); err != nil {
		return err
	}
	return os.Symlink(filepath.Join(bin, "kwokctl"), filepath.Join(c.Dir, "bin", "kwokctl"))
}

// auditPolicy has one line written about each request, once it is answered.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived", "ResponseStarted"], "rules": [{"level": "Metadata"}]}`

// AuditLog returns the path of the audit log of the API server, one event in JSON per line. The log exists with
// Options.Audit alone.
func (c *Cluster) AuditLog() string { return filepath.Join(c.Dir, "audit.log") }

// without returns the flag value that switches the StatefulSet controller off in an unmanaged
// cluster, or "" in any other cluster.
func without(name string, o Options) string {
	if slices.Contains(o.Unmanaged, name) {
		return "*,-statefulset-controller"
	}
	return ""
}

// writeKubeconfig writes a self-contained copy of kwokctl's kubeconfig: with the credentials inside
// and one context, named after the cluster.
func (c *Cluster) writeKubeconfig() error {
	made, err := clientcmd.LoadFromFile(filepath.Join(c.Dir, "clusters", c.Name, "kubeconfig.yaml"))
	if err != nil {
		return err
	}
	if err := clientcmdapi.FlattenConfig(made); err != nil {
		return err
	}
	from := made.Contexts[made.CurrentContext]
	if from == nil {
		return errors.New("kwokctl's kubeconfig has no current context")
	}
	alone := clientcmdapi.NewConfig()
	alone.Clusters[c.Name] = made.Clusters[from.Cluster]
	alone.AuthInfos[c.Name] = made.AuthInfos[from.AuthInfo]
	alone.Contexts[c.Name] = &clientcmdapi.Context{Cluster: c.Name, AuthInfo: c.Name}
	alone.CurrentContext = c.Name
	return clientcmd.WriteToFile(*alone, c.Kubeconfig)
}
