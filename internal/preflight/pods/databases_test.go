package pods

import (
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

func TestGatesAreSuggestedForDatabases(t *testing.T) {
	for name, c := range map[string]struct {
		images []string
		labels map[string]string
		count  int32
		gates  []plans.Gate
		want   string // in Saw; "" for no finding
	}{
		"by its image":                  {[]string{"quay.io/coreos/etcd:v3.5.0"}, nil, 3, nil, "image quay.io/coreos/etcd:v3.5.0 says that it is etcd"},
		"by its image, with a digest":   {[]string{"registry.example:5000/db/cockroach@sha256:01"}, nil, 3, nil, "CockroachDB"},
		"by a word of it":               {[]string{"bitnami/postgresql-repmgr:16"}, nil, 2, nil, "PostgreSQL"},
		"by a word with a number":       {[]string{"ghcr.io/zalando/spilo-16:3.2"}, nil, 2, nil, "PostgreSQL"},
		"by a label":                    {[]string{"shop/db:1"}, map[string]string{"app.kubernetes.io/name": "kafka"}, 3, nil, "label app.kubernetes.io/name=kafka says that it is Kafka"},
		"behind what only looks at it":  {[]string{"oliver006/redis_exporter:v1", "valkey/valkey:8"}, nil, 6, nil, "Redis or Valkey"},
		"what only looks at one":        {[]string{"oliver006/redis_exporter:v1"}, nil, 6, nil, ""},
		"something else":                {[]string{"nginx:1.27"}, map[string]string{"app": "web"}, 6, nil, ""},
		"a name that has one as a part": {[]string{"shop/etcdlike:1"}, nil, 3, nil, ""},
		"a registry that is called so":  {[]string{"kafka.example/shop/web:1"}, nil, 3, nil, ""},
		"one pod, which has no peers":   {[]string{"postgres:17"}, nil, 1, nil, ""},
		"one that has gates":            {[]string{"quay.io/coreos/etcd:v3.5.0"}, nil, 3, []plans.Gate{{Name: "healthy"}}, ""},
	} {
		set := &appsv1.StatefulSet{}
		set.Spec.Template.Labels = c.labels
		for _, image := range c.images {
			set.Spec.Template.Spec.Containers = append(set.Spec.Template.Spec.Containers, corev1.Container{Image: image})
		}
		p := &plans.Plan{Count: c.count, Gates: c.gates, Source: plans.Ref{Namespace: "shop", Name: "web"}}
		found, err := Gates(t.Context(), check.Inspection{Pair: clusters.Pair{Plan: p}, Now: build.Inputs{Set: set}})
		if err != nil {
			t.Fatal(err)
		}
		if (c.want == "") != (len(found) == 0) || len(found) > 0 && (found[0].Level != check.Warn || !strings.Contains(found[0].Saw, c.want)) {
			t.Errorf("%s: %+v, expected %q", name, found, c.want)
		}
	}
}

// Every example that a warning names is in the page.
func TestThePageHasTheGatesThatAreSuggested(t *testing.T) {
	page, err := os.ReadFile("../../../docs/gates.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range databases() {
		if d.example != "" && !strings.Contains(string(page), "\n## "+d.example+"\n") {
			t.Errorf("docs/gates.md has nothing for %s", d.example)
		}
	}
}
