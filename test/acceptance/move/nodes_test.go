package move_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A real API server sends whole nodes. What the kubelet reports of a node that is well is told to no plan, and a
// cordon, a volume in use and the end of the node are.
func TestAPlanIsToldOfACordonAndNotOfAHeartbeat(t *testing.T) {
	t.Parallel()
	c, err := clusters.Connect(bed.East.Config())
	if err != nil {
		t.Fatal(err)
	}
	watches, err := clusters.NewWatches(bed.East.Config())
	if err != nil {
		t.Fatal(err)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "watched-node"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	if err := c.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	signal := clusters.NewChangeSignal()
	signal.Follow(t.Context(), watches, plans.Source, "", clusters.Kinds{"Node": {Version: "v1", Resource: "nodes"}})
	key := clusters.ObjectKey{Cluster: plans.Source, Kind: "Node", Name: n.Name}
	told := func() clusters.Change {
		t.Helper()
		for late := time.After(time.Minute); ; {
			select {
			case <-signal.C():
				if change, mine := signal.Take().Of[key]; mine {
					return change
				}
			case <-late:
				t.Fatal("nothing was told of the node")
			}
		}
	}
	if got := told(); !got.Turned || got.UID != n.UID {
		t.Fatalf("%+v, expected a node that is new", got)
	}
	// Three heartbeats, and then what is told: watches report changes in the order in which they were made.
	write := func(status bool, change func()) {
		t.Helper()
		was := n.DeepCopy()
		change()
		var err error
		if status {
			err = c.Status().Patch(t.Context(), n, client.MergeFrom(was))
		} else {
			err = c.Patch(t.Context(), n, client.MergeFrom(was))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	report := func(second int64) {
		write(true, func() {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Unix(second, 0)}}
		})
	}
	report(1)
	if got := told(); got.Turned || got.Version != n.ResourceVersion {
		t.Errorf("%+v, expected a node that has become Ready", got)
	}
	report(2)
	report(3)
	write(true, func() { n.Status.VolumesInUse = []corev1.UniqueVolumeName{"disk"} })
	if got := told(); got.Turned || got.Version != n.ResourceVersion {
		t.Errorf("%+v, expected the volume in use at version %s", got, n.ResourceVersion)
	}
	report(4)
	write(false, func() { n.Spec.Unschedulable = false })
	if got := told(); !got.Turned || got.Version != n.ResourceVersion {
		t.Errorf("%+v, expected the end of the cordon at version %s", got, n.ResourceVersion)
	}
	if err := c.Delete(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if got := told(); !got.Gone {
		t.Errorf("%+v, expected the end of the node", got)
	}
}
