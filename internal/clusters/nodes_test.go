package clusters

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/plans"
)

func aNode(version string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a", UID: "one", ResourceVersion: version}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.VolumesInUse = []corev1.UniqueVolumeName{"disk"}
	for _, change := range changes {
		change(n)
	}
	return n
}

// Of the reports of kubelets only those wake a plan that change what it waits for.
func TestAChangeOfANodeTellsWhatItMeans(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(*corev1.Node)
		turned, idle bool
	}{
		"the kubelet reports that the node is well": {func(n *corev1.Node) {
			n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Unix(100, 0))
			n.Status.Images = []corev1.ContainerImage{{Names: []string{"web"}}}
			n.Annotations = map[string]string{"seen": "now"}
		}, false, true},
		"the node is not Ready":        {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, false, false},
		"a volume is no longer in use": {func(n *corev1.Node) { n.Status.VolumesInUse = nil }, false, false},
		"a volume is attached":         {func(n *corev1.Node) { n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "disk"}} }, false, false},
		"a label":                      {func(n *corev1.Node) { n.Labels = map[string]string{"zone": "a"} }, false, false},
		"less to give away": {func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}, false, false},
		"a provider":               {func(n *corev1.Node) { n.Spec.ProviderID = "x" }, false, false},
		"a cordon":                 {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true, false},
		"a taint":                  {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted"}} }, true, false},
		"its deletion":             {func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(100, 0)} }, true, false},
		"another node of its name": {func(n *corev1.Node) { n.UID = "two" }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := NodeChange(aNode("1"), aNode("2", c.change))
			if got.Turned != c.turned || got.Idle != c.idle || got.Version != "2" {
				t.Errorf("%+v, expected turned %t, idle %t", got, c.turned, c.idle)
			}
		})
	}
	if got := NodeChange(nil, aNode("1")); !got.Turned || got.Idle {
		t.Errorf("%+v for a new node", got)
	}
}

// What a watch reports of nodes is compared with what it has reported last, whether or not it was trimmed before.
func TestAWatchComparesNodes(t *testing.T) {
	w := &watched{versions: map[types.NamespacedName]reported{}}
	var told []Change
	w.join(listener{tell: func(_ types.NamespacedName, c Change) { told = append(told, c) }})
	cordon := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	short, err := w.trimmed(aNode("2"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []any{aNode("1"), short, aNode("3", cordon), aNode("4", cordon)} {
		if err := w.Update(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Delete(aNode("5")); err != nil {
		t.Fatal(err)
	}
	if err := w.Update(aNode("6")); err != nil {
		t.Fatal(err)
	}
	want := []Change{{Version: "1", UID: "one", Turned: true}, {Version: "2", UID: "one", Idle: true}, {Version: "3", UID: "one", Turned: true}, {Version: "4", UID: "one", Idle: true}, {Gone: true, Turned: true}, {Version: "6", UID: "one", Turned: true}}
	if len(told) != len(want) {
		t.Fatalf("%+v, expected %+v", told, want)
	}
	for k := range want {
		if told[k] != want[k] {
			t.Errorf("%+v, expected %+v", told[k], want[k])
		}
	}
}

// An idle report wakes nobody and outdates nothing. It shows that the watch is alive.
func TestAnIdleReportWakesNobody(t *testing.T) {
	r := recent(t, onePod("web-0"))
	signal := NewChangeSignal()
	signal.Recent = r.Recent
	signal.Notify(ObjectKey{Cluster: plans.Source, Kind: "Node", Name: "node-a"}, Change{Version: "9", Idle: true})
	if len(signal.C()) > 0 || len(signal.Take().Of) > 0 {
		t.Error("an idle report has woken the reader")
	}
	if r.heard[ObjectKey{Cluster: plans.Source, Kind: "Node"}] != r.now {
		t.Errorf("heard %v, expected now", r.heard)
	}
}

// A list of nodes that are drained is outdated by what turns a node, and not by the volumes that it has.
func TestAListOfDrainsIsReadForWhatTurnsANode(t *testing.T) {
	drains := ObjectKey{Cluster: plans.Source, Kind: "Node"}
	g := &ReadCache{}
	g.Clear()
	g.Lists[drains] = &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}
	one := drains
	one.Name = "node-a"
	for _, turned := range []bool{false, true} {
		got := g.News(Changes{Of: map[ObjectKey]Change{one: {Version: "7", Turned: turned}}}, func(ObjectKey) bool { return false })
		if want := map[bool]Urgency{true: Soon, false: Never}[turned]; got != want {
			t.Errorf("turned %t: urgency %d, expected %d", turned, got, want)
		}
	}
	l := &roster{turns: true, changed: map[ObjectKey]Change{}}
	l.note(one, Change{Version: "7"})
	l.note(one, Change{Version: "8", Turned: true})
	if len(l.changed) != 1 || l.changed[one].Version != "8" {
		t.Errorf("%+v, expected the change that turns the node alone", l.changed)
	}
}
