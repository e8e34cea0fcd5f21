package move_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A real API server sends whole nodes. What the kubelet reports of a node that is well is told to no plan, and a
// drain, a volume in use and the end of the node are. A watch tells of changes in the order in which they are made: once
// the change of another node is told, so is all that came before. The controller manager writes to a new node as well:
// the API server taints each until its condition was seen.
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
	n, other := newWatchedNode(c, "watched-node"), newWatchedNode(c, "other-node")
	if err := other.create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.remove(context.Background()) })
	for _, step := range []struct {
		name         string
		make         func(context.Context) error
		told, turned bool
	}{
		{"a new node", n.create, true, true},
		{"a heartbeat", n.beat, false, false},
		{"a volume is in use", n.use, true, false},
		{"a drain", n.drain, true, true},
		{"a heartbeat of a drained node", n.beat, false, false},
		{"the end of the node", n.remove, true, true},
	} {
		for _, change := range []func(context.Context) error{step.make, other.use} {
			if err := change(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got, told := toldOf(t, signal, n, other); told != step.told || got.Turned != step.turned {
			t.Errorf("%s: told %t, %+v; expected %t, turned %t", step.name, told, got, step.told, step.turned)
		}
	}
}

// toldOf takes what is told until the last change of the other node is. It returns what was told of the first one, as
// one change, and whether anything was.
func toldOf(t *testing.T, signal *clusters.ChangeSignal, n, other *watchedNode) (all clusters.Change, told bool) {
	t.Helper()
	of := func(n *watchedNode) clusters.ObjectKey {
		return clusters.ObjectKey{Cluster: plans.Source, Kind: "Node", Name: n.Name}
	}
	for late := time.After(time.Minute); ; {
		select {
		case <-signal.C():
			taken := signal.Take().Of
			if change, mine := taken[of(n)]; mine {
				change.Turned = change.Turned || all.Turned
				all, told = change, true
			}
			if taken[of(other)].Version == other.ResourceVersion {
				return all, told
			}
		case <-late:
			t.Fatalf("the change of the other node was not told: version %s", other.ResourceVersion)
		}
	}
}

// watchedNode is a node whose kubelet and administrator are the test.
type watchedNode struct {
	corev1.Node

	on          client.Client
	beats, uses int64
}

func newWatchedNode(on client.Client, name string) *watchedNode {
	n := &watchedNode{on: on, Node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// create returns once the controller manager has written what it writes to a new node.
func (n *watchedNode) create(ctx context.Context) error {
	if err := n.on.Create(ctx, &n.Node); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := n.on.Get(ctx, client.ObjectKeyFromObject(n), &n.Node)
		return n.Annotations[corev1.ObjectTTLAnnotationKey] != "" && len(n.Spec.Taints) == 0, err
	})
}

func (n *watchedNode) report(ctx context.Context, change func()) error {
	was := n.DeepCopy()
	change()
	return n.on.Status().Patch(ctx, &n.Node, client.MergeFrom(was))
}

func (n *watchedNode) beat(ctx context.Context) error {
	n.beats++
	return n.report(ctx, func() { n.Status.Conditions[0].LastHeartbeatTime = metav1.Unix(n.beats, 0) })
}

// use mounts another volume.
func (n *watchedNode) use(ctx context.Context) error {
	n.uses++
	return n.report(ctx, func() {
		n.Status.VolumesInUse = []corev1.UniqueVolumeName{corev1.UniqueVolumeName(fmt.Sprint("disk-", n.uses))}
	})
}

func (n *watchedNode) drain(ctx context.Context) error {
	was := n.DeepCopy()
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule})
	return n.on.Patch(ctx, &n.Node, client.MergeFrom(was))
}

func (n *watchedNode) remove(ctx context.Context) error { return n.on.Delete(ctx, &n.Node) }
