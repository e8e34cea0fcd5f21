package move_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A real API server sends whole nodes. What the kubelet reports of a node that is well is told to no plan, and a
// drain, a volume in use and the end of the node are. A watch tells of changes in the order in which they are made. The
// node is Ready and not cordoned, or the controller manager would write to it too.
func TestAPlanIsToldOfADrainAndNotOfAHeartbeat(t *testing.T) {
	t.Parallel()
	c, err := clusters.Connect(bed.East.Config())
	if err != nil {
		t.Fatal(err)
	}
	watches, err := clusters.NewWatches(bed.East.Config())
	if err != nil {
		t.Fatal(err)
	}
	signal := clusters.NewChangeSignal()
	signal.Follow(t.Context(), watches, plans.Source, "", clusters.Kinds{"Node": {Version: "v1", Resource: "nodes"}})
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "watched-node"}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	changes := changesOf(n, c)
	for _, step := range []struct {
		name   string
		make   []func(context.Context) error // of which only the last is told
		turned bool
		gone   bool
	}{
		{"a new node", []func(context.Context) error{changes.create}, true, false},
		{"a volume is in use", []func(context.Context) error{changes.beat, changes.beat, changes.use}, false, false},
		{"a drain", []func(context.Context) error{changes.beat, changes.drain}, true, false},
		{"the end of the node", []func(context.Context) error{changes.beat, changes.remove}, true, true},
	} {
		for _, change := range step.make {
			if err := change(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got := toldOf(t, signal, n.Name)
		if got.Turned != step.turned || got.Gone != step.gone || !got.Gone && got.Version != n.ResourceVersion {
			t.Errorf("%s: told %+v, expected turned %t, gone %t, version %s", step.name, got, step.turned, step.gone, n.ResourceVersion)
		}
	}
}

// toldOf waits until a change of a node is told, and returns it.
func toldOf(t *testing.T, signal *clusters.ChangeSignal, name string) clusters.Change {
	t.Helper()
	for late := time.After(time.Minute); ; {
		select {
		case <-signal.C():
			if change, mine := signal.Take().Of[clusters.ObjectKey{Cluster: plans.Source, Kind: "Node", Name: name}]; mine {
				return change
			}
		case <-late:
			t.Fatal("nothing was told of the node")
		}
	}
}

// nodeChanges are the changes of one node, which keep its version.
type nodeChanges struct{ create, beat, use, drain, remove func(context.Context) error }

func changesOf(n *corev1.Node, c client.Client) nodeChanges {
	beats := int64(0)
	status := func(change func()) func(context.Context) error {
		return func(ctx context.Context) error {
			was := n.DeepCopy()
			change()
			return c.Status().Patch(ctx, n, client.MergeFrom(was))
		}
	}
	return nodeChanges{
		create: func(ctx context.Context) error { return c.Create(ctx, n) },
		beat: status(func() {
			beats++
			n.Status.Conditions[0].LastHeartbeatTime = metav1.Unix(beats, 0)
		}),
		use: status(func() { n.Status.VolumesInUse = []corev1.UniqueVolumeName{"disk"} }),
		drain: func(ctx context.Context) error {
			was := n.DeepCopy()
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule})
			return c.Patch(ctx, n, client.MergeFrom(was))
		},
		remove: func(ctx context.Context) error { return c.Delete(ctx, n) },
	}
}
