package move_test

import (
	"strings"
	"syscall"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// 3335-34: with claim templates. TestSharesAVolumeThatThePodTemplateNames has the volumes of the pod
// template.
func TestMovesEveryKindOfSet(t *testing.T) {
	half := intstr.FromString("50%")
	for name, c := range map[string]struct {
		options
		flags []string // for plan
		d     int
		words []string // in the output of apply
	}{
		"without claim templates": {options: options{replicas: 3, set: func(s *appsv1.StatefulSet) {
			s.Spec.VolumeClaimTemplates, s.Spec.Template.Spec.Containers[0].VolumeMounts = nil, nil
		}}, d: 1},
		"that starts at ordinal 3": {options: options{start: 3, replicas: 3}, d: 1, words: []string{"[3..5] -> [3..4]"}},
		"with parallel pod management": {options: options{replicas: 3, set: func(s *appsv1.StatefulSet) {
			s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		}}, d: 1},
		"with minReadySeconds": {options: options{replicas: 2, set: func(s *appsv1.StatefulSet) {
			s.Spec.MinReadySeconds = 2
		}}, d: 1, words: []string{"minReadySeconds 2"}},
		"without a budget":          {options: options{replicas: 3, noBudget: true}, d: 1, words: []string{"create PodDisruptionBudget web-stsmigrate"}},
		"with less than its budget": {options: options{replicas: 3, budget: &half}, d: 1, flags: []string{"--max-unavailable", "1"}},
		"with two at once":          {options: options{replicas: 3, budget: &half}, d: 2, flags: []string{"--max-unavailable", "2"}},
		"to an empty set that is there": {options: options{replicas: 3, empty: func(s *appsv1.StatefulSet) {
			s.Spec.RevisionHistoryLimit = new(int32)
		}}, d: 1},
		"with volumes that have to be detached": {options: options{replicas: 3, set: func(s *appsv1.StatefulSet) {
			for i := range s.Spec.VolumeClaimTemplates {
				class := cluster.AttachedClass
				s.Spec.VolumeClaimTemplates[i].Spec.StorageClassName = &class
			}
		}}, d: 1, words: []string{"is still attached to node", "free: pod and volumes have left the source"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBothModes(t, c.options, func(s *migration) {
				t := s.t
				before := s.state(s.source)
				var there state
				if c.empty != nil {
					there = s.state(s.destination)
				}
				w := s.watched()
				s.planned(c.flags...)
				run(t, s.applyArgs()...).expect(t, done, append(c.words, "moved: ")...)
				s.arrived(before)
				run(t, s.args("finalize")...).expect(t, done)
				proper(t, w, c.d)
				if c.empty != nil {
					// The existing set keeps its own fields.
					before.Set.RevisionHistoryLimit = new(int32)
					before.Set.PersistentVolumeClaimRetentionPolicy = there.Set.PersistentVolumeClaimRetentionPolicy
				}
				s.settled(before)
				if c.noBudget {
					s.budgetless()
				}
			})
		})
	}
}

// budgetless checks that no budget is left where there was none.
func (s *migration) budgetless() {
	s.t.Helper()
	for _, on := range []*end{s.source, s.destination} {
		var left policyv1.PodDisruptionBudgetList
		s.list(on, &left)
		if len(left.Items) != 0 {
			s.t.Errorf("PodDisruptionBudget %s is left in %s", left.Items[0].Name, on.namespace)
		}
	}
}

func TestGoesBackWhenAPodDoesNotBecomeReady(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		before, there := s.state(s.source), s.names("destination")
		s.cursed("web-1")
		w := s.watched()
		s.planned()
		for _, command := range [][]string{s.applyArgs("--step-timeout", "3s"), s.args("resume", "--step-timeout", "1s")} {
			p := start(t, command...)
			p.until("web-1 Grow", "overdue: pod web-1 of", "not Ready", "abort")
			s.shows(done, "Moving", "web-1 Grow", "overdue: pod web-1 of", "unavailable=1")
			p.insists(syscall.SIGINT)
			p.end().expect(t, inFlight, "stopping as soon as web-1 has arrived", "it waits: ", "stopped in flight: web-1 is down on both sides since ", "stsmigrate resume web", "stsmigrate abort web")
			s.shows(inFlight, "StoppedInFlight", "web-1 is down on both sides since ", "no node of either side can be drained", "stsmigrate resume web")
			run(t, s.args("wait", "--timeout=1m")...).expect(t, inFlight, "StoppedInFlight", "web-1 is down on both sides", "stsmigrate resume web")
		}
		run(t, s.args("finalize")...).expect(t, failed, "not complete")
		run(t, s.args("abort")...).expect(t, done, "aborted")
		proper(t, w, 1)
		s.asBefore(before, there)
	})
}

// cursed prevents every pod of that name from becoming ready on the destination.
func (s *migration) cursed(pod string) {
	s.t.Helper()
	s.made("Object{metadata: Object.metadata{annotations: {'"+cluster.NeverReady+"': 'true'}}}", pod)
}

// made gives every pod of these names that is made on the destination the fields of an object.
func (s *migration) made(fields string, pods ...string) {
	s.t.Helper()
	name := s.destination.namespace + "-cursed"
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			},
		}}},
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name:       "these-pods",
			Expression: "object.metadata.namespace == '" + s.destination.namespace + "' && object.metadata.name in ['" + strings.Join(pods, "', '") + "']",
		}},
		Mutations: []admissionregistrationv1.Mutation{{
			PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
			ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: fields},
		}},
		ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
	}}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: policy.ObjectMeta, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	s.create(s.destination, policy)
	s.create(s.destination, binding)
}
