package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/orchestrator"
	"github.com/stsmigrate/stsmigrate/plans"
)

func folder(name string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "../..", name)
}

func journal(cm *corev1.ConfigMap) (*plans.Journal, error) {
	var j plans.Journal
	return &j, json.Unmarshal([]byte(cm.Data["journal.json"]), &j)
}

// permit gives the orchestrator what a plan needs on both sides.
func (s *storm) permit(ctx context.Context, file string) error {
	raw, err := os.ReadFile(filepath.Join(s.dir, file))
	if err != nil {
		return err
	}
	p, err := plans.DecodePlan(raw)
	if err != nil {
		return err
	}
	for _, side := range plans.Sides() {
		at := s.east
		if side == plans.Destination {
			at = s.west
		}
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("storm-%s", p.Name)}}
		for _, r := range orchestrator.Rights(p, side) {
			role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: r.Verbs})
		}
		if err := at.Create(ctx, role); err != nil {
			return err
		}
		if err := at.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: account}},
		}); err != nil {
			return err
		}
	}
	return nil
}
