// Package rig installs the slice controller in a cluster of the test bed, and runs it.
package slicerig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	kind "github.com/stsmigrate/stsmigrate/slicecontroller/manifests"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

// Client returns a live client of a cluster, which knows slices and has no rate limit.
func Client(c *cluster.Cluster) (client.WithWatch, error) {
	config := c.Config()
	config.QPS = -1
	return client.NewWithWatch(config, client.Options{Scheme: clusters.Scheme()})
}

// Installed holds what a process needs to replace the Deployment.
type Installed struct {
	// Kubeconfig has the rights of the Deployment's account, for both kinds of sets, and no others: a test
	// that passes shows that these rights suffice.
	Kubeconfig string
	// Webhook holds the flags with which a process for slices serves the webhook.
	Webhook []string
}

// Answers waits until a process with these flags serves the webhook.
func (i *Installed) Answers(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", i.Webhook[1])
		if err != nil {
			return false, nil //nolint:nilerr // it is not there yet
		}
		return true, c.Close()
	})
}

// Install creates the objects of deploy/slicecontroller-webhook, as `kubectl apply -k` does, except those
// that cert-manager would create: the certificate is in a folder, and the API server calls a loopback
// address. The pods of the Deployment are pods of the bed, which run nothing.
func Install(ctx context.Context, c *cluster.Cluster, dir string) (*Installed, error) {
	at, err := Client(c)
	if err != nil {
		return nil, err
	}
	objects, err := manifests(ctx)
	if err != nil {
		return nil, err
	}
	address, ca, err := certify(ctx, dir)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		switch {
		case o.GroupVersionKind().Group == "cert-manager.io":
			continue
		case o.GetKind() == "ValidatingWebhookConfiguration":
			if err := redirect(o, address, ca); err != nil {
				return nil, err
			}
		}
		if err := at.Create(ctx, o); err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if o.GetKind() == "CustomResourceDefinition" {
			if err := established(ctx, at, o); err != nil {
				return nil, err
			}
		}
	}
	kubeconfig, err := impersonate(ctx, at, c, dir)
	return &Installed{kubeconfig, []string{"--webhook-bind-address", address, "--webhook-cert-dir", dir}}, err
}

// certify creates a certificate for a free loopback address.
func certify(ctx context.Context, dir string) (address string, ca []byte, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address = l.Addr().String()
	if err := l.Close(); err != nil {
		return "", nil, err
	}
	crt, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return "", nil, err
	}
	return address, crt, errors.Join(os.WriteFile(filepath.Join(dir, "tls.crt"), crt, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
}

// redirect makes the API server call an address instead of a Service, with the same path.
func redirect(o *unstructured.Unstructured, address string, ca []byte) error {
	var config admissionregistrationv1.ValidatingWebhookConfiguration
	if err := apiruntime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &config); err != nil {
		return err
	}
	for k := range config.Webhooks {
		c := &config.Webhooks[k].ClientConfig
		url := "https://" + address + *c.Service.Path
		c.URL, c.Service, c.CABundle = &url, nil, ca
	}
	var err error
	o.Object, err = apiruntime.DefaultUnstructuredConverter.ToUnstructured(&config)
	return err
}

// impersonate writes a kubeconfig for the account of the Deployment.
func impersonate(ctx context.Context, at client.Client, c *cluster.Cluster, dir string) (string, error) {
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "stsmigrate", Name: "slicecontroller"}
	if err := at.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "stsmigrate-slicecontroller-native"}, Subjects: []rbacv1.Subject{account},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "stsmigrate-slicecontroller-native"},
	}); err != nil {
		return "", err
	}
	if err := at.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: "slicecontroller-guard"}, Subjects: []rbacv1.Subject{account},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "slicecontroller-guard"},
	}); err != nil {
		return "", err
	}
	config, _, err := fixture.Credentials(ctx, at, c, account.Namespace, account.Name)
	if err != nil {
		return "", err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	return kubeconfig, clientcmd.WriteToFile(*config, kubeconfig)
}

// manifests returns the objects that kubectl builds from the folder.
func manifests(ctx context.Context) ([]*unstructured.Unstructured, error) {
	kubectl, err := cluster.Program(ctx, "kubectl")
	if err != nil {
		return nil, err
	}
	_, file, _, _ := runtime.Caller(0)
	folder := filepath.Join(filepath.Dir(file), "../../../deploy/slicecontroller-webhook")
	cmd := exec.CommandContext(ctx, kubectl, "kustomize", folder)
	var said bytes.Buffer
	cmd.Stderr = &said
	raw, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kubectl kustomize %s: %w\n%s", folder, err, &said)
	}
	var out []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
		out = append(out, o)
	}
}

// Define installs only the CustomResourceDefinition in a cluster.
func Define(ctx context.Context, at client.WithWatch) error {
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(kind.CRD, &definition.Object); err != nil {
		return err
	}
	if err := at.Create(ctx, definition); err != nil {
		return err
	}
	return established(ctx, at, definition)
}

// established waits until a kind is served.
func established(ctx context.Context, at client.WithWatch, definition *unstructured.Unstructured) error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(definition.GetAPIVersion())
	list.SetKind(definition.GetKind() + "List")
	w, err := at.Watch(ctx, list, client.MatchingFields{"metadata.name": definition.GetName()})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		o, _ := e.Object.(*unstructured.Unstructured)
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			if m, _ := c.(map[string]any); m["type"] == "Established" && m["status"] == "True" {
				return nil
			}
		}
	}
	return errors.New("the watch ended before the kind was established")
}
