package move_test

import (
	"context"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// asking gives the containers of the set these requests.
func asking(cpu string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

// A quota for exactly what the ordinals ask for is enough for them and their placeholders, however little that is: by the time
// that the last place is taken, all others have come.
func TestAQuotaThatIsExactlyFullIsEnoughForThePlaces(t *testing.T) {
	inBothModes(t, options{replicas: 2, set: asking("5m")}, func(s *migration) {
		t := s.t
		before := s.state(s.source)
		mend := quota("requests.cpu", "10m")(s)
		w := s.watched()
		run(t, s.planArgs("--placeholder", "warm", "--placeholder-image", "p:1")...).expect(t, done)
		run(t, s.applyArgs()...).expect(t, done, "make placeholder web-1-place", "make placeholder web-0-place", "moved: 2 ordinals")
		s.arrived(before)
		proper(t, w, 1)
		mend()
	})
}

// A quota that is made in the middle has room for those that have come. The last one stays up, its placeholder takes nothing from
// the others, and the plan goes on when the quota is larger.
func TestAQuotaThatIsTooSmallForTheLastKeepsItUp(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		before := s.state(s.source)
		w := s.watched()
		run(t, s.planArgs("--placeholder", "schedule")...).expect(t, done)
		run(t, s.applyArgs("--pause-after", "1")...).expect(t, done, "make placeholder web-2-place")
		mend := quota("pods", "2")(s)
		run(t, s.args("resume")...).expect(t, held, "make placeholder web-1-place", "exceeded quota")
		s.up(s.destination, "web-2", "web-1")
		s.up(s.source, "web-0")
		if err := s.destination.Delete(t.Context(), &corev1.Pod{ObjectMeta: s.destination.named("web-2")}); err != nil {
			t.Fatal(err)
		}
		s.up(s.destination, "web-2", "web-1")
		mend()
		run(t, s.args("resume")...).expect(t, done, "moved: 3 ordinals")
		s.arrived(before)
		if left := s.placeholders(); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
		proper(t, w, 2) // of which one was deleted
	})
}

// up waits until pods of a side are Ready.
func (s *migration) up(on *end, pods ...string) {
	s.t.Helper()
	for _, name := range pods {
		s.eventually(name+" is Ready", func(ctx context.Context) bool {
			var pod corev1.Pod
			return on.Get(ctx, on.key(name), &pod) == nil && pod.DeletionTimestamp == nil && clusters.IsReady(&pod)
		})
	}
}

// What changes a placeholder on its way in changes the pod of the ordinal too, or is noticed while the ordinal is up.
func TestAPlaceholderThatIsChangedOnItsWayIn(t *testing.T) {
	const place = "web-1-place"
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		before, there := s.state(s.source), s.names("destination")
		for _, c := range []struct{ name, change, says string }{
			{"its label", "[JSONPatch{op: 'remove', path: '/metadata/labels/stsmigrate.dev~1placeholder'}]", "has lost its label " + plans.PlaceholderLabel},
			{"a claim", "[JSONPatch{op: 'add', path: '/spec/volumes/-', value: Object.spec.volumes{name: 'more', persistentVolumeClaim: Object.spec.volumes.persistentVolumeClaim{claimName: 'more'}}}]", "mounts claim more, which it was given when it was made"},
			{"the labels of the set", "[JSONPatch{op: 'add', path: '/metadata/labels/app', value: 'web'}]", "was given labels by which the pods of the set are selected"},
			{"its nodes", "[JSONPatch{op: 'add', path: '/spec/nodeSelector', value: {'disk': 'none'}}]", "didn't match Pod's node affinity/selector"},
		} {
			t.Run(c.name, func(t *testing.T) {
				s.t = t
				mend := s.mutated(c.change, place, "trial")
				run(t, s.planArgs("--placeholder", "schedule")...).expect(t, done)
				r := run(t, s.applyArgs("--step-timeout", "3s")...)
				if (r.code != held && r.code != blocked) || !strings.Contains(r.stdout+r.stderr, c.says) {
					t.Errorf("it ends with %d: %s%s", r.code, r.stdout, r.stderr)
				}
				s.ready(s.source)
				mend()
				_ = s.destination.Delete(t.Context(), &corev1.Pod{ObjectMeta: s.destination.named(place)}) // the plan may have deleted it
				s.eventually("it is gone", func(context.Context) bool { return s.gone(s.destination, &corev1.Pod{}, place) })
				run(t, s.args("abort")...).expect(t, done, "aborted")
			})
		}
		s.t = t
		s.asBefore(before, there)
	})
}

// mutated changes the pods of these names, of which one is trial, when they are made on the destination.
func (s *migration) mutated(patch string, pods ...string) func() {
	s.t.Helper()
	name := s.destination.namespace + "-mutated"
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
		MatchConstraints: onCreated("pods"),
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name:       "these-pods",
			Expression: "object.metadata.namespace == '" + s.destination.namespace + "' && object.metadata.name in ['" + strings.Join(pods, "', '") + "']",
		}},
		Mutations:          []admissionregistrationv1.Mutation{{PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: patch}}},
		ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
	}}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: policy.ObjectMeta, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}}
	s.create(s.destination, policy)
	mend := s.put(s.destination, binding)
	tried := trial(s.destination)
	tried.Labels = map[string]string{plans.PlaceholderLabel: "web"}
	tried.Spec.Volumes = []corev1.Volume{{Name: "empty", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	as := tried.DeepCopy()
	s.eventually("the policy is in force", func(ctx context.Context) bool {
		now := tried.DeepCopy()
		return s.destination.Create(ctx, now, client.DryRunAll) == nil && changed(as, now)
	})
	return func() {
		mend()
		_ = s.destination.Delete(s.t.Context(), policy)
		s.eventually("the policy is gone", func(ctx context.Context) bool {
			now := tried.DeepCopy()
			return s.destination.Create(ctx, now, client.DryRunAll) == nil && !changed(as, now)
		})
	}
}

// changed reports whether a policy has changed a pod.
func changed(was, now *corev1.Pod) bool {
	return len(now.Labels) != len(was.Labels) || len(now.Spec.NodeSelector) > 0 || len(now.Spec.Volumes) > len(was.Spec.Volumes)+1
}

// A policy that refuses placeholders from the middle of a move on is heard, and holds the plan with everything up. It goes on
// when the policy is gone.
func TestAPlaceholderThatIsRefusedHoldsThePlan(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		before := s.state(s.source)
		w := s.watched()
		name := s.destination.namespace + "-no-places"
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: onCreated("pods"),
			FailurePolicy:    ptr.To(admissionregistrationv1.Fail),
			Validations:      []admissionregistrationv1.Validation{{Expression: "object.metadata.namespace != '" + s.destination.namespace + "' || !object.metadata.name.endsWith('-place')", Message: "no pods like these", Reason: ptr.To(metav1.StatusReasonForbidden)}},
		}}
		run(t, s.planArgs("--placeholder", "schedule")...).expect(t, done)
		run(t, s.applyArgs("--pause-after", "1")...).expect(t, done, "make placeholder web-1-place", "paused before web-0 Tighten")
		s.create(s.destination, policy)
		mend := s.put(s.destination, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}}})
		refused := trial(s.destination)
		refused.Name = "trial-place"
		s.eventually("the policy is in force", func(ctx context.Context) bool { return s.refused(ctx, refused.DeepCopy()) })
		run(t, s.args("resume")...).expect(t, held, "no pods like these")
		s.up(s.destination, "web-1")
		s.up(s.source, "web-0")
		mend()
		s.eventually("the policy is gone", func(ctx context.Context) bool { return !s.refused(ctx, refused.DeepCopy()) })
		run(t, s.args("resume")...).expect(t, done, "moved: 2 ordinals")
		s.arrived(before)
		proper(t, w, 1)
	})
}

// A LimitRange that asks for more than the program of a placeholder takes gets one without it.
func TestALimitRangeIsMetWithoutTheProgram(t *testing.T) {
	inBothModes(t, options{replicas: 1, set: asking("100m")}, func(s *migration) {
		t := s.t
		before := s.state(s.source)
		mend := s.put(s.destination, &corev1.LimitRange{ObjectMeta: s.destination.named("limit"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Min: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}, DefaultRequest: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
		}}}})
		run(t, s.planArgs("--placeholder", "warm", "--placeholder-image", "p:1")...).expect(t, done)
		small := trial(s.destination)
		small.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
		s.eventually("the limit is in force", func(ctx context.Context) bool { return s.refused(ctx, small.DeepCopy()) })
		run(t, s.applyArgs()...).expect(t, done, "make placeholder web-0-place", "moved: 1 ordinal")
		s.arrived(before)
		mend()
	})
}

// onCreated matches what is created of one resource of the core group.
func onCreated(resources string) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resources}},
	}}}}
}
