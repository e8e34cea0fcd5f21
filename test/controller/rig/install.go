// Package rig installs the slice controller in a cluster of the test bed, and runs it.
package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/orchestrator"
	"github.com/stsmigrate/stsmigrate/test/cluster"
)

// Client makes a live client of a cluster, which knows slices and is not held back.
func Client(c *cluster.Cluster) (client.WithWatch, error) {
	config := c.Config()
	config.QPS = -1
	return client.NewWithWatch(config, client.Options{Scheme: orchestrator.Scheme()})
}

// Install makes everything of deploy/slicecontroller, as `kubectl apply -k` does, and gives
// a kubeconfig in a folder with the rights of its account, for both kinds of sets, and no
// others: whatever passes passes with them. The pods of its Deployment are pods of the bed,
// which run nothing.
func Install(ctx context.Context, c *cluster.Cluster, dir string) (string, error) {
	at, err := Client(c)
	if err != nil {
		return "", err
	}
	objects, err := manifests(ctx)
	if err != nil {
		return "", err
	}
	for _, o := range objects {
		if err := at.Create(ctx, o); err != nil {
			return "", fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if o.GetKind() == "CustomResourceDefinition" {
			if err := established(ctx, at, o); err != nil {
				return "", err
			}
		}
	}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "stsmigrate", Name: "slicecontroller"}
	if err := at.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "stsmigrate-slicecontroller-native"}, Subjects: []rbacv1.Subject{account},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "stsmigrate-slicecontroller-native"},
	}); err != nil {
		return "", err
	}
	var token authenticationv1.TokenRequest
	day := int64(86400)
	token.Spec.ExpirationSeconds = &day
	if err := at.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}, &token); err != nil {
		return "", err
	}
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		return "", err
	}
	for _, context := range config.Contexts {
		context.AuthInfo, context.Namespace = account.Name, account.Namespace
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{account.Name: {Token: token.Status.Token}}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	return kubeconfig, clientcmd.WriteToFile(*config, kubeconfig)
}

// manifests are the objects that kubectl makes of the folder.
func manifests(ctx context.Context) ([]*unstructured.Unstructured, error) {
	kubectl, err := cluster.Program(ctx, "kubectl")
	if err != nil {
		return nil, err
	}
	_, file, _, _ := runtime.Caller(0)
	folder := filepath.Join(filepath.Dir(file), "../../../deploy/slicecontroller")
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
