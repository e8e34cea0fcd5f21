package adoption

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
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

// probed begins an adoption, up to the point where the controller of the new kind has looked at the probe.
func (l *fixture) probed() {
	l.t.Helper()
	at := l.probing()
	l.expect("store the set in ConfigMap", "make "+at.Set()+" without replicas")
	l.looked(at)
}

// looked does what a controller does with a set without replicas.
func (l *fixture) looked(at plans.Ref) {
	l.t.Helper()
	set := l.live(at)
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, CurrentRevision: "probe-1", UpdateRevision: "probe-1"}
	l.must(l.status(at, set))
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
	l.probed()
	l.expect("delete StatefulSet shop/web without its pods", "make StatefulSetSlice shop/web", "StatefulSetSlice shop/web: its controller has not looked")
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
	l.probed()
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
	l.probed()
	l.expect("delete StatefulSet", "make StatefulSetSlice")
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
			l.probed()
			l.expect("delete StatefulSet", "make StatefulSetSlice")
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
	l.probed()
	l.expect("delete StatefulSet", "make StatefulSetSlice")
	l.edit(l.becomes(), func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(1)) })
	l.must(l.On.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}))
	l.tended(l.becomes())
	l.expect("restore its former update strategy")
}

// A person may have mistyped the range while the set is adopted: only the pods that it had are looked at.
func TestAnAdoptionLooksAtThePodsThatThereWere(t *testing.T) {
	t.Parallel()
	l := newLedge(t)
	l.probed()
	l.expect("delete StatefulSet", "make StatefulSetSlice")
	l.edit(l.becomes(), func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(2000000000)) })
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
	l.probed()
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
	l.probed()
	l.expect("delete StatefulSet", "make StatefulSetSlice")
	l.tended(l.becomes())
	set := l.live(l.becomes())
	set.Status.UpdateRevision = "web-2"
	l.must(l.status(l.becomes(), set))
	l.expect("StatefulSetSlice shop/web has another revision (web-2) for its template than its pods have (web-1)")
	if s := l.live(l.becomes()); s.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		t.Errorf("its strategy is %s", s.Spec.UpdateStrategy.Type)
	}
}

// The former set is deleted only when a controller of the new kind has been seen at work, and the probe goes with
// the record.
func TestASetIsNotLetGoWithoutAControllerOfTheOtherKind(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"", plans.SliceKind} {
		l := newLedge(t)
		if l.Set.Kind = kind; kind != "" {
			l.asSlice()
		}
		at := l.probing()
		l.expect("store the set in ConfigMap", "make "+at.Set()+" without replicas")
		for range 2 {
			l.expect(at.Set() + ": its controller has not looked at it yet; is the controller of its kind running? Nothing has been changed so far, and to give up, delete ConfigMap stsmigrate-adopt-web")
		}
		if l.live(l.Set) == nil {
			t.Fatal("it is gone")
		}
		var record corev1.ConfigMap
		l.must(l.On.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "stsmigrate-adopt-web"}, &record))
		if probe := l.live(at); !metav1.IsControlledBy(probe, &record) || *probe.Spec.Replicas != 0 || len(at.Name) > 52 {
			t.Errorf("%+v", probe)
		}
		l.looked(at)
		l.expect("delete " + l.Set.Set() + " without its pods")
	}
}

// The probe is accepted wherever the set would be: it has the set's template, and the claims that its containers mount.
// Its selector selects neither pods nor revisions of the set.
func TestAProbeIsASetLikeTheOther(t *testing.T) {
	t.Parallel()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	at := Adoption{Set: plans.Ref{Namespace: "shop", Name: "web"}}.probing()
	probe := newProbe(at, set, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "record", UID: "record"}})
	if len(probe.Spec.VolumeClaimTemplates) != 1 || probe.Spec.Template.Spec.Containers[0].VolumeMounts[0].Name != "data" || *probe.Spec.Replicas != 0 {
		t.Errorf("%+v", probe.Spec)
	}
	selector, err := metav1.LabelSelectorAsSelector(probe.Spec.Selector)
	if err != nil || selector.Matches(labels.Set(set.Spec.Template.Labels)) || !selector.Matches(labels.Set(probe.Spec.Template.Labels)) {
		t.Errorf("%s (%v), labels %v", selector, err, probe.Spec.Template.Labels)
	}
}

// asSlice replaces the StatefulSet of a fixture by an equal slice.
func (l *fixture) asSlice() {
	l.t.Helper()
	old := l.live(plans.Ref{Namespace: "shop", Name: "web"})
	l.must(l.On.Delete(l.t.Context(), old))
	old.ResourceVersion = ""
	l.must(l.as(l.Set).Create(l.t.Context(), old))
	l.tended(l.Set)
}

// A probe that another adoption has left says nothing about this one.
func TestAProbeOfAnotherAdoptionIsNotBelieved(t *testing.T) {
	t.Parallel()
	l := newLedge(t)
	l.probed()
	var record corev1.ConfigMap
	l.must(l.On.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "stsmigrate-adopt-web"}, &record))
	l.must(l.On.Delete(t.Context(), &record))
	at := l.probing()
	l.expect("store the set in ConfigMap", at.Set()+" is of another adoption, and must be deleted first")
	l.must(l.as(at).Delete(t.Context(), l.live(at)))
	l.expect("make " + at.Set() + " without replicas")
}

// Whatever would keep the new set from being created, from being deleted, or from being alone is found BEFORE
// anything is written, and again before the former set is deleted.
func TestASetThatCannotBeOfTheOtherKindIsNotLetGo(t *testing.T) {
	t.Parallel()
	yes := true
	edit := func(change func(*appsv1.StatefulSet)) func(*fixture) {
		return func(l *fixture) { l.edit(l.Set, change); l.tended(l.Set) }
	}
	scaler := func(o *unstructured.Unstructured) func(*fixture) {
		return func(l *fixture) { l.must(l.On.Create(l.t.Context(), o)) }
	}
	refused := func(err error) func(*fixture) {
		return func(l *fixture) {
			on, _ := l.On.(client.WithWatch)
			l.On = interceptor.NewClient(on, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				var options client.CreateOptions
				if options.ApplyOptions(opts); len(options.DryRun) > 0 {
					return err
				}
				return c.Create(ctx, o, opts...)
			}})
		}
	}
	for name, c := range map[string]struct {
		happens func(*fixture)
		want    string
	}{
		"an operator's": {edit(func(s *appsv1.StatefulSet) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "db.example.com/v1", Kind: "Database", Name: "main", UID: "db", Controller: &yes}}
		}), "is controlled by Database main, which would create it again"},
		"a finalizer of others": {edit(func(s *appsv1.StatefulSet) { s.Finalizers = []string{"backup/first"} }), "has the finalizer backup/first"},
		"Argo CD": {edit(func(s *appsv1.StatefulSet) {
			s.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/StatefulSet:shop/web"}
		}), "is applied by Argo CD (argocd.argoproj.io/tracking-id)"},
		"Flux":   {edit(func(s *appsv1.StatefulSet) { s.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "shop"} }), "is applied by Flux (kustomize.toolkit.fluxcd.io/name)"},
		"an HPA": {scaler(object("autoscaling/v2", "HorizontalPodAutoscaler", "scaleTargetRef")), "is scaled by HorizontalPodAutoscaler web-scaler"},
		"KEDA":   {scaler(object("keda.sh/v1alpha1", "ScaledObject", "scaleTargetRef")), "is scaled by ScaledObject web-scaler"},
		"it is paused": {func(l *fixture) {
			l.edit(l.Set, func(s *appsv1.StatefulSet) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, sets.PausedFrom, "none")
				s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))}
			})
			l.tended(l.Set)
		}, "is paused, and keeps in an annotation what it gets back: resume its update first (rollout resume)"},
		"a VPA":                   {scaler(object("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "targetRef")), "is scaled by VerticalPodAutoscaler web-scaler"},
		"a policy":                {refused(apierrors.NewForbidden(v1alpha1.GroupVersion().WithResource("statefulsetslices").GroupResource(), "web", errors.New("no"))), "cannot become a StatefulSetSlice (tried as a dry run): "},
		"a name that is too long": {refused(apierrors.NewInvalid(v1alpha1.Kind().GroupKind(), "web", nil)), "cannot become a StatefulSetSlice (tried as a dry run): "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedge(t)
			c.happens(l)
			l.expect("StatefulSet shop/web " + c.want)
			var records corev1.ConfigMapList
			if l.must(l.On.List(t.Context(), &records)); len(records.Items) > 0 {
				t.Errorf("%d ConfigMaps were written", len(records.Items))
			}
		})
	}
	t.Run("what happens after the record", func(t *testing.T) {
		t.Parallel()
		l := newLedge(t)
		l.probed()
		scaler(object("autoscaling/v2", "HorizontalPodAutoscaler", "scaleTargetRef"))(l)
		l.expect("StatefulSet shop/web is scaled by HorizontalPodAutoscaler web-scaler")
		if l.live(l.Set) == nil {
			t.Error("it is gone")
		}
	})
	t.Run("an autoscaler of another set", func(t *testing.T) {
		t.Parallel()
		l := newLedge(t)
		o := object("autoscaling/v2", "HorizontalPodAutoscaler", "scaleTargetRef")
		l.must(unstructured.SetNestedField(o.Object, "Deployment", "spec", "scaleTargetRef", "kind"))
		l.must(l.On.Create(t.Context(), o))
		l.expect("store the set in ConfigMap")
	})
}

// object returns an autoscaler of the set web.
func object(version, kind, target string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": "web-scaler"},
		"spec": map[string]any{target: map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}},
	}}
}

// Before Kubernetes 1.37 the current revision of a StatefulSet with OnDelete never changes: its pods are of the new
// one, and it can be adopted.
func TestASetWithOnDeleteIsAdoptedByItsPods(t *testing.T) {
	t.Parallel()
	l := newLedge(t)
	l.edit(l.Set, func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType })
	l.tended(l.Set)
	set := l.live(l.Set)
	set.Status.CurrentRevision = "web-0"
	l.must(l.status(l.Set, set))
	l.probed()
	set = l.live(l.Set)
	set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	if restless(set) == "" {
		t.Error("a set in the middle of an update is adopted")
	}
}

// A ConfigMap of that name may be anything.
func TestARecordOfAnotherProgramIsSaidToBeOne(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"{}": "(no set is in it)", "": "(unexpected end of JSON input)", "[]": "(json: cannot unmarshal"} {
		l := newLedge(t)
		l.must(l.On.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: l.record()}, Data: map[string]string{"set": text}}))
		if _, err := l.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "ConfigMap shop/stsmigrate-adopt-web was not written by this program "+want) {
			t.Errorf("with %q in it: %v", text, err)
		}
	}
}
