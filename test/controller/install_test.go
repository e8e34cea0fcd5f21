package controller_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/manifests"
	"github.com/stsmigrate/stsmigrate/test/cluster"
)

// install makes the kind StatefulSetSlice known, and gives a kubeconfig with the rights
// of deploy/slicecontroller, for both kinds, and no others: a test that passes passes with
// them.
func install(ctx context.Context, c *cluster.Cluster, dir string) (string, error) {
	at, err := client.NewWithWatch(c.Config(), client.Options{})
	if err != nil {
		return "", err
	}
	if err := establish(ctx, at); err != nil {
		return "", err
	}
	for _, file := range []string{"namespace.yaml", "rbac.yaml"} {
		if err := apply(ctx, at, filepath.Join("../../deploy/slicecontroller", file)); err != nil {
			return "", err
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

// apply makes the objects of a file.
func apply(ctx context.Context, at client.Client, file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := at.Create(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
}

// establish makes the kind known, and waits until it is served.
func establish(ctx context.Context, at client.WithWatch) error {
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(manifests.CRD, &definition.Object); err != nil {
		return err
	}
	if err := at.Create(ctx, definition); err != nil {
		return err
	}
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
