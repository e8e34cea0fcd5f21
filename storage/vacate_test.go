package storage

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// pods gives the flight another pod.
func pods(p plans.Pod, gone ...string) func(*plans.StepContext) {
	return func(m *plans.StepContext) {
		next := *m.Flight
		p.Ordinal, p.UID = 4, "pod-uid"
		next.Pods, next.NodesGone = []plans.Pod{p}, gone
		m.Flight = &next
	}
}

func TestWhatIsBelievedOfAPodsEnd(t *testing.T) {
	off := node(corev1.ConditionFalse)
	off.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	again := node(corev1.ConditionTrue)
	again.UID = "another machine"
	busy := node(corev1.ConditionTrue, "kubernetes.io/csi/"+disk)
	silent := node(corev1.ConditionUnknown, "kubernetes.io/csi/"+disk)
	failed := attachment()
	failed.Status.AttachError = &storagev1.VolumeError{Message: "volume not found\nsecond line"}
	another, inline := attachment(), attachment()
	theirs := "pv-of-others"
	another.Spec.Source.PersistentVolumeName = &theirs
	inline.Name, inline.Spec.Source = "va-2", storagev1.VolumeAttachmentSource{InlineVolumeSpec: &corev1.PersistentVolumeSpec{}}
	never := false
	unattached := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "disk.example.com"}, Spec: storagev1.CSIDriverSpec{AttachRequired: &never}}
	seen := plans.Pod{Node: "n1", Stopped: "node n1 is Ready"}
	check(t, []row{
		{name: "a node that is out of service", moment: at(plans.Vacate), world: []client.Object{off}, want: plans.After, reason: "out of service"},
		{name: "but not before its volume is detached", moment: at(plans.Vacate), world: []client.Object{off, attachment()}, want: plans.During, reason: "still attached"},
		{name: "what was seen before the node went", moment: at(plans.Vacate, pods(seen)), want: plans.After, reason: "node n1 is Ready"},
		{name: "a person who knows that the node is gone", moment: at(plans.Vacate, pods(plans.Pod{Node: "n1"}, "n1")), want: plans.After, reason: "node n1 is permanently gone, as the user has confirmed (--node-gone)"},
		{name: "who spoke of another node", moment: at(plans.Vacate, pods(plans.Pod{Node: "n1"}, "n2")), want: plans.Conflict, reason: "--node-gone n1"},
		{name: "a node rather than the person", moment: at(plans.Vacate, pods(plans.Pod{Node: "n1"}, "n1")), world: []client.Object{busy}, want: plans.During, reason: "in use"},
		{name: "not another node of that name", moment: at(plans.Vacate, pods(plans.Pod{Node: "n1", NodeUID: "a machine"})), world: []client.Object{again}, want: plans.Conflict, reason: "no longer exists"},
		{name: "not an attachment that failed", moment: at(plans.Vacate), world: []client.Object{node(corev1.ConditionTrue), failed}, want: plans.During, reason: "could not be attached to node n1 (VolumeAttachment va-1: volume not found), and"},
		{name: "a person who spoke of another node than the attachment's", moment: at(plans.Vacate, pods(seen, "n2")), world: []client.Object{attachment()}, want: plans.During, reason: "still attached to node n1"},
		{name: "a node that uses the volume rather than the person", moment: at(plans.Vacate, pods(seen, "n1")), world: []client.Object{busy, attachment()}, want: plans.During, reason: "still attached to node n1"},
		{name: "a person who knows of a node that is silent, whatever it has said last", moment: at(plans.Vacate, pods(seen, "n1")), world: []client.Object{silent, attachment()}, want: plans.After},
		{name: "not an attachment of another volume", moment: at(plans.Vacate), world: []client.Object{node(corev1.ConditionTrue), another, inline}, want: plans.After},
		{name: "a person who knows of that", moment: at(plans.Vacate, pods(plans.Pod{Node: "n1"}, "n1")), world: []client.Object{node(corev1.ConditionTrue), failed}, want: plans.After},
		{name: "no more than was looked at", moment: at(plans.Vacate), world: []client.Object{node(corev1.ConditionTrue), unattached}, want: plans.During, reason: "the kubelet of node n1 was not seen to report the end of its containers"},
		{name: "no more than the kubelet has reported", moment: at(plans.Vacate, pods(seen)), world: []client.Object{node(corev1.ConditionTrue), unattached}, want: plans.After, reason: "never attached, so the end of its pod is the proof"},
		{name: "a person who knows that they have ended", moment: at(plans.Vacate, pods(plans.Pod{Node: "n1"}, "n1")), world: []client.Object{node(corev1.ConditionTrue), unattached}, want: plans.After, reason: "node n1 is Ready, and its containers have ended, as the user has confirmed (--node-gone)"},
	})
}

func TestWhatTheKubeletReportsOfAPodIsKept(t *testing.T) {
	dying := func(phase corev1.PodPhase, ended bool, containers ...corev1.Container) *corev1.Pod {
		p := pod("web-4", "pod-uid")
		at := metav1.Now()
		p.DeletionTimestamp, p.Finalizers = &at, []string{"test"}
		p.Spec.NodeName, p.Spec.Containers = "n1", append([]corev1.Container{{Name: "web"}}, containers...)
		p.Status.Phase = phase
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web"}}
		if ended {
			p.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{}
		}
		return p
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"every container has ended":                  {dying(corev1.PodFailed, true), "the kubelet of node n1 reported the end of its containers"},
		"failed, by the collector of orphaned pods":  {dying(corev1.PodFailed, false), ""},
		"one has ended, and is about to start again": {dying(corev1.PodRunning, true), ""},
		"nothing is known of one container":          {dying(corev1.PodFailed, true, corev1.Container{Name: "helper"}), ""},
	} {
		if got := (vacancy{objects: objects{clusters.Pair{Plan: rebind()}}}).noted(c.pod, plans.Pod{Ordinal: 4, UID: "pod-uid", Node: "n1"}); got.Stopped != c.want {
			t.Errorf("%s: %q, expected %q", name, got.Stopped, c.want)
		}
	}
}

// The set's controller may recreate the pod before it sees the new range. The end of that pod must then be
// proven.
func TestAPodThatTheSetMadeAgainIsTheOneThatHasToEnd(t *testing.T) {
	got := (vacancy{objects: objects{clusters.Pair{Plan: rebind()}}}).noted(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "another"}, Spec: corev1.PodSpec{NodeName: "n2"}}, plans.Pod{Ordinal: 4, UID: "pod-uid", Node: "n1", Stopped: "node n1 is Ready"})
	if want := (plans.Pod{Ordinal: 4, UID: "another", Node: "n2", Grace: 30}); got != want {
		t.Errorf("%+v, expected %+v", got, want)
	}
}

// The object of a pod that is deleted by force goes at once, and its containers may run for as long as their grace period
// lasts. Nothing else shows their end where the volume is never attached (S1).
func TestAVolumeThatIsNeverAttachedIsFreeWhenTheGracePeriodIsOver(t *testing.T) {
	never := false
	unattached := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "disk.example.com"}, Spec: storagev1.CSIDriverSpec{AttachRequired: &never}}
	terminating := pod("web-4", "pod-uid")
	terminating.Spec.NodeName, terminating.Finalizers = "n1", []string{"test"}
	terminating.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
	seconds := func(s int64) *int64 { return &s }
	terminating.Spec.TerminationGracePeriodSeconds = seconds(60)
	asked := terminating.DeepCopy()
	asked.DeletionGracePeriodSeconds = seconds(90)
	for name, c := range map[string]struct {
		known plans.Pod
		pod   *corev1.Pod // as long as it is there
		grace time.Duration
	}{
		"it was seen to terminate":             {plans.Pod{Node: "n1", Grace: 60}, terminating, time.Minute},
		"someone asked for more":               {plans.Pod{Node: "n1", Grace: 60}, asked, 90 * time.Second},
		"it was gone when this process looked": {plans.Pod{Node: "n1", Grace: 60}, nil, time.Minute},
		"an earlier release has recorded it":   {plans.Pod{Node: "n1"}, nil, 30 * time.Second},
	} {
		now := time.Unix(1000, 0)
		objects := []client.Object{node(corev1.ConditionTrue), unattached}
		if c.pod != nil {
			objects = append(objects, c.pod)
		}
		server := fake.NewClientBuilder().WithObjects(objects...).Build()
		on := clusters.Clusters{plans.Source: server, plans.Destination: server}
		look := Looks(rebind(), on, func() time.Time { return now })[plans.Vacate]
		m := at(plans.Vacate, pods(c.known))
		left := c.grace
		if c.pod != nil { // the clock begins when the pod is seen to terminate
			m.Flight = terminates(t, name, server, look, m, c.pod)
			now = now.Add(20 * time.Second)
			left -= 20 * time.Second
		}
		for _, wait := range []time.Duration{left, time.Second} {
			s, err := look(t.Context(), m)
			if err != nil || s.Standing != plans.During || s.ID != reasons.PodEndNotSeen || s.Again != wait || !strings.Contains(s.Reason, "volume pv-1 is of a kind that is never attached") || !strings.Contains(s.Reason, c.grace.String()+", is over") {
				t.Errorf("%s: waits %s, expected %s: %+v, %v", name, s.Again, wait, s, err)
			}
			now = now.Add(wait - time.Second)
		}
		now = now.Add(time.Second)
		if s, err := look(t.Context(), m); err != nil || s.Standing != plans.After || !strings.Contains(s.Reason, "node n1 is Ready, and the grace period of its pod, "+c.grace.String()+", is over") {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

// terminates looks once at a pod that is being deleted, and then makes it go. It returns the flight that the look has
// recorded.
func terminates(t *testing.T, name string, server client.Client, look plans.Look, m plans.StepContext, pod *corev1.Pod) *plans.Flight {
	t.Helper()
	s, err := look(t.Context(), m)
	if err != nil || s.Standing != plans.During || s.ID != reasons.PodTerminating {
		t.Fatalf("%s: %+v, %v", name, s, err)
	}
	next := pod.DeepCopy()
	next.Finalizers = nil
	if err := server.Update(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	return s.Undo.Flight
}
