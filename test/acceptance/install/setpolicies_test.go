package install_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/slicecontroller/manifests"
)

const autoscaler = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"

// setOf returns a set or a slice without pods.
func setOf(version, kind, namespace, name string, notes map[string]string) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "spec": map[string]any{
		"replicas": int64(0), "serviceName": name, "selector": map[string]any{"matchLabels": labels},
		"ordinals": map[string]any{"start": int64(0)},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web"}}}},
	}}}
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetAnnotations(notes)
	return o
}

// kinds are the kinds of sets, with their versions.
func kinds() map[string]string {
	return map[string]string{"StatefulSet": "apps/v1", "StatefulSetSlice": "apps.stsmigrate.dev/v1alpha1"}
}

// scales sends a number of replicas to the subresource scale, as a dry run.
func scales(ctx context.Context, c client.Client, set *unstructured.Unstructured, n int) error {
	return c.SubResource("scale").Patch(ctx, set.DeepCopy(), merging(fields{"spec": fields{"replicas": n}}), client.DryRunAll)
}

func merging(change fields) client.Patch {
	raw, _ := json.Marshal(change) //nolint:errchkjson // it has maps and numbers only
	return client.RawPatch(types.MergePatchType, raw)
}

// settles waits until the controller of the cluster has written what it knows of a set that was just made.
func settles(t *testing.T, set *unstructured.Unstructured) {
	t.Helper()
	if set.GetKind() != "StatefulSet" {
		return // no controller is running for slices
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := as(t, "").Get(ctx, client.ObjectKeyFromObject(set), set)
		seen, _, _ := unstructured.NestedInt64(set.Object, "status", "observedGeneration")
		return seen == set.GetGeneration(), err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// setsPoliced installs the policies where there are slices, and returns a marked set of each kind. The policies are
// installed before the kind of slices, and know it when it comes.
func setsPoliced(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	policed(t)
	if out, err := stsmigrate(t, "install", "policies", "--apply", "--set", "policies.slices=true", "--set", "policies.movers.users={anna}", "--set", "policies.movers.groups={movers}", "--set", "policies.accounts={"+other+"}"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	owner, mover := as(t, ""), as(t, account)
	kind := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(manifests.CRD, &kind.Object); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{kind, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "sets"}}} {
		if err := owner.Create(t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	out := map[string]*unstructured.Unstructured{}
	for kind, version := range kinds() {
		set := setOf(version, kind, "sets", "web", map[string]string{stamp: "web/1/7", "stsmigrate.dev/before": "{}"})
		out[kind] = set
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
			err := mover.Create(ctx, set.DeepCopy())
			return client.IgnoreAlreadyExists(err) == nil, nil // the API server does not serve a new kind at once
		})
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if err := owner.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			t.Fatal(err)
		}
		settles(t, set)
		err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
			for _, err := range []error{scales(ctx, as(t, "eve"), set, 5), as(t, "eve").Patch(ctx, set.DeepCopy(), merging(fields{"spec": fields{"replicas": 5}}), client.DryRunAll)} {
				if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
					return false, nil
				}
			}
			return true, nil
		})
		if err != nil {
			t.Fatalf("the policies of sets are not in force for %s: %v", kind, err)
		}
	}
	return out
}

// A set that is marked by a plan is scaled by nobody but those who carry plans out, whatever the way. The rest of it
// stays the user's, and the controllers go on.
func TestPoliciesKeepSetsOfPlansFromMistakes(t *testing.T) {
	sets := setsPoliced(t)
	const moved, belongs = "is being moved by plan web, which alone changes its replicas and ordinals", "is being moved by plan web, to which its annotations stsmigrate.dev/* belong"
	for kind, set := range sets {
		scale := func(n int) func(context.Context, client.Client) error {
			return func(ctx context.Context, c client.Client) error { return scales(ctx, c, set, n) }
		}
		patch := func(change fields) func(context.Context, client.Client) error {
			return func(ctx context.Context, c client.Client) error {
				return c.Patch(ctx, set.DeepCopy(), merging(change), client.DryRunAll)
			}
		}
		note := func(key string, value any) fields {
			return fields{"metadata": fields{"annotations": fields{key: value}}}
		}
		copied := func(notes map[string]string) func(context.Context, client.Client) error {
			return func(ctx context.Context, c client.Client) error {
				return c.Create(ctx, setOf(set.GetAPIVersion(), kind, "sets", "copy", notes), client.DryRunAll)
			}
		}
		for _, c := range []struct {
			name    string
			who     client.Client
			do      func(context.Context, client.Client) error
			refused string // "" is allowed
		}{
			{"a colleague scales it", as(t, "eve"), scale(5), moved},
			{"and an administrator", as(t, "admin", "system:masters"), scale(5), moved},
			{"and an autoscaler", as(t, autoscaler), scale(1), moved},
			{"what it has is no change", as(t, "eve"), scale(0), ""},
			{"the account scales it", as(t, account), scale(5), ""},
			{"and an orchestrator of another name", as(t, other), scale(5), ""},
			{"and a person who is named", as(t, "anna"), scale(5), ""},
			{"or one of a group", as(t, "bert", "movers"), scale(5), ""},
			{"a colleague edits it", as(t, "eve"), patch(fields{"spec": fields{"replicas": 5}}), moved},
			{"or its first ordinal", as(t, "eve"), patch(fields{"spec": fields{"ordinals": fields{"start": 3}}}), moved},
			{"a person who is named edits it", as(t, "anna"), patch(fields{"spec": fields{"replicas": 5, "ordinals": fields{"start": 3}}}), ""},
			{"the range is spelled another way", as(t, "eve"), patch(fields{"spec": fields{"ordinals": nil}}), ""},
			{"a colleague takes the mark off", as(t, "eve"), patch(note(stamp, nil)), belongs},
			{"or changes it", as(t, "eve"), patch(note(stamp, "web/9/9")), belongs},
			{"or what was noted", as(t, "eve"), patch(note("stsmigrate.dev/before", nil)), belongs},
			{"or adds to it", as(t, "eve"), patch(note("stsmigrate.dev/pinned-partition", "0")), belongs},
			{"a person who is named takes it off", as(t, "anna"), patch(note(stamp, nil)), ""},
			{"a colleague notes something else", as(t, "eve"), patch(note("example.com/note", "x")), ""},
			{"and changes the template and the strategy", as(t, "eve"), patch(fields{"spec": fields{"template": fields{"metadata": fields{"annotations": fields{"a": "b"}}}, "updateStrategy": fields{"type": "OnDelete", "rollingUpdate": nil}}}), ""},
			{"and labels and finalizers", as(t, "eve"), patch(fields{"metadata": fields{"labels": fields{"a": "b"}, "finalizers": []string{"example.com/keep"}}}), ""},
			{"a controller writes its status", as(t, "system:serviceaccount:kube-system:statefulset-controller"), func(ctx context.Context, c client.Client) error {
				return c.Status().Patch(ctx, set.DeepCopy(), merging(fields{"status": fields{"replicas": 1, "observedGeneration": 1}}), client.DryRunAll)
			}, ""},
			{"the collector deletes it", as(t, "system:serviceaccount:kube-system:generic-garbage-collector"), func(ctx context.Context, c client.Client) error {
				return c.Delete(ctx, set.DeepCopy(), client.DryRunAll)
			}, ""},
			{"a colleague copies it with its mark", as(t, "eve"), copied(set.GetAnnotations()), "only those who carry plans out may mark it"},
			{"and without", as(t, "eve"), copied(map[string]string{"a": "b"}), ""},
			{"the account makes one with its mark", as(t, account), copied(set.GetAnnotations()), ""},
		} {
			t.Run(kind+", "+c.name, func(t *testing.T) {
				switch err := c.do(t.Context(), c.who); {
				case c.refused == "" && err != nil:
					t.Error(err)
				case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
					t.Errorf("%v, expected it to be refused with %q", err, c.refused)
				}
			})
		}
	}
	// The status of a StatefulSet carries annotations too.
	err := as(t, "eve").Status().Patch(t.Context(), sets["StatefulSet"].DeepCopy(), merging(fields{"metadata": fields{"annotations": fields{stamp: nil}}}), client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), belongs) {
		t.Errorf("the mark is taken off with the status: %v", err)
	}
}

// Other sets of the namespace are scaled as ever, also one that a plan has let go, and a namespace ends with its sets.
func TestPoliciesLetOtherSetsBe(t *testing.T) {
	setsPoliced(t)
	owner, eve := as(t, ""), as(t, "eve")
	for kind, version := range kinds() {
		free := setOf(version, kind, "sets", "free", nil)
		if err := owner.Create(t.Context(), free); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
		settles(t, free)
		if err := scales(t.Context(), eve, free, 5); err != nil {
			t.Errorf("%s: a set without a mark: %v", kind, err)
		}
		marked := setOf(version, kind, "sets", "gone", map[string]string{stamp: "old/1/7"})
		if err := as(t, account).Create(t.Context(), marked); err != nil {
			t.Fatal(err)
		}
		if err := as(t, "anna").Patch(t.Context(), marked.DeepCopy(), merging(fields{"metadata": fields{"annotations": fields{stamp: nil}}})); err != nil {
			t.Fatal(err)
		}
		if err := scales(t.Context(), eve, marked, 5); err != nil {
			t.Errorf("%s: a set of a plan that is gone, with its mark off: %v", kind, err)
		}
		if err := eve.Patch(t.Context(), marked.DeepCopy(), merging(fields{"spec": fields{"replicas": 5}}), client.DryRunAll); err != nil {
			t.Errorf("%s: a set of a plan that is gone, with its mark off: %v", kind, err)
		}
	}
	closing := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "closing"}}
	if err := owner.Create(t.Context(), closing); err != nil {
		t.Fatal(err)
	}
	for kind, version := range kinds() {
		if err := as(t, account).Create(t.Context(), setOf(version, kind, closing.Name, "web", map[string]string{stamp: "web/1/7"})); err != nil {
			t.Fatal(err)
		}
	}
	if err := owner.Delete(t.Context(), closing); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		for kind, version := range kinds() {
			err := owner.Get(ctx, client.ObjectKey{Namespace: closing.Name, Name: "web"}, setOf(version, kind, "", "", nil))
			if !apierrors.IsNotFound(err) {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		t.Errorf("the namespace does not end with its marked sets: %v", err)
	}
}
