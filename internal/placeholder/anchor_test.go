package placeholder

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresource "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// onN returns a placeholder on a node.
func onN(priority int32) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", PriorityClassName: "of-it", Priority: &priority}}
}

// An anchor asks for nothing, is no member, and draws the pod of its ordinal alone.
func TestAnAnchorAsksForNothing(t *testing.T) {
	for image, want := range map[string]string{"": "web:1 /.stsmigrate/placeholder", "stsmigrate:1": "stsmigrate:1 /placeholder"} {
		p := web3(t, everything)
		p.Program.Image = image
		pod, err := Anchor(p, "web-3-anchor", onN(0))
		if err != nil {
			t.Fatal(err)
		}
		for name, q := range podresource.PodRequests(pod, podresource.PodResourcesOptions{}) {
			if !q.IsZero() {
				t.Errorf("it asks for %s of %s", &q, name)
			}
		}
		c, s := pod.Spec.Containers[0], pod.Spec
		_, said := c.Resources.Requests[corev1.ResourceCPU]
		for what, is := range map[string][2]any{
			"that it asks for nothing is said": {said, true},
			"its volumes and ports":            {len(s.Volumes) + len(c.Ports) + len(s.Hostname), 0},
			"its containers":                   {len(s.Containers), 1},
			"what it runs":                     {c.Image + " " + c.Command[0], want},
			"its labels":                       {fmt.Sprint(pod.Labels), fmt.Sprint(map[string]string{Label: "web", AnchorLabel: "web", "app.kubernetes.io/managed-by": "stsmigrate"})},
			"its owner":                        {len(pod.OwnerReferences), 1},
			"its gate":                         {len(s.ReadinessGates), 1},
			"a token":                          {*s.AutomountServiceAccountToken, false},
			"its deadline":                     {*s.ActiveDeadlineSeconds, int64(3600)},
			"its tolerations":                  {len(s.Tolerations), 1},
			"who places it":                    {s.SchedulerName + " " + s.ServiceAccountName, "other web"},
			"its node":                         {anchored(pod), "n"},
			"its terms":                        {len(s.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution), pull},
		} {
			if is[0] != is[1] {
				t.Errorf("%s: %v, expected %v", what, is[0], is[1])
			}
		}
		for _, term := range s.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			if drawn := term.PodAffinityTerm; term.Weight != 100 || drawn.TopologyKey != corev1.LabelHostname || drawn.LabelSelector.MatchLabels[appsv1.StatefulSetPodNameLabel] != "web-3" {
				t.Errorf("%+v", term)
			}
		}
	}
}

// No other pod is preempted for an anchor that need not be.
func TestAnAnchorHasNoHighPriority(t *testing.T) {
	for priority, want := range map[int32]string{1000: "", 0: "of-it", -10: "of-it"} {
		if pod, err := Anchor(web3(t, everything), "web-3-anchor", onN(priority)); err != nil || pod.Spec.PriorityClassName != want {
			t.Errorf("%d: %v, %v", priority, pod, err)
		}
	}
}

// Where a pod must be on a node of its own, apart from every other pod, an anchor would keep it from there.
func TestAnAnchorIsNotMadeWhereItRepelsItsPod(t *testing.T) {
	for rules, want := range map[string]bool{
		"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {}}]}}":                                false,
		"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {matchLabels: {app: web}}}]}}":         true,
		"affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: a, labelSelector: {}}}]}}": true,
		"topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]":                                      false,
		"topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}]":                                     true,
		"topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]":               true,
	} {
		pod, err := Anchor(web3(t, "containers: [{name: a}]\n"+rules), "web-3-anchor", onN(0))
		if err != nil || (pod != nil) != want {
			t.Errorf("%s: made %t, %v", rules, pod != nil, err)
		}
	}
}

// The rules of placeholders to one another are not about anchors, and the spread does not count them.
func TestAnAnchorIsNoPlaceholderToOthers(t *testing.T) {
	s := drawing(t, nil)
	s.pass(t, s.by)
	other := s.anchor(t)
	set := &appsv1.StatefulSet{}
	if err := s.at.Get(t.Context(), client.ObjectKey{Namespace: s.plan.On(plans.Destination).Namespace, Name: "web"}, set); err != nil {
		t.Fatal(err)
	}
	p := of(s.plan, plans.Destination, set, 0)
	p.Pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{}}}
	if err := s.at.Delete(t.Context(), s.pod(t)); err != nil {
		t.Fatal(err)
	}
	other.Spec.NodeName = "n"
	if err := s.at.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := s.by.beside(t.Context(), plans.Destination, &p); err != nil || p.Others || len(p.Full) > 0 {
		t.Errorf("%+v, %v", p.Full, err)
	}
}

// What an anchor is worth is read from it.
func TestHowAnAnchorStands(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   hold
	}{
		"on its way":       {func(*corev1.Pod) {}, hold{}},
		"there":            {func(p *corev1.Pod) { p.Spec.NodeName = "n" }, hold{there: true}},
		"of another place": {func(p *corev1.Pod) { p.Spec.Affinity.NodeAffinity = nil }, hold{no: "since the place is on n, and not on ", again: true}},
		"ended":            {func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n", corev1.PodFailed }, hold{no: "since it has ended"}},
		"no node": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "Too many pods"}}
		}, hold{no: "since no node takes it: Too many pods"}},
		"with a sidecar": {func(p *corev1.Pod) {
			p.Spec.NodeName = "n"
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}})
		}, hold{no: "since it was given a request of cpu when it was made"}},
	} {
		pod, err := Anchor(web3(t, everything), "web-3-anchor", onN(0))
		if err != nil {
			t.Fatal(err)
		}
		c.change(pod)
		if got := holds(pod, "n"); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// drawn is a stage with a placeholder that is warm, and a process that makes anchors.
type drawn struct {
	*stage
	by  Steps
	now time.Time
}

func drawing(t *testing.T, refusal error) *drawn {
	t.Helper()
	s := &drawn{now: time.Unix(1000, 0), stage: staged(t, plans.Source, func(p *corev1.Pod) error {
		if kind(p.Labels) == anAnchor {
			return refusal
		}
		return nil
	})}
	s.by = s.process()
	s.by.Anchors, s.by.Now = &Anchors{}, func() time.Time { return s.now }
	s.pass(t, s.by)
	s.kubelet(t, "")
	return s
}

func (s *drawn) anchor(t *testing.T) *corev1.Pod {
	t.Helper()
	pod, err := clusters.Get[corev1.Pod](t.Context(), s.at, s.plan.On(plans.Destination).Namespace, plans.Anchor(s.plan, plans.Destination, 0), "there")
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// schedules plays what a scheduler says of the anchor.
func (s *drawn) schedules(t *testing.T, node, why string) {
	t.Helper()
	pod := s.anchor(t)
	if node != "" {
		pod.Spec.NodeName = node
		if err := s.at.Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		return
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: why}}
	if err := s.at.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// The ordinal leaves when its anchor is on the node of its place.
func TestAnOrdinalLeavesWhenItsAnchorIsThere(t *testing.T) {
	s := drawing(t, nil)
	if o := s.pass(t, s.by); !strings.Contains(o.Reason, "make anchor web-0-anchor, which draws web-0 to n") || !s.moment.Stamp.Mine(s.anchor(t)) {
		t.Fatalf("%+v", o)
	}
	if o := s.pass(t, s.by); o.Standing != plans.During || o.Again == 0 {
		t.Errorf("%+v", o)
	}
	s.schedules(t, "n", "")
	if o := s.pass(t, s.by); o.Standing != plans.After || len(o.Placed) != 1 {
		t.Errorf("%+v", o)
	}
}

// An ordinal does not wait for an anchor that cannot be had, and no other is tried in this process.
func TestAnAnchorThatCannotBeHadHoldsNothingUp(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("pods"), "web-0-anchor", errors.New("exceeded quota"))
	for name, c := range map[string]struct {
		refusal error
		after   func(*drawn)
		passes  int
	}{
		"refused":      {forbidden, func(*drawn) {}, 0},
		"a webhook":    {apierrors.NewInternalError(errors.New("no endpoints")), func(*drawn) {}, 0},
		"no node":      {nil, func(s *drawn) { s.schedules(t, "", "Too many pods") }, 1},
		"no scheduler": {nil, func(s *drawn) { s.pass(t, s.by); s.now = s.now.Add(speaks + time.Second) }, 1},
		"somebody else": {nil, func(s *drawn) {
			pod := s.anchor(t)
			pod.Labels = nil
			if err := s.at.Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}, 0},
		"adopted": {nil, func(s *drawn) {
			pod := s.anchor(t)
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r", Controller: ptr.To(true)}}
			if err := s.at.Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}, 0},
	} {
		s := drawing(t, c.refusal)
		s.pass(t, s.by)
		c.after(s)
		for range c.passes {
			if o := s.pass(t, s.by); !strings.Contains(o.Reason, "delete anchor web-0-anchor, since ") {
				t.Errorf("%s: %+v", name, o)
			}
		}
		creates := s.creates
		for range 3 {
			if o := s.pass(t, s.by); o.Standing != plans.After || s.creates != creates {
				t.Errorf("%s: %+v", name, o)
			}
		}
	}
}

// An anchor of another node goes, and one is made where the place is now.
func TestAnAnchorOfAnotherNodeIsMadeAgain(t *testing.T) {
	s := drawing(t, nil)
	s.pass(t, s.by)
	pod := s.anchor(t)
	pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0] = "former"
	if err := s.at.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if o := s.pass(t, s.by); !strings.Contains(o.Reason, "delete anchor web-0-anchor, since the place is on n, and not on former") {
		t.Errorf("%+v", o)
	}
	if o := s.pass(t, s.by); !strings.Contains(o.Reason, "make anchor") {
		t.Errorf("%+v", o)
	}
}

// Only a place that is warm has an anchor: of one that is not, its node has nothing that others do not have.
func TestOnlyAWarmPlaceHasAnAnchor(t *testing.T) {
	s := drawing(t, nil)
	s.plan.Placeholder.Proof = plans.Scheduled
	if o := s.pass(t, s.by); o.Standing != plans.After || s.anchor(t) != nil {
		t.Errorf("%+v", o)
	}
}

// An anchor that a process has made which does not have the plan any more is taken away by that process.
func TestAnAnchorThatIsLateGoesAtOnce(t *testing.T) {
	s := drawing(t, nil)
	s.by.Overtaken = func(context.Context) bool { return true }
	s.pass(t, s.by)
	if pod := s.anchor(t); pod != nil {
		t.Errorf("%+v", pod)
	}
}

// flying returns a stage on which the place has gone and its anchor has not.
func flying(t *testing.T, replicas int32, up bool, pod *corev1.Pod) *drawn {
	t.Helper()
	s := drawing(t, nil)
	s.pass(t, s.by)
	s.schedules(t, "n", "")
	if err := s.at.Delete(t.Context(), s.pod(t)); err != nil {
		t.Fatal(err)
	}
	set := &appsv1.StatefulSet{}
	if err := s.at.Get(t.Context(), client.ObjectKey{Namespace: "mall", Name: "web"}, set); err != nil {
		t.Fatal(err)
	}
	set.Spec.Replicas = &replicas
	if err := s.at.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	from := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32)}}
	if up {
		from.Spec.Replicas = ptr.To[int32](1)
	}
	if err := s.on[plans.Source].Create(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	if pod != nil {
		pod.Namespace, pod.Name = "mall", "web-0"
		if err := s.at.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// When an anchor goes, once its placeholder has made room for the pod of the ordinal.
func TestWhenAnAnchorGoes(t *testing.T) {
	unschedulable := []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "Too many pods"}}
	for name, c := range map[string]struct {
		replicas int32 // of the destination
		up       bool  // the ordinal has not left
		pod      *corev1.Pod
		later    time.Duration
		want     string
	}{
		"in flight":             {},
		"still up":              {up: true, want: "since the placeholder is gone, and web-0 has not left"},
		"its pod is to come":    {replicas: 1},
		"its pod does not come": {replicas: 1, later: speaks + time.Second, want: "since pod web-0 of mall/web is not created"},
		"it has no node yet":    {replicas: 1, pod: &corev1.Pod{}},
		"it has a node":         {replicas: 1, pod: &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}, want: "since web-0 has a node"},
		"no node takes it":      {replicas: 1, pod: &corev1.Pod{Status: corev1.PodStatus{Conditions: unschedulable}}, want: "since pod web-0 of mall/web has no node: Too many pods"},
	} {
		s := flying(t, c.replicas, c.up, c.pod)
		s.moment.Op = plans.Grow
		for range 2 {
			o, err := s.by.Tidy(t.Context(), s.moment)
			if err != nil {
				t.Fatal(err)
			}
			if s.now = s.now.Add(c.later); c.later > 0 {
				c.later = 0
				continue
			}
			if got := o.Standing == plans.Before; got != (c.want != "") || !strings.HasSuffix(o.Reason, c.want) {
				t.Errorf("%s: %+v", name, o)
			}
		}
	}
}
