package preflight

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/clusters/clusterstest"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func TestABudgetThatAllowsNothingIsRefused(t *testing.T) {
	replicas, zero := int32(5), intstr.FromInt32(0)
	for name, spec := range map[string]policyv1.PodDisruptionBudgetSpec{
		"maxUnavailable 0": {MaxUnavailable: &zero},
		"neither minAvailable nor maxUnavailable, which allows nothing": {},
	} {
		in := build.Inputs{
			Set:          &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &replicas}},
			SourceBudget: &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: spec},
		}
		if d, err := allowance(in, 0); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "raise it first") {
			t.Errorf("%s: d is %d, %v", name, d, err)
		}
	}
}

// The user's budget is an upper bound for what a move may take down (S2).
func TestNoMoreMayBeDownThanTheBudgetAllows(t *testing.T) {
	replicas, two := int32(5), intstr.FromInt32(2)
	in := build.Inputs{
		Set:          &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &replicas}},
		SourceBudget: &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &two}},
	}
	for asked, want := range map[int32]int32{0: 2, 1: 1, 2: 2} {
		if d, err := allowance(in, asked); err != nil || d != want {
			t.Errorf("asked for %d: d is %d, %v, expected %d", asked, d, err, want)
		}
	}
	if d, err := allowance(in, 3); err == nil || !strings.Contains(err.Error(), "--max-unavailable 3 is more than PodDisruptionBudget web") {
		t.Errorf("asked for 3: d is %d, %v", d, err)
	}
}

// The budget of a set that another plan moves is that plan's. Nobody is told to raise it.
func TestABudgetThatAPlanHasTightenedIsNotToBeRaised(t *testing.T) {
	replicas, six := int32(5), intstr.FromInt32(6)
	in := build.Inputs{
		Set:          &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &replicas}},
		SourceBudget: &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &six}},
	}
	plans.Stamp{Plan: "db-xyz", Epoch: 1, Seq: 6}.Put(in.SourceBudget)
	for _, asked := range []int32{0, 2} {
		if d, err := allowance(in, asked); err == nil || !strings.Contains(err.Error(), "db-xyz") || strings.Contains(err.Error(), "raise") {
			t.Errorf("asked for %d: d is %d, %v", asked, d, err)
		}
	}
}

// pg is a set of two with its own labels, and its pods. The label role marks pg-0 as the leader.
func pg(namespace string) []client.Object {
	replicas := int32(2)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pg", UID: "set"}}
	set.Spec.Replicas, set.Status.UpdateRevision = &replicas, "pg-7d9"
	set.Spec.Template.Labels = map[string]string{"app": "spilo"}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: set.Spec.Template.Labels}
	out := []client.Object{set}
	for name, role := range map[string]string{"pg-0": "master", "pg-1": "replica"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "spilo", "role": role}}}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "pg", UID: "set", Controller: new(true)}}
		out = append(out, pod)
	}
	return out
}

func over(namespace, name string, labels map[string]string) *policyv1.PodDisruptionBudget {
	one := intstr.FromInt32(1)
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
	}}
}

func TestABudgetIsFoundByEveryLabelThatPodsHave(t *testing.T) {
	all := over("shop", "all", map[string]string{"app": "spilo"})
	follower := over("shop", "followers", nil)
	follower.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "role", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"master"}}}}
	for _, c := range []struct {
		name    string
		budgets []*policyv1.PodDisruptionBudget
		found   string
		refused string
	}{
		{"none", []*policyv1.PodDisruptionBudget{over("shop", "other", map[string]string{"app": "web"})}, "", ""},
		{"one that selects all pods", []*policyv1.PodDisruptionBudget{all}, "all", ""},
		{"two over all pods", []*policyv1.PodDisruptionBudget{all, over("shop", "twice", map[string]string{"app": "spilo"})}, "", "PodDisruptionBudgets all and twice of namespace shop on the source: both select pod pg-0"},
		{"one over a pod that got a label when it ran", []*policyv1.PodDisruptionBudget{over("shop", "master", map[string]string{"role": "master"})}, "", "PodDisruptionBudget shop/master on the source: it selects pod pg-0, and not pod pg-0 with the labels that the set gives it"},
		{"one that loses a pod by its label", []*policyv1.PodDisruptionBudget{follower}, "", "PodDisruptionBudget shop/followers on the source: it selects pod pg-0, and not pod pg-0"},
		{"one beside it over all pods", []*policyv1.PodDisruptionBudget{all, over("shop", "master", map[string]string{"role": "master"})}, "", "PodDisruptionBudgets all and master of namespace shop on the source: both select pod pg-0"},
		{"one over a pod by its name", []*policyv1.PodDisruptionBudget{over("shop", "first", map[string]string{appsv1.StatefulSetPodNameLabel: "pg-1"})}, "", "PodDisruptionBudget shop/first on the source: it selects pod pg-1"},
		{"one over a pod by its number", []*policyv1.PodDisruptionBudget{over("shop", "first", map[string]string{appsv1.PodIndexLabel: "0"})}, "", "PodDisruptionBudget shop/first on the source: it selects pod pg-0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			here := fake.NewClientBuilder().WithObjects(pg("shop")...)
			for _, b := range c.budgets {
				here.WithObjects(b)
			}
			on := clusters.Clusters{plans.Source: here.Build(), plans.Destination: fake.NewClientBuilder().Build()}
			in := build.Inputs{Source: plans.Ref{Namespace: "shop", Name: "pg"}, Destination: plans.Ref{Namespace: "mall", Name: "pg"}}
			w := survey{clusters.Pair{Plan: &plans.Plan{Source: in.Source, Destination: in.Destination}, On: on}}
			var err error
			if in.Set, err = w.Set(t.Context(), plans.Source); err != nil {
				t.Fatal(err)
			}
			err = w.budgets(t.Context(), &in, nil)
			found := ""
			if in.SourceBudget != nil {
				found = in.SourceBudget.Name
			}
			if found != c.found || (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("found %q, %v, expected %q, %q", found, err, c.found, c.refused)
			}
		})
	}
}

// Budgets are checked before every wave: one made after the plan does as much harm as an older one.
func TestBudgetsAreAskedForAgainBeforeEveryWave(t *testing.T) {
	p := planstest.Named(t, "abc")
	p.Source.Name, p.Destination.Name = "pg", "pg"
	p.Patches = []plans.Patch{{Patch: `{"spec": {"template": {"metadata": {"labels": {"tier": "gold"}}}}}`}}
	ours := over("shop", "web-stsmigrate", map[string]string{"app": "spilo"})
	plans.Stamp{Plan: p.ID, Epoch: 1, Seq: 5}.Put(ours)
	for _, c := range []struct {
		name    string
		budgets []client.Object
		want    []string
	}{
		{"ours only", []client.Object{ours}, nil},
		{"ours, whose record is lost", []client.Object{ours}, nil},
		{"one by a label that a pod got", []client.Object{ours, over("shop", "master", map[string]string{"role": "master"})}, []string{"PodDisruptionBudgets master and web-stsmigrate of namespace shop on the source: both select pod pg-0"}},
		{"one over what the patches make of the pods", []client.Object{ours, over("mall", "gold", map[string]string{"tier": "gold"})}, []string{"PodDisruptionBudget mall/gold on the destination: it exists, and the plan does not know it"}},
		{"one over the source's pods, on the destination", []client.Object{ours, over("mall", "copper", map[string]string{"tier": "copper"})}, nil},
		{"the name of ours on the other side", []client.Object{ours, over("mall", "web-stsmigrate", map[string]string{"app": "web"})}, []string{"PodDisruptionBudget mall/web-stsmigrate on the destination: it exists, and the plan does not know it"}},
		{"one for another workload too", []client.Object{ours, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stray", Labels: map[string]string{"app": "spilo"}}}}, []string{"PodDisruptionBudget shop/web-stsmigrate on the source: it also selects pod stray"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(pg("shop")...).WithObjects(c.budgets...).Build()
			recent, on := clusters.NewRecent(), clusters.Clusters{plans.Source: api, plans.Destination: api}
			recent.Keep(time.Now, clusterstest.Covering{}) //nolint:forbidigo // the time does not matter
			i := check.Inspect(p, recent.Clients(p, on))
			i.Taken, i.Midway = c.name != "ours, whose record is lost", true
			var err error
			if i.Now.Set, err = i.Set(t.Context(), plans.Source); err != nil {
				t.Fatal(err)
			}
			found, err := BudgetAlone(t.Context(), i)
			var got []string
			for _, f := range found {
				got = append(got, f.Object+": "+f.Saw)
			}
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}
