package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/orchestrator/fleet"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

// canary is part of Secrets that the orchestrator reads and must reject. One Secret cannot be parsed, and the
// errors of parsers tend to quote their input; the other would execute a program.
const canary = "canary-that-nobody-may-see"

func baits() []*corev1.Secret {
	bait := func(name, kubeconfig string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name, Labels: map[string]string{fleet.Label: name}},
			Data:       map[string][]byte{"kubeconfig": []byte(kubeconfig)},
		}
	}
	return []*corev1.Secret{
		bait("unreadable", "kind: Config\napiVersion: "+canary+"\n"),
		bait("refused", `{"apiVersion": "v1", "kind": "Config", "current-context": "x", "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
"contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
"users": [{"name": "x", "user": {"token": "`+canary+`", "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "`+canary+`", "interactiveMode": "Never"}}}]}`),
	}
}

// leaks lists the places where a value of a Secret is exposed: anything that users or programs without the
// right to read Secrets may read.
func (s *storm) leaks(ctx context.Context, _ []*moving) ([]string, error) {
	told := map[string]string{"the metrics": s.replicas.metrics(ctx)}
	for _, file := range []string{logs, users} {
		raw, err := os.ReadFile(filepath.Join(s.dir, file))
		if err != nil {
			return nil, err
		}
		told[file] = string(raw)
	}
	kept := map[string]string{}
	for name, at := range map[string]client.Client{"east": s.east, "west": s.west} {
		for _, list := range []client.ObjectList{
			&corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.EventList{}, &corev1.PersistentVolumeList{}, &corev1.PersistentVolumeClaimList{}, &corev1.ServiceList{},
			&appsv1.StatefulSetList{}, &policyv1.PodDisruptionBudgetList{}, &coordinationv1.LeaseList{}, &rbacv1.RoleList{}, &rbacv1.ClusterRoleList{}, &batchv1.JobList{}, migrations(),
		} {
			err := at.List(ctx, list)
			if meta.IsNoMatchError(err) && name == "west" {
				continue // the kind is installed only where the plans are
			}
			if err != nil {
				return nil, err
			}
			raw, err := json.Marshal(list)
			if err != nil {
				return nil, err
			}
			where := told
			if _, secret := list.(*corev1.SecretList); secret {
				where = kept
			}
			where[fmt.Sprintf("%T %s of %s", list, list.GetObjectKind().GroupVersionKind().Kind, name)] = string(raw)
		}
	}
	if !s.lied.Load() || !strings.Contains(told[logs], "redirects to") {
		return nil, errors.New("no orchestrator has told of the answers of the API server that is none")
	}
	if s.strayed.Load() {
		return []string{"an orchestrator went where an API server sent it"}, nil
	}
	values := append([]string{canary, fixture.Password, lie}, s.tokens...)
	if len(s.tokens) < 2 || len(found(kept, values[:2])) < 2 {
		return nil, errors.New("the search for values of Secrets does not even find them in the Secrets")
	}
	return found(told, values), nil
}

// migrations returns an empty list of the kind under which tools see plans.
func migrations() client.ObjectList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(plans.APIVersion)
	list.SetKind("StatefulSetMigrationList")
	return list
}

// found lists the texts that contain one of the values, plain or in base64.
func found(in map[string]string, values []string) (out []string) {
	for where, text := range in {
		for _, v := range values {
			if strings.Contains(text, v) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(v))) {
				out = append(out, fmt.Sprintf("%s: the value of a Secret that begins with %.6q", where, v))
			}
		}
	}
	return out
}
