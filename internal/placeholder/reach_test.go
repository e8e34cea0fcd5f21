package placeholder

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/placeholder/waiting"
	"github.com/stsmigrate/stsmigrate/plans"
)

// asksPeers returns a stage with three ordinals whose pods are on the side that a leg begins on, in the mode bridge.
func asksPeers(t *testing.T, from plans.Side, reach ...string) *stage {
	t.Helper()
	s := staged(t, from, agrees)
	s.plan.Count, s.plan.Names = 3, plans.Names{Mode: plans.Bridge, Service: "web"}
	s.plan.Placeholder.Reach = reach
	s.on[from] = fake.NewClientBuilder().WithStatusSubresource(&corev1.Pod{}).Build()
	for o := range int32(3) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.plan.On(from).Namespace, Name: s.plan.Pod(from, o)}}
		if err := s.on[from].Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		s.ready(t, from, o, true)
	}
	return s
}

func (s *stage) ready(t *testing.T, side plans.Side, ordinal int32, is bool) {
	t.Helper()
	pod := &corev1.Pod{}
	if err := s.on[side].Get(t.Context(), client.ObjectKey{Namespace: s.plan.On(side).Namespace, Name: s.plan.Pod(side, ordinal)}, pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[is]}}
	if err := s.on[side].Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// targetsOf returns what a placeholder asks, and whether it only reports.
func targetsOf(t *testing.T, pod *corev1.Pod) (out []string, reports bool) {
	t.Helper()
	if pod == nil {
		t.Fatal("there is no placeholder")
	}
	for _, c := range pod.Spec.InitContainers {
		if c.Name == asking {
			at := slices.Index(c.Command, "--")
			return c.Command[at+1:], slices.Contains(c.Command[:at], "-report")
		}
	}
	return nil, false
}

// answers has the kubelet report what a placeholder has said.
func (s *stage) answers(t *testing.T, exit int32, a waiting.Answers) {
	t.Helper()
	s.says(t, exit, string(a.Encode(waiting.MaxMessage)))
}

// says has the kubelet report a message of the container that asks.
func (s *stage) says(t *testing.T, exit int32, message string) {
	t.Helper()
	pod := s.pod(t)
	pod.Spec.NodeName = "n"
	if err := s.at.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	ended := &corev1.ContainerStateTerminated{ExitCode: exit, Message: message}
	one := corev1.ContainerStatus{Name: asking, State: corev1.ContainerState{Terminated: ended}}
	web := corev1.ContainerStatus{Name: "web", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}
	if exit == 0 {
		pod.Status.Phase, web.State = corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	} else { // it is tried again
		one.State, one.LastTerminationState = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, one.State
	}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: tools, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}, one}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{web}
	if err := s.at.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

func missed(target string) waiting.Answers {
	return waiting.Answers{Asked: 3, Reached: 2, Each: []waiting.Answer{{Target: target, Addresses: []string{"10.1.2.3"}, Error: "dial tcp 10.1.2.3:2380: connect: no route to host", Milliseconds: 3007}}}
}

// What a place does not reach keeps its ordinal up, on both ways and for both proofs, until it is reached.
func TestAnOrdinalStaysUpWhileItsPeersAreNotReached(t *testing.T) {
	for _, from := range plans.Sides() {
		for _, proof := range []plans.Proof{plans.Scheduled, plans.Warm} {
			s := asksPeers(t, from, "db.shop.svc:5432", "peers:2380")
			s.plan.Placeholder.Proof = proof
			by := s.process()
			s.pass(t, by)
			ns := s.plan.On(from).Namespace
			want := []string{"db.shop.svc:5432", "web-1.web." + ns + ".svc:2380", "web-2.web." + ns + ".svc:2380"}
			if got, reports := targetsOf(t, s.pod(t)); !slices.Equal(got, want) || reports {
				t.Fatalf("%v", got)
			}
			pod := s.pod(t)
			pod.Spec.NodeName = "n"
			if err := s.at.Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			if o := s.pass(t, by); o.Standing != plans.During {
				t.Errorf("it has a node, and has not asked yet: %+v", o)
			}
			s.answers(t, 1, missed(want[1]))
			o := s.pass(t, by)
			if o.Unreached != 1 {
				t.Errorf("%d are not reached, expected 1", o.Unreached)
			}
			for _, words := range []string{"stays up", "from node n", want[1], "(10.1.2.3)", "no route to host", "2 of 3", "you must act"} {
				if o.Standing != plans.During || !strings.Contains(o.Reason, words) {
					t.Errorf("expected %q in %+v", words, o)
				}
			}
			s.answers(t, 0, waiting.Answers{Asked: 3, Reached: 3})
			if o := s.pass(t, by); o.Standing != plans.After || len(o.Placed) != 1 || o.Placed[0].Reached != "3 of 3" {
				t.Errorf("%+v", o)
			}
		}
	}
}

// A peer that is down is not asked, and one that goes down while it is asked is told apart: the placeholder is made again
// without it, and once only.
func TestAPeerThatIsDownIsNotAskedFor(t *testing.T) {
	s := asksPeers(t, plans.Source, "peers:1")
	s.ready(t, plans.Source, 1, false)
	by := s.process()
	s.pass(t, by)
	if got, _ := targetsOf(t, s.pod(t)); !slices.Equal(got, []string{"web-2.web.shop.svc:1"}) {
		t.Fatalf("%v", got)
	}
	s.answers(t, 1, missed("web-2.web.shop.svc:1"))
	if o := s.pass(t, by); o.Standing != plans.During {
		t.Fatalf("it is made again although nothing has changed: %+v", o)
	}
	s.ready(t, plans.Source, 2, false)
	s.ready(t, plans.Source, 1, true)
	if o := s.pass(t, by); !strings.Contains(o.Reason, "others are to be reached") {
		t.Fatalf("%+v", o)
	}
	s.pass(t, by)
	if got, _ := targetsOf(t, s.pod(t)); !slices.Equal(got, []string{"web-1.web.shop.svc:1"}) || s.creates != 2 {
		t.Errorf("%v, made %d times", got, s.creates)
	}
}

// Where a NetworkPolicy selects the pods of the set, what a pod without their labels does not reach proves nothing, and does
// not keep the ordinal.
func TestAPolicyThatSelectsThePodsOfTheSetProvesNothing(t *testing.T) {
	for _, side := range plans.Sides() {
		for app, reports := range map[string]bool{"web": true, "db": false} {
			s := asksPeers(t, plans.Source, "peers:1")
			set := s.plan.On(plans.Destination)
			sts, err := s.process().Set(t.Context(), plans.Destination)
			if err != nil {
				t.Fatal(err)
			}
			sts.Spec.Template.Labels = map[string]string{"app": "web"}
			if err := s.at.Update(t.Context(), sts); err != nil {
				t.Fatal(set, err)
			}
			policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: s.plan.On(side).Namespace, Name: "p"}}
			policy.Spec.PodSelector.MatchLabels = map[string]string{"app": app}
			if err := s.on[side].Create(t.Context(), policy); err != nil {
				t.Fatal(err)
			}
			by := s.process()
			s.pass(t, by)
			if _, got := targetsOf(t, s.pod(t)); got != reports {
				t.Errorf("%s %s: reports only: %v", side, app, got)
			}
			if !reports {
				continue
			}
			s.answers(t, 0, missed("web-1.web.shop.svc:1"))
			if o := s.pass(t, by); o.Standing != plans.After || o.Placed[0].Reached != "2 of 3, not web-1.web.shop.svc:1" {
				t.Errorf("%s: %+v", side, o)
			}
		}
	}
}

// A message that is cut, that is missing, or that was forged, is no yes: how the container has ended decides. While it is
// tried again the ordinal stays, and a peer that has gone down meanwhile is told apart.
func TestAMessageThatCannotBeReadIsNoYes(t *testing.T) {
	a := missed("web-1.web.shop.svc:1")
	for name, message := range map[string]string{"cut": string(a.Encode(waiting.MaxMessage))[:40], "missing": "", "forged": `{"asked":2,"reached":2}`} {
		s := asksPeers(t, plans.Source, "peers:1")
		by := s.process()
		s.pass(t, by)
		s.says(t, 1, message)
		o := s.pass(t, by)
		if words := "its message cannot be read"; o.Standing != plans.During || strings.Contains(o.Reason, words) == (name == "forged") || !strings.Contains(o.Reason, "you must act") {
			t.Errorf("%s: %+v", name, o)
		}
		pod := s.pod(t)
		asks := &pod.Status.InitContainerStatuses[1]
		asks.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		if err := s.at.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if again := s.pass(t, by); again.Standing != plans.During || again.Reason != o.Reason {
			t.Errorf("%s: it is asked again: %+v", name, again)
		}
		s.ready(t, plans.Source, 2, false)
		if o := s.pass(t, by); !strings.Contains(o.Reason, "others are to be reached") {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// A webhook that takes out containers of other registries takes out the one that asks. Then nothing is proven, and the ordinal
// stays.
func TestAPlaceholderThatWasSilencedIsNoPlace(t *testing.T) {
	s := asksPeers(t, plans.Source, "peers:1")
	by := s.process()
	s.pass(t, by)
	s.answers(t, 0, waiting.Answers{Asked: 2, Reached: 2})
	pod := s.pod(t)
	pod.Spec.InitContainers = slices.DeleteFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == asking })
	if err := s.at.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if o := s.pass(t, by); o.Standing != plans.Conflict || !strings.Contains(o.Reason, "has lost the container stsmigrate-reach") {
		t.Errorf("%+v", o)
	}
}

// Where no peer is up, nobody is asked, and that is said.
func TestAPlaceWithoutPeersAsksNobody(t *testing.T) {
	s := asksPeers(t, plans.Source, "peers:1")
	s.ready(t, plans.Source, 1, false)
	s.ready(t, plans.Source, 2, false)
	by := s.process()
	s.pass(t, by)
	if got, _ := targetsOf(t, s.pod(t)); len(got) > 0 {
		t.Fatalf("%v", got)
	}
	s.answers(t, 0, waiting.Answers{})
	if o := s.pass(t, by); o.Standing != plans.After || o.Placed[0].Reached != "0 of 0" {
		t.Errorf("%+v", o)
	}
}

// The program that asks is one for Linux: a pod of Windows does not leave unasked.
func TestPodsOfWindowsAskNobody(t *testing.T) {
	p := web3(t, "os: {name: windows}\ncontainers: [{name: a, ports: [{containerPort: 1}]}]")
	p.Program = Program{Image: "a:1", Reach: []string{"peers"}}
	if why := p.unaskable(); !strings.Contains(why, "Linux") {
		t.Error(why)
	}
}

// Of many that are not reached the first are named, and the others are counted, also those that had no room in the message.
func TestWhatIsNotReachedIsNamedOrCounted(t *testing.T) {
	a := asked{known: true, Answers: waiting.Answers{Asked: 64, Reached: 4}}
	for k := range 10 {
		a.Each = append(a.Each, waiting.Answer{Target: fmt.Sprintf("web-%d:1", k), Error: "no"})
	}
	if got := a.reached(); got != "4 of 64, not web-0:1, web-1:1, web-2:1, and 57 more" {
		t.Error(got)
	}
	if a.Each = a.Each[:1]; a.words() != "web-0:1 after 0 ms: no, and 59 more" {
		t.Error(a.words())
	}
}

// Peers of a set that names no port are not silently none.
func TestPeersWithoutAPortAreSaid(t *testing.T) {
	s := asksPeers(t, plans.Source, "peers")
	if o := s.pass(t, s.process()); o.Standing != plans.Conflict || !strings.Contains(o.Reason, "peers:PORT") || s.creates != 0 {
		t.Errorf("%+v", o)
	}
}

// What must be reached is not given up where the program cannot be had: the ordinal stays.
func TestWhatMustBeReachedNeedsTheProgram(t *testing.T) {
	s := asksPeers(t, plans.Source, "db:1")
	by := s.process()
	s.pass(t, by)
	s.kubelet(t, "ImagePullBackOff")
	for range 3 {
		if o := s.pass(t, by); o.Standing != plans.During || !strings.Contains(o.Reason, "ImagePullBackOff") {
			t.Errorf("%+v", o)
		}
	}
	if s.creates != 1 {
		t.Errorf("it was made %d times", s.creates)
	}
}

// A list stands for so many addresses at most, those that are named first, each once.
func TestWhatIsAskedIsBounded(t *testing.T) {
	var peers []string
	for k := range 100 {
		peers = append(peers, fmt.Sprintf("web-%d", k))
	}
	got := targets([]string{"peers", "peers:2", "db:1"}, peers, []uint16{1, 2})
	if len(got) != waiting.MaxTargets || got[0] != "db:1" || got[1] != "web-0:1" || len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(got) {
		t.Errorf("%v", got)
	}
	pod := web3(t, "initContainers: [{name: i, ports: [{containerPort: 9}]}, {name: s, restartPolicy: Always, ports: [{containerPort: 7}]}]\ncontainers: [{name: a, ports: [{containerPort: 8}, {containerPort: 5, protocol: UDP}, {containerPort: 7, protocol: TCP}]}]").Pod
	if got := ports(pod); !slices.Equal(got, []uint16{7, 8}) {
		t.Errorf("%v", got)
	}
	for _, c := range []struct {
		containers int
		want       string
	}{{1, "-limit=1755"}, {20, "-limit=472"}} {
		if got := (Program{Targets: []string{"a:1"}}).command(c.containers); !slices.Contains(got, c.want) || got[len(got)-2] != "--" {
			t.Errorf("%v, expected %s", got, c.want)
		}
	}
}
