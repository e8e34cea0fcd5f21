package adoption

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
	"github.com/stsmigrate/stsmigrate/writes"
)

// fixture is a namespace with a set of two replicas. No controller runs; the test does their work.
type fixture struct {
	Adoption
	t *testing.T
}

func (l *fixture) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// newLedge returns a fixture with a StatefulSet at rest.
func newLedge(t *testing.T) *fixture {
	t.Helper()
	uids := 0
	number := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		uids++
		o.SetUID(types.UID(strings.Repeat("u", uids)))
		o.SetGeneration(1)
		return c.Create(ctx, o, opts...)
	}}
	l := &fixture{t: t, Adoption: Adoption{
		On:  fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithInterceptorFuncs(number).WithStatusSubresource(&appsv1.StatefulSet{}, &v1alpha1.StatefulSetSlice{}).Build(),
		Set: plans.Ref{Namespace: "shop", Name: "web"},
	}}
	labels := map[string]string{"app": "web"}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels}, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}},
	}
	l.must(l.On.Create(t.Context(), set))
	for _, name := range []string{"web-0", "web-1"} {
		l.must(l.On.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels},
			Spec:       corev1.PodSpec{NodeName: "node-1"},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		}))
	}
	l.tended(l.Set)
	return l
}

// tended does the work of the controller of a kind: it controls the pods and writes the status.
func (l *fixture) tended(kind plans.Ref) {
	l.t.Helper()
	set := l.live(kind)
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2, CurrentRevision: "web-1", UpdateRevision: "web-1"}
	l.must(l.status(kind, set))
	pods, err := l.pods(l.t.Context())
	l.must(err)
	for k := range pods {
		pods[k].OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind(kind.SetKind()))}
		l.must(l.On.Update(l.t.Context(), &pods[k]))
	}
}

func (l *fixture) status(kind plans.Ref, set *appsv1.StatefulSet) error {
	if !kind.IsSlice() {
		return l.On.Status().Update(l.t.Context(), set)
	}
	return l.On.Status().Update(l.t.Context(), v1alpha1.FromNative(set))
}

func (l *fixture) live(kind plans.Ref) *appsv1.StatefulSet {
	l.t.Helper()
	set, err := l.read(l.t.Context(), kind)
	l.must(err)
	return set
}

// edit changes a set, as a user or an autoscaler does.
func (l *fixture) edit(kind plans.Ref, change func(*appsv1.StatefulSet)) {
	l.t.Helper()
	set := l.live(kind)
	change(set)
	set.Generation++
	l.must(l.as(kind).Update(l.t.Context(), set))
}

// step makes the next write, if there is one, and returns the reason: what was written, or what is waited
// for.
func (l *fixture) step() string {
	l.t.Helper()
	s, err := l.Look(l.t.Context())
	l.must(err)
	if s.Standing == plans.Before {
		l.must(s.Write(l.t.Context()))
	}
	return s.Reason
}

// expect makes steps and checks the prefix of each reason.
func (l *fixture) expect(words ...string) {
	l.t.Helper()
	for _, want := range words {
		if got := l.step(); !strings.HasPrefix(got, want) || want == "" && got != "" {
			l.t.Fatalf("%q, expected %q", got, want)
		}
	}
}

func TestAnAdoption(t *testing.T) {
	t.Parallel()
	l := newLedge(t)
	l.expect("store the set in ConfigMap", "delete StatefulSet shop/web without its pods", "make StatefulSetSlice shop/web", "StatefulSetSlice shop/web: its controller has not looked")
	l.tended(l.becomes())
	l.expect("restore its former update strategy", "delete ConfigMap", "")
	if s := l.live(l.becomes()); s.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType || len(s.Annotations) != 0 {
		t.Errorf("%+v", s)
	}
}

// The stored copy no longer equals the live set: the new set would undo the change, and delete pods that it
// does not have.
func TestASetThatChangesBeforeItIsLetGoIsKeptAnew(t *testing.T) {
	t.Parallel()
	l := newLedge(t)
	l.expect("store the set in ConfigMap")
	l.edit(l.Set, func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(3)) })
	l.expect("delete ConfigMap stsmigrate-adopt-web, because StatefulSet shop/web has changed since", "StatefulSet shop/web is not at rest")
}

// The set is scaled after it was read: its deletion is refused.
func TestASetThatChangesAsItIsLetGoStays(t *testing.T) {
	t.Parallel()
	l := newLedge(t)
	l.expect("store the set in ConfigMap")
	s, err := l.Look(t.Context())
	l.must(err)
	l.edit(l.Set, func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(3)) })
	if err := s.Write(t.Context()); err == nil {
		t.Error("it was deleted")
	}
	if l.live(l.Set) == nil {
		t.Error("it is gone")
	}
}

func TestAnAdoptionIsTurnedBack(t *testing.T) {
	t.Parallel()
	l := newLedge(t)
	l.expect("store the set in ConfigMap", "delete StatefulSet", "make StatefulSetSlice")
	l.Set = l.becomes()
	l.expect("delete StatefulSetSlice shop/web without its pods", "make StatefulSet shop/web")
	l.tended(l.becomes())
	l.expect("restore its former update strategy", "delete ConfigMap", "")
}

// The created set was scaled before the adoption is undone: the stored copy has other replicas.
func TestAnAdoptionIsNotTurnedBackOverAChange(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*appsv1.StatefulSet){
		"scaled":     func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(3)) },
		"taken over": func(s *appsv1.StatefulSet) { s.Annotations = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedge(t)
			l.expect("store the set in ConfigMap", "delete StatefulSet", "make StatefulSetSlice")
			l.edit(l.becomes(), change)
			l.Set = l.becomes()
			l.expect("StatefulSetSlice shop/web is not, or no longer, the unchanged set that an adoption of StatefulSet web created (ConfigMap shop/stsmigrate-adopt-web)")
		})
	}
}

// A process that resumes in a namespace which others have changed deletes nothing.
func TestAnAdoptionStopsAtStrangers(t *testing.T) {
	t.Parallel()
	l := newLedge(t)
	l.expect("store the set in ConfigMap")
	l.must(l.On.Delete(t.Context(), l.live(l.Set)))
	l.must(l.On.Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}))
	l.expect("StatefulSet shop/web was recreated by another writer; the former set is stored in ConfigMap shop/stsmigrate-adopt-web")
}

// The adoption does not wait for pods that are scaled down while the set is adopted.
func TestAnAdoptionGoesOnWhenTheSetIsScaledIn(t *testing.T) {
	t.Parallel()
	l := newLedge(t)
	l.expect("store the set in ConfigMap", "delete StatefulSet", "make StatefulSetSlice")
	l.edit(l.becomes(), func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(1)) })
	l.must(l.On.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}))
	l.tended(l.becomes())
	l.expect("restore its former update strategy")
}

// Fields of a newer Kubernetes would be lost: this release does not know them and cannot copy them to the
// other kind.
func TestASetWithFieldsThatAreNotKnownIsNotLetGo(t *testing.T) {
	t.Parallel()
	l := newLedge(t)
	l.On = planstest.WithFutures(l.On)
	l.expect("StatefulSet shop/web has fields that this release does not know (spec.futureSet, spec.template.spec.futurePod)")
}

func TestASetWithUnknownFieldsIsNotAdopted(t *testing.T) {
	t.Parallel()
	l := newLedge(t)
	set := l.live(l.Set)
	next := set.DeepCopy()
	next.Namespace, next.UID, next.ResourceVersion = "mall", "", ""
	err := writes.Copy(t.Context(), planstest.WithFutures(l.On), set, clusters.InWordsOf(l.On, l.becomes()), next)
	if err == nil || !strings.Contains(err.Error(), "has fields that this release does not know") {
		t.Errorf("%v, expected a refusal", err)
	}
	for _, kind := range []plans.Ref{l.Set, l.becomes()} {
		kind.Namespace = "mall"
		if made, err := l.read(t.Context(), kind); made != nil || err != nil {
			t.Errorf("%s: %v (%v), expected none", kind.Set(), made, err)
		}
	}
	made := set.DeepCopy()
	made.Namespace, made.UID, made.ResourceVersion = "mall", "", ""
	if err := writes.Copy(t.Context(), l.On, set, clusters.InWordsOf(l.On, l.becomes()), made); err != nil {
		t.Fatal(err)
	}
	slice := l.becomes()
	slice.Namespace = "mall"
	had, err := l.read(t.Context(), slice)
	l.must(err)
	back := had.DeepCopy()
	back.Name, back.UID, back.ResourceVersion = "back", "", ""
	if err := writes.Copy(t.Context(), clusters.InWordsOf(l.On, slice), had, l.On, back); err != nil || back.UID == "" {
		t.Errorf("a StatefulSet from a slice: %v, UID %q", err, back.UID)
	}
}

// The deletion of the former set leaves its pods, its claims and its revisions (S6).
func TestASetIsDeletedWithoutItsPods(t *testing.T) {
	t.Parallel()
	l := newLedge(t)
	l.expect("store the set in ConfigMap")
	var policy metav1.DeletionPropagation
	on, ok := l.On.(client.WithWatch)
	if !ok {
		t.Fatal("the fake client cannot watch")
	}
	l.On = interceptor.NewClient(on, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		var d client.DeleteOptions
		d.ApplyOptions(opts)
		if d.PropagationPolicy != nil {
			policy = *d.PropagationPolicy
		}
		return c.Delete(ctx, o, opts...)
	}})
	l.expect("delete StatefulSet shop/web without its pods")
	if policy != metav1.DeletePropagationOrphan {
		t.Errorf("deleted with the policy %q", policy)
	}
}

// A set that carries the mark of a plan is left to that plan.
func TestASetThatAPlanMovesIsNotAdopted(t *testing.T) {
	t.Parallel()
	l := newLedge(t)
	l.edit(l.Set, func(s *appsv1.StatefulSet) { plans.Stamp{Plan: "web-abc", Epoch: 1, Seq: 1}.Put(s) })
	l.tended(l.Set)
	l.expect("StatefulSet shop/web is being moved by plan web-abc: finish that first")
}

// A new set with another revision keeps the strategy that replaces no pods.
func TestASetWithAnotherRevisionReplacesNoPods(t *testing.T) {
	t.Parallel()
	l := newLedge(t)
	l.expect("store the set in ConfigMap", "delete StatefulSet", "make StatefulSetSlice")
	l.tended(l.becomes())
	set := l.live(l.becomes())
	set.Status.UpdateRevision = "web-2"
	l.must(l.status(l.becomes(), set))
	l.expect("StatefulSetSlice shop/web has another revision (web-2) for its template than its pods have (web-1)")
	if s := l.live(l.becomes()); s.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		t.Errorf("its strategy is %s", s.Spec.UpdateStrategy.Type)
	}
}
