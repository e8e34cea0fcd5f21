//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/e2e/bed"
	"github.com/stsmigrate/stsmigrate/test/e2e/history"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// application is a page of docs/applications: NAME.yaml has its objects, and NAME-migration.yaml
// its gates.
type application struct {
	page   string
	image  string          // what the nodes have in place of the image of the page
	client []corev1.EnvVar // where the client finds it
}

func applicationFile(name string) string { return filepath.Join("../../docs/applications", name) }

// The primary hands its role over before its pod leaves, and no write that it acknowledged is lost.
func TestPostgreSQLMovesAsItsPageSays(t *testing.T) {
	password := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "postgres"}, Key: "password"}}
	application{page: "postgresql", image: debian(t, "postgres"), client: []corev1.EnvVar{
		{Name: "PGHOST", Value: "postgres-0.postgres,postgres-1.postgres,postgres-2.postgres"},
		{Name: "PGUSER", Value: "postgres"},
		{Name: "PGDATABASE", Value: "postgres"},
		{Name: "PGPASSWORD", ValueFrom: password},
	}}.moves(t, "postgres")
}

// A quorum of servers is left while one moves, and the one that has arrived is a member again before the next leaves.
func TestZooKeeperMovesAsItsPageSays(t *testing.T) {
	application{page: "zookeeper", image: debian(t, "zookeeper"), client: []corev1.EnvVar{
		{Name: "ZOOKEEPER", Value: "zookeeper-0.zookeeper:2181,zookeeper-1.zookeeper:2181,zookeeper-2.zookeeper:2181"},
	}}.moves(t, "zookeeper")
}

// debian brings the image of an application that Debian has, and returns its name.
func debian(t *testing.T, application string) string {
	t.Helper()
	b, name := clusters(t), bed.Image(application)
	if out, err := command("", "images/debian", application, name); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 3 {
			t.Skip(out)
		}
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), application+".tar")
	if _, err := command("", "docker", "save", "-o", archive, name); err != nil {
		t.Fatal(err)
	}
	for _, c := range b.Clusters() {
		if err := b.Load(c, archive); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// Each server is current again before the next one leaves: a stream of three replicas acknowledges
// all the time, and loses nothing.
func TestNATSMovesAsItsPageSays(t *testing.T) {
	if err := clusters(t).Bring(t.Context(), "nats-server"); err != nil {
		t.Fatal(err)
	}
	application{page: "nats", image: bed.Image("nats-server"), client: []corev1.EnvVar{
		{Name: "NATS_URL", Value: "nats://nats-0.nats:4222,nats://nats-1.nats:4222,nats://nats-2.nats:4222"},
	}}.moves(t, "nats")
}

// moves moves an application to the other cluster and back, with its gates, under a client.
func (a application) moves(t *testing.T, set string) {
	t.Helper()
	if err := clusters(t).Bring(t.Context(), "writer"); err != nil {
		t.Fatal(err)
	}
	s := between(t, a.page)
	s.set = set
	s.create(t, a.objects(t, s.source)...)
	s.available(t, s.places()[0])
	for i, way := range []string{"to a cluster", "and back"} {
		if !t.Run(way, func(t *testing.T) { a.move(t, s, i, way) }) {
			return
		}
		s = s.back()
	}
}

// objects returns the objects of the page, with the images and the storage of the bed.
func (a application) objects(t *testing.T, namespace string) (all []client.Object) {
	t.Helper()
	raw, err := os.ReadFile(applicationFile(a.page + ".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		o.SetNamespace(namespace)
		if o.GetKind() == "StatefulSet" {
			each(t, o, func(container map[string]any) { container["image"], container["imagePullPolicy"] = a.image, "Never" }, "spec", "template", "spec", "containers")
			each(t, o, func(claim map[string]any) {
				if err := unstructured.SetNestedField(claim, cluster.AttachedClass, "spec", "storageClassName"); err != nil {
					t.Fatal(err)
				}
			}, "spec", "volumeClaimTemplates")
		}
		all = append(all, o)
	}
}

// each changes every element of a list of an object.
func each(t *testing.T, o *unstructured.Unstructured, change func(map[string]any), path ...string) {
	t.Helper()
	list, found, err := unstructured.NestedSlice(o.Object, path...)
	if err != nil || !found {
		t.Fatalf("%s has no %v: %v", o.GetKind(), path, err)
	}
	for _, e := range list {
		element, ok := e.(map[string]any)
		if !ok {
			t.Fatalf("%s: %v has %v", o.GetKind(), path, e)
		}
		change(element)
	}
	if err := unstructured.SetNestedSlice(o.Object, list, path...); err != nil {
		t.Fatal(err)
	}
}

func (a application) move(t *testing.T, s fixture, number int, way string) {
	t.Helper()
	writer := a.writer(t, s, number)
	file := filepath.Join(t.TempDir(), "plan.yaml")
	whenFailed(t, s.run(t, 0, "plan", "-f", applicationFile(a.page+"-migration.yaml"), "--out", file))
	report, r := s.carry(t, file, nil)
	if report.MaxUnavailable > s.d {
		t.Errorf("witness: %d ordinals were down at once, expected %d at most", report.MaxUnavailable, s.d)
	}
	writer.judge(t, s, report, &r)
	r.scenario = a.page + ", " + way
	suite.rows = append(suite.rows, r)
	writer.gone(t)
	whenFailed(t, s.run(t, 0, "finalize", s.set, "--yes"))
	s.available(t, s.places()[1])
	s.nothingDestroyed(t)
}

// writer starts a client on the source, and waits until it writes.
func (a application) writer(t *testing.T, s fixture, number int) caller {
	t.Helper()
	c := caller{s.places()[0], fmt.Sprintf("writer-%d", number)}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = c.namespace, c.pod
	pod.Spec.Containers = []corev1.Container{{
		Name: "writer", Image: bed.Image("writer"), ImagePullPolicy: corev1.PullNever, Args: []string{s.set},
		Env: append([]corev1.EnvVar{fromField("POD_UID", "metadata.uid")}, a.client...),
	}}
	if err := c.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Minute, "the client writes", func(ctx context.Context) error {
		var state history.State
		if err := c.ask(ctx, "GET", c.pod, "state", nil, &state); err != nil {
			return err
		}
		if state.Calls-state.Failures < 50 {
			return fmt.Errorf("%d calls, %d failed: %s", state.Calls, state.Failures, state.Last)
		}
		return nil
	})
	return c
}
