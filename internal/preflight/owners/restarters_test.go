package owners

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
)

func TestProgramsThatRestartPodsAreNamed(t *testing.T) {
	for key, want := range map[string]string{
		"reloader.stakater.com/auto":                       "Reloader restarts",
		"configmap.reloader.stakater.com/reload":           "Reloader restarts",
		"secret.reloader.stakater.com/reload":              "Reloader restarts",
		"restarter.stackable.tech/enabled":                 "Stackable restarts",
		"wave.pusher.com/update-on-config-change":          "Wave restarts",
		"keel.sh/policy":                                   "Keel replaces the image",
		"operator.1password.io/auto-restart":               "1Password restarts",
		"checksum/config":                                  "restarts the pods when the chart",
		"example.com/reloader":                             "",
		"kubectl.kubernetes.io/last-applied-configuration": "",
	} {
		for where, put := range map[string]func(*appsv1.StatefulSet, map[string]string){
			"annotations of the set":      func(s *appsv1.StatefulSet, m map[string]string) { s.Annotations = m },
			"labels of the set":           func(s *appsv1.StatefulSet, m map[string]string) { s.Labels = m },
			"annotations of the template": func(s *appsv1.StatefulSet, m map[string]string) { s.Spec.Template.Annotations = m },
		} {
			for value, marked := range map[string]bool{"true": true, "false": false} {
				i := checktest.Estate{}.Inspected(t)
				put(i.Now.Set, map[string]string{key: value})
				found, err := Restarters(t.Context(), i)
				if err != nil {
					t.Fatal(err)
				}
				if !marked || want == "" {
					if len(found) != 0 {
						t.Errorf("%s: %s in the %s: %+v", key, value, where, found)
					}
					continue
				}
				if len(found) != 1 || found[0].Level != check.Warn || !strings.Contains(found[0].Saw, want) || !strings.Contains(found[0].Saw, key) {
					t.Errorf("%s in the %s: %+v, expected %q", key, where, found, want)
				}
			}
		}
	}
}

// A tool that declares the partition would set it back while a wave is away; what the API server has filled in is not declared.
func TestWhoDeclaresThePartitionIsKnown(t *testing.T) {
	fields := `{"f:spec":{"f:updateStrategy":{"f:rollingUpdate":{"f:partition":{}}}}}`
	applied := entry("argocd-controller", fields, time.Unix(0, 0))
	applied.Operation = metav1.ManagedFieldsOperationApply
	note := func(strategy string) map[string]string {
		return map[string]string{corev1.LastAppliedConfigAnnotation: `{"spec":{"updateStrategy":` + strategy + `}}`}
	}
	for name, c := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		notes map[string]string
		want  bool
	}{
		"nobody":                {metav1.ManagedFieldsEntry{}, nil, false},
		"the API server":        {entry("kubectl-create", fields, time.Unix(0, 0)), note(`{"type":"RollingUpdate"}`), false},
		"by server-side apply":  {applied, nil, true},
		"in the noted manifest": {metav1.ManagedFieldsEntry{}, note(`{"rollingUpdate":{"partition":0}}`), true},
		"a note of nothing":     {metav1.ManagedFieldsEntry{}, map[string]string{corev1.LastAppliedConfigAnnotation: "?"}, false},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Annotations: c.notes, ManagedFields: []metav1.ManagedFieldsEntry{c.entry}}}
		if got := declares(set); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
