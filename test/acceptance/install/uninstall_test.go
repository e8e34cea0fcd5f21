package install_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

const kindOfRequests = "statefulsetmigrations.stsmigrate.dev"

func kubectl(t *testing.T, stdin string, args ...string) error {
	t.Helper()
	program, err := cluster.Program(context.WithoutCancel(t.Context()), "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	cmd := fixture.Command(context.WithoutCancel(t.Context()), north.Kubeconfig, t.TempDir(), program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %v: %w\n%s", args, err, out)
	}
	return nil
}

func definition(t *testing.T, at client.Client) (*unstructured.Unstructured, error) {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	return o, at.Get(t.Context(), client.ObjectKey{Name: kindOfRequests}, o)
}

// installed has an orchestrator in a namespace of its own, and a request of a plan that is under way.
func installed(t *testing.T, at client.Client) {
	t.Helper()
	if out, err := stsmigrate(t, "install", "-n", "going", "orchestrator", "--apply"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := kubectl(t, "", "wait", "--for=condition=Established", "crd/"+kindOfRequests, "--timeout=1m"); err != nil {
		t.Fatal(err)
	}
	o := records.NewDeclared("going", "web")
	o.SetFinalizers([]string{records.UnderWay})
	o.Object["spec"] = map[string]any{"source": map[string]any{"namespace": "shop", "name": "web"}, "destination": map[string]any{"namespace": "mall"}}
	if err := at.Create(t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
}

// What the pages say takes the programs away, and keeps what plans need: their namespace, the kind and its objects.
func TestTakingTheOrchestratorAwayKeepsPlans(t *testing.T) {
	at := as(t, "")
	installed(t, at)
	printed, err := stsmigrate(t, "install", "-n", "going", "orchestrator", "--set", "namespace.create=false,crds.install=false")
	if err != nil {
		t.Fatal(err)
	}
	if err := kubectl(t, printed, "delete", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if err := at.Get(t.Context(), client.ObjectKey{Namespace: "going", Name: "orchestrator"}, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment: %v", err)
	}
	var home corev1.Namespace
	if err := at.Get(t.Context(), client.ObjectKey{Name: "going"}, &home); err != nil || home.DeletionTimestamp != nil {
		t.Errorf("the namespace: %v, %v", home.DeletionTimestamp, err)
	}
	if d, err := definition(t, at); err != nil || d.GetDeletionTimestamp() != nil {
		t.Errorf("the kind: %v, %v", d.GetDeletionTimestamp(), err)
	}
	if d, err := records.ReadDeclared(t.Context(), at, "going", "web"); err != nil || d == nil || d.Object.GetDeletionTimestamp() != nil {
		t.Errorf("the request: %+v, %v", d, err)
	}
}

// A kind that is being deleted accepts no object, and goes when its last object goes: nothing is installed onto it.
func TestNothingIsInstalledOntoAKindThatIsGoing(t *testing.T) {
	at := as(t, "")
	installed(t, at)
	if err := kubectl(t, "", "delete", "crd", kindOfRequests, "--wait=false"); err != nil {
		t.Fatal(err)
	}
	out, err := stsmigrate(t, "install", "-n", "going", "orchestrator", "--apply")
	if err == nil || out != "" || !strings.Contains(err.Error(), "customresourcedefinition/"+kindOfRequests+" is being deleted, and nothing was applied: no object of it can be created") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := stsmigrate(t, "install", "-n", "going", "orchestrator", "--apply", "--set", "crds.install=false"); err != nil || strings.Contains(out, "customresourcedefinition") {
		t.Errorf("%v\n%s", err, out)
	}
	o := records.NewDeclared("going", "web")
	if err := as(t, account).Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	if err := kubectl(t, "", "wait", "--for=delete", "crd/"+kindOfRequests, "--timeout=1m"); err != nil {
		t.Fatal(err)
	}
	if out, err := stsmigrate(t, "install", "-n", "going", "orchestrator", "--apply"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A second release of helm in a cluster is told in a sentence that the kind is another one's, and can do without.
func TestASecondReleaseDoesWithoutTheKind(t *testing.T) {
	at := as(t, "")
	installed(t, at)
	d, err := definition(t, at)
	if err != nil {
		t.Fatal(err)
	}
	before := d.DeepCopy()
	d.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "first", "meta.helm.sh/release-namespace": "first", "helm.sh/resource-policy": "keep"})
	if err := at.Patch(t.Context(), d, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kubectl(t, "", "annotate", "crd", kindOfRequests, "meta.helm.sh/release-name-", "meta.helm.sh/release-namespace-"); err != nil {
			t.Error(err)
		}
	})
	release := func(namespace string, values map[string]any) error {
		t.Helper()
		c, err := loader.Load("../../../deploy/chart")
		if err != nil {
			t.Fatal(err)
		}
		with, err := util.ToRenderValues(c, values, common.ReleaseOptions{Name: "second", Namespace: namespace, IsInstall: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.RenderWithClient(c, with, north.Config())
		return err
	}
	const sentence = "CustomResourceDefinition " + kindOfRequests + " belongs to the release first in namespace first, and a cluster has it once: set crds.install=false here"
	if err := release("second", nil); err == nil || !strings.Contains(err.Error(), sentence) {
		t.Errorf("%v", err)
	}
	for namespace, values := range map[string]map[string]any{"first": nil, "second": {"crds": map[string]any{"install": false}}} {
		if err := release(namespace, values); err != nil {
			t.Errorf("in %s: %v", namespace, err)
		}
	}
	out, err := stsmigrate(t, "install", "-n", "going", "orchestrator", "--apply")
	if err == nil || out != "" || !strings.Contains(err.Error(), "belongs to the install in namespace first, and nothing was applied: a cluster has it once, and that release upgrades it: add --set crds.install=false") {
		t.Errorf("%v\n%s", err, out)
	}
}
