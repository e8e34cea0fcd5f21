package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// place returns a namespace of the west, where slices are managed.
func place(t *testing.T, more ...string) *side {
	t.Helper()
	s := newSide(t, bed.West, strings.NewReplacer("/", "-", "_", "-").Replace(strings.ToLower(strings.Join(append([]string{t.Name()}, more...), "-"))))
	if err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		t.Fatal(err)
	}
	s.listen(t, &corev1.PodList{}, &v1alpha1.StatefulSetSliceList{}, &policyv1.PodDisruptionBudgetList{})
	return s
}

// until waits for a condition, and checks it after every event.
func (s *side) until(t *testing.T, what string, is func(context.Context) bool) {
	t.Helper()
	end := time.NewTimer(patience)
	defer end.Stop()
	for !is(t.Context()) {
		select {
		case <-s.news:
		case <-end.C:
			t.Fatalf("not within %s: %s; pods %v", patience, what, s.pods(t.Context()))
		}
	}
}

// pods lists the names of the pods. The names of pods that are not ready end in !.
func (s *side) pods(ctx context.Context) []string {
	var list corev1.PodList
	if err := s.List(ctx, &list, client.InNamespace(s.namespace)); err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, p := range list.Items {
		mark := ""
		if !isReady(&p) || p.DeletionTimestamp != nil {
			mark = "!"
		}
		out = append(out, p.Name+mark)
	}
	slices.Sort(out)
	return out
}

func (s *side) has(pods ...string) func(context.Context) bool {
	return func(ctx context.Context) bool { return slices.Equal(s.pods(ctx), pods) }
}

// written returns a slice from the text of its spec.
func (s *side) written(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	text := "apiVersion: apps.stsmigrate.dev/v1alpha1\nkind: StatefulSetSlice\nmetadata: {name: web, namespace: " + s.namespace + "}\nspec:\n  selector: {matchLabels: {app: web}}\n" +
		"  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}\n" + spec
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return o
}

// patch changes the spec of the slice.
func (s *side) patch(ctx context.Context, spec string) error {
	o := &v1alpha1.StatefulSetSlice{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	return s.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{"spec":`+spec+`}`)))
}

func (s *side) slice(t *testing.T) *v1alpha1.StatefulSetSlice {
	t.Helper()
	var o v1alpha1.StatefulSetSlice
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "web"}, &o); err != nil {
		t.Fatal(err)
	}
	return &o
}

// The API server refuses meaningless values, with one sentence (VA-3, VA-6, VA-8, MU-10, ID-11), including
// numbers below their minimum (961-04, 2599-06, 3335-01).
func TestTheAPIServerRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	s := place(t)
	for spec, want := range map[string]string{
		"  replicas: -1":                                        "spec.replicas",
		"  replicas: 10001":                                     "spec.replicas",
		"  selector: {}":                                        "the selector is empty",
		"  selector: {matchLabels: {}}":                         "the selector is empty",
		"  ordinals: {start: -1}":                               "spec.ordinals.start",
		"  reserveOrdinals: [-1]":                               "spec.reserveOrdinals",
		"  reserveOrdinals: [1, 1]":                             "spec.reserveOrdinals",
		"  minReadySeconds: -1":                                 "spec.minReadySeconds",
		"  podManagementPolicy: Sometimes":                      "spec.podManagementPolicy",
		"  updateStrategy: {type: Recreate}":                    "spec.updateStrategy.type",
		"  serviceName: A_b":                                    "spec.serviceName",
		"  replicas: 2\n  ordinals: {start: 2147483647}":        "the last ordinal is above 2147483647",
		"  updateStrategy: {type: OnDelete, rollingUpdate: {}}": "rollingUpdate is for type RollingUpdate",

		"  updateStrategy: {type: RollingUpdate, enforcedRollingUpdate: {}}":      "enforcedRollingUpdate is for type EnforcedRollingUpdate",
		"  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: -1}}": "spec.updateStrategy.rollingUpdate.partition",
		"  updateStrategy: {rollingUpdate: {maxUnavailable: 0}}":                  "maxUnavailable is 1 or more, or 1% to 100%",
		"  updateStrategy: {rollingUpdate: {maxUnavailable: 0%}}":                 "maxUnavailable is 1 or more, or 1% to 100%",
		"  updateStrategy: {rollingUpdate: {maxUnavailable: 101%}}":               "maxUnavailable is 1 or more, or 1% to 100%",
		"  updateStrategy: {rollingUpdate: {maxUnavailable: one}}":                "maxUnavailable is 1 or more, or 1% to 100%",
		"  persistentVolumeClaimRetentionPolicy: {whenScaled: Burn}":              "spec.persistentVolumeClaimRetentionPolicy.whenScaled",
	} {
		if err := s.Create(t.Context(), s.written(t, spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, expected %q", strings.TrimSpace(spec), err, want)
		}
	}
	for name, want := range map[string]string{strings.Repeat("w", 53): "longer than 52 characters", "web.v1": "the name is no DNS label"} { // ID-11, VA-4
		o := s.written(t, "")
		o.SetName(name)
		if err := s.Create(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Create(t.Context(), s.written(t, "  replicas: 0\n  serviceName: web\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]")); err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{
		`{"selector":{"matchLabels":{"app":"other"}}}`: "the selector cannot be changed",
		`{"serviceName":"other"}`:                      "serviceName cannot be changed",
		`{"serviceName":null}`:                         "serviceName cannot be changed",
		`{"podManagementPolicy":"Parallel"}`:           "podManagementPolicy cannot be changed",
		`{"volumeClaimTemplates":null}`:                "volumeClaimTemplates cannot be changed",
		`{"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Mi"}}}}]}`: "the storage request of volumeClaimTemplates can only grow",
	} {
		if err := s.patch(t.Context(), spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("VA-6: %s: got %v, expected %q", spec, err, want)
		}
	}
	if err := s.patch(t.Context(), `{"ordinals":{"start":7},"minReadySeconds":1,"revisionHistoryLimit":3,"updateStrategy":{"type":"OnDelete"},"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"},"template":{"metadata":{"annotations":{"a":"b"}}}}`); err != nil {
		t.Errorf("VA-6: what may be changed: %v", err)
	}
	o := s.slice(t)
	if o.Spec.PodManagementPolicy != "OrderedReady" || *o.Spec.Replicas != 0 || *o.Spec.RevisionHistoryLimit != 3 {
		t.Errorf("VA-1: %+v", o.Spec)
	}
}

// The API server accepts meaningful values unchanged, and defaults absent fields.
func TestTheAPIServerTakesWhatCanBeMeant(t *testing.T) {
	t.Parallel()
	s := place(t)
	for spec, want := range map[string]string{
		"  minReadySeconds: 5":                                     `"minReadySeconds":5`,    // 2599-01
		"  ordinals: {start: 7}":                                   `"ordinals":{"start":7}`, // 3335-01
		"  reserveOrdinals: [1, 4]":                                `"reserveOrdinals":[1,4]`,
		"  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}":   `"maxUnavailable":2`,             // 961-01
		"  updateStrategy: {rollingUpdate: {maxUnavailable: 50%}}": `"maxUnavailable":"50%"`,         // 961-01
		"  updateStrategy: {rollingUpdate: {partition: 0}}":        `"type":"RollingUpdate"`,         // 3541-03
		"  updateStrategy: {type: EnforcedRollingUpdate}":          `"type":"EnforcedRollingUpdate"`, // 3541-01
		"  updateStrategy: {type: EnforcedRollingUpdate, enforcedRollingUpdate: {maxUnavailable: 30%, partition: 1}}": `"enforcedRollingUpdate":{"maxUnavailable":"30%","onFailure":"Halt","partition":1}`, // 3541-02
	} {
		o := s.written(t, spec)
		o.SetName("taken")
		err := s.Create(t.Context(), o, client.DryRunAll)
		if raw, _ := json.Marshal(o.Object["spec"]); err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%s: %v, stored is %s, expected %s", strings.TrimSpace(spec), err, raw, want)
		}
	}
	plain := s.written(t, "")
	plain.SetName("plain")
	if err := s.Create(t.Context(), plain, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	spec, _ := plain.Object["spec"].(map[string]any)
	for field, want := range map[string]any{"ordinals": nil, "minReadySeconds": nil, "updateStrategy": map[string]any{"type": "RollingUpdate"}} { // 3335-01, 2599-01, 3541-03
		if got := spec[field]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s that is not said is %v, expected %v", field, got, want)
		}
	}
}

// The life of a slice, as users and other controllers of the cluster see it.
func TestASliceKeepsItsRange(t *testing.T) {
	t.Parallel()
	s := place(t)
	if err := s.Create(t.Context(), s.written(t, "  replicas: 2\n  ordinals: {start: 3}")); err != nil {
		t.Fatal(err)
	}
	s.until(t, "two pods", s.has("web-3", "web-4"))
	first := s.uids(t)

	budgetsKnowSlices(t)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	half := intstr.FromString("50%")
	budget.Spec = policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &half, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	if err := s.Create(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	s.until(t, "EC-1: a budget of half of it allows one", func(ctx context.Context) bool {
		return s.Get(ctx, client.ObjectKeyFromObject(budget), budget) == nil && budget.Status.ExpectedPods == 2 && budget.Status.DisruptionsAllowed == 1
	})

	if err := s.patch(t.Context(), `{"ordinals":{"start":2},"replicas":3}`); err != nil { // SR-7
		t.Fatal(err)
	}
	s.until(t, "one more below", s.has("web-2", "web-3", "web-4"))
	for pod, uid := range first {
		if now := s.uids(t)[pod]; now != uid {
			t.Errorf("SR-2: %s was made anew", pod)
		}
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // the controller writes the status, too
		var scale autoscalingv1.Scale
		if err := s.SubResource("scale").Get(t.Context(), s.slice(t), &scale); err != nil {
			return err
		}
		if scale.Status.Selector != "app=web" || scale.Spec.Replicas != 3 {
			t.Errorf("ST-9: /scale has %+v", scale)
		}
		scale.Spec.Replicas = 1
		return s.SubResource("scale").Update(t.Context(), s.slice(t), client.WithSubResourceBody(&scale))
	})
	if err != nil {
		t.Fatal(err)
	}
	s.until(t, "scaled to the lowest", s.has("web-2"))
	s.until(t, "the status says so", func(context.Context) bool {
		o := s.slice(t)
		return o.Status.ObservedGeneration == o.Generation && o.Status.Replicas == 1 && o.Status.AvailableReplicas == 1
	})
}

// A pod whose ordinal is left out goes when its substitute is there, and the others stay (ID-2). What moves or adopts
// a set refuses such a slice.
func TestASliceLeavesOutOrdinals(t *testing.T) {
	t.Parallel()
	s := place(t)
	if err := s.Create(t.Context(), s.written(t, "  replicas: 3\n  reserveOrdinals: [1]")); err != nil {
		t.Fatal(err)
	}
	s.until(t, "three pods", s.has("web-0", "web-2", "web-3"))
	first := s.uids(t)
	if err := s.patch(t.Context(), `{"reserveOrdinals":[1,2]}`); err != nil {
		t.Fatal(err)
	}
	s.until(t, "the next one instead", s.has("web-0", "web-3", "web-4"))
	for _, pod := range []string{"web-0", "web-3"} {
		if now := s.uids(t)[pod]; now != first[pod] {
			t.Errorf("%s was made anew", pod)
		}
	}
	s.until(t, "the status says so", func(context.Context) bool {
		o := s.slice(t)
		return o.Status.ObservedGeneration == o.Generation && o.Status.AvailableReplicas == 3 && *o.Status.Ordinals == (v1alpha1.Range{Start: 0, End: 5})
	})
	if out := (&hands{side: s, t: t}).run(1, "adopt", "stss/web", "--yes"); !strings.Contains(out, "leaves out ordinals (spec.reserveOrdinals)") {
		t.Error(out)
	}
}

func (s *side) uids(t *testing.T) map[string]string {
	t.Helper()
	var list corev1.PodList
	if err := s.List(t.Context(), &list, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, p := range list.Items {
		out[p.Name] = string(p.UID)
	}
	return out
}

// RV-13: the template is stored as it was written, and pods are created from what
// the API server would make of it.
func TestATemplateIsFilledInBeforeItIsHashed(t *testing.T) {
	t.Parallel()
	s := place(t)
	if err := s.Create(t.Context(), s.written(t, "  replicas: 1")); err != nil {
		t.Fatal(err)
	}
	s.until(t, "a pod", s.has("web-0"))
	s.until(t, "its revision", func(context.Context) bool { return s.slice(t).Status.UpdateRevision != "" })
	before, uid := s.slice(t).Status.UpdateRevision, s.uids(t)["web-0"]
	explicit := `{"template":{"spec":{"restartPolicy":"Always","dnsPolicy":"ClusterFirst","schedulerName":"default-scheduler","terminationGracePeriodSeconds":30,"securityContext":{}}}}`
	if err := s.patch(t.Context(), explicit); err != nil {
		t.Fatal(err)
	}
	s.until(t, "the change was looked at", func(context.Context) bool { o := s.slice(t); return o.Status.ObservedGeneration == o.Generation })
	if after := s.slice(t).Status.UpdateRevision; after != before || s.uids(t)["web-0"] != uid {
		t.Errorf("writing the defaults out made revision %s of %s", after, before)
	}
}

// The scenarios of KEP-3541 on nodes: a template whose pods never become ready,
// followed by one whose pods do.
func TestEnforcedRollingUpdateRecovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		strategy string
		recovers bool
	}{{"RollingUpdate", false}, {"EnforcedRollingUpdate", true}} {
		t.Run(c.strategy, func(t *testing.T) {
			t.Parallel()
			s := place(t)
			if err := s.Create(t.Context(), s.written(t, "  replicas: 3\n  updateStrategy: {type: "+c.strategy+"}")); err != nil {
				t.Fatal(err)
			}
			s.until(t, "three pods", s.has("web-0", "web-1", "web-2"))
			broken, _ := json.Marshal(map[string]string{cluster.NeverReady: "true"})
			if err := s.patch(t.Context(), `{"template":{"metadata":{"annotations":`+string(broken)+`}}}`); err != nil {
				t.Fatal(err)
			}
			s.until(t, "the canary is broken", s.has("web-0", "web-1", "web-2!"))
			s.until(t, "and running", func(ctx context.Context) bool {
				var p corev1.Pod
				return s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "web-2"}, &p) == nil && p.Status.Phase == corev1.PodRunning && p.Annotations[cluster.NeverReady] == "true"
			})
			before := s.uids(t)
			if err := s.patch(t.Context(), fmt.Sprintf(`{"template":{"metadata":{"annotations":{%q:null,"mended":"yes"}}}}`, cluster.NeverReady)); err != nil {
				t.Fatal(err)
			}
			s.until(t, "the mended template was looked at", func(context.Context) bool { o := s.slice(t); return o.Status.ObservedGeneration == o.Generation })
			if !c.recovers {
				if after := s.uids(t); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("3541-19: %v became %v", before, after)
				}
				return
			}
			s.until(t, "3541-20: all are new and ready", func(ctx context.Context) bool {
				o := s.slice(t)
				return o.Status.UpdatedReplicas == 3 && o.Status.CurrentRevision == o.Status.UpdateRevision && s.has("web-0", "web-1", "web-2")(ctx)
			})
		})
	}
}

// budgetsKnowSlices waits until kube-controller-manager has discovered the kind, which it does
// every half minute. It retries a budget that it could not resolve with a growing back-off, so
// each attempt has a new budget.
func budgetsKnowSlices(t *testing.T) {
	t.Helper()
	s := place(t, "probe")
	if err := s.Create(t.Context(), s.written(t, "  replicas: 1")); err != nil {
		t.Fatal(err)
	}
	s.until(t, "a pod", s.has("web-0"))
	end := time.Now().Add(patience)
	for n := 0; time.Now().Before(end); n++ {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("probe-%d", n)}}
		most := intstr.FromInt32(1)
		b.Spec = policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
		if err := s.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		s.until(t, "the budget was looked at", func(ctx context.Context) bool {
			return s.Get(ctx, client.ObjectKeyFromObject(b), b) == nil && len(b.Status.Conditions) > 0
		})
		if err := s.Delete(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if b.Status.ExpectedPods == 1 {
			return
		}
		select {
		case <-time.After(2 * time.Second):
		case <-t.Context().Done():
		}
	}
	t.Fatalf("the controller-manager does not know StatefulSetSlices after %s", patience)
}
