//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// outage is how long an outage lasts: longer than a control plane takes to notice that a node is
// gone (40 s), and longer than every Lease.
const outage = 90 * time.Second

// A node without power takes its pods with it. The move starts no ordinal as long as they are down,
// and goes on by itself when the node is back (S1, S2).
func TestANodeOfEitherSideLosesItsPower(t *testing.T) {
	s := between(t, "powerless")
	s.replicas = 6
	s.started(t, s.dataSet(cluster.AttachedClass))
	lost, source, destination := new(int), s.places()[0], s.places()[1]
	s.moveUnder(t, "data, a node of each side loses its power", lost,
		fault{1, s.powerless(source, source.Name+"-worker", lost)},
		fault{4, s.powerless(destination, destination.Name+"-worker", lost)})
}

// Without its API server a cluster is neither read nor written. The pods that run go on, the move
// waits, and goes on by itself when the control plane is back (S1, S2, L4).
func TestAControlPlaneOfEitherSideLosesItsPower(t *testing.T) {
	s := between(t, "headless")
	s.replicas = 6
	s.started(t, s.dataSet(cluster.AttachedClass))
	lost, source, destination := new(int), s.places()[0], s.places()[1]
	s.moveUnder(t, "data, a control plane of each side loses its power", lost,
		fault{1, s.powerless(source, source.Name+"-control-plane", lost)},
		fault{4, s.powerless(destination, destination.Name+"-control-plane", lost)})
}

// A node that never comes back is declared out of service, as for every StatefulSet: its pods and
// attachments are removed by force. The move takes their ordinals along, or goes on when they run
// on another node of the destination (S1).
func TestANodeIsGoneForGood(t *testing.T) {
	for side, at := range map[string]int32{"source": 1, "destination": 2} {
		t.Run(side, func(t *testing.T) {
			s := between(t, "forsaken-"+side)
			s.replicas = 4
			s.started(t, s.dataSet(cluster.AttachedClass))
			p := s.places()[0]
			if side == "destination" {
				p = s.places()[1]
			}
			lost := new(int)
			s.moveUnder(t, "data, a node of the "+side+" is gone for good", lost, fault{at, s.forsaken(t, p, p.Name+"-worker", lost)})
		})
	}
}

// forsaken takes the power from a node until the end of the test, and declares it out of service.
func (s fixture) forsaken(t *testing.T, p place, node string, lost *int) func(*testing.T) string {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Minute)
		defer cancel()
		if err := clusters(t).PowerOn(ctx, p.Cluster, node); err != nil {
			t.Error(err)
		}
		if err := p.taint(ctx, node, `null`); err != nil {
			t.Error(err)
		}
	})
	return func(t *testing.T) string {
		t.Helper()
		*lost = s.running(t, p, node)
		if err := clusters(t).PowerOff(t.Context(), node); err != nil {
			t.Error(err)
			return ""
		}
		eventually(t, 5*time.Minute, "the control plane sees that the node is gone", func(ctx context.Context) error {
			ready, err := p.Condition(ctx, node, corev1.NodeReady)
			if err == nil && ready.Status == corev1.ConditionTrue {
				err = errors.New("it is ready")
			}
			return err
		})
		if err := p.taint(t.Context(), node, `[{"key":"node.kubernetes.io/out-of-service","value":"nodeshutdown","effect":"NoExecute"}]`); err != nil {
			t.Error(err)
		}
		return fmt.Sprintf("%s with %d pods of the set lost its power and was declared out of service", node, *lost)
	}
}

// The members that are on the other side of a cut are without their quorum and count as
// unavailable. The move waits for them, and the client goes on (S2).
func TestTheNetworkBetweenTheClustersIsCut(t *testing.T) {
	b := clusters(t)
	s := fixture{set: "etcd", from: b.East, to: b.West, source: "cut" + suite.suffix, destination: "cut" + suite.suffix, replicas: 5, d: 1}
	s.create(t, append(s.around(true, 2379, 2380), s.etcdSet())...)
	s.available(t, s.places()[0])
	t.Run("the network is cut", func(t *testing.T) {
		s.moveEtcd(t, []fault{{1, cut()}})
	})
}

// An orchestrator without a connection to one of its clusters brings no ordinal to the other but the
// one in flight, and goes on when the connection is back (L4).
func TestTheOrchestratorIsCutOffFromACluster(t *testing.T) {
	shipped(t)
	s := between(t, "unreachable")
	s.replicas = 4
	s.started(t, s.dataSet(cluster.SharedClass))
	plan := "unreachable" + suite.suffix
	file := filepath.Join(t.TempDir(), "plan.yaml")
	s.run(t, 0, "plan", s.set, "--name", plan, "--out", file)
	s.permitted(t, file)
	watch, w := s.listen(t.Context()), s.witness(t)
	began := time.Now()
	whenFailed(t, s.run(t, 0, "apply", file, "--detach", "--home-context", s.to.Context(), "--yes"))
	s.reached(t.Context(), t, 1)
	note := s.withinOneWave(cut(func() {
		whenFailed(t, asked(t, "status", plan))
	}))(t)
	outcome(t, plan, "Moved")
	r := row{scenario: "data, the orchestrator is cut off from the source", ordinals: int(s.replicas), d: s.d, wall: time.Since(began)}
	r.note("%s", note)
	observed := watch()
	r.gap = observed.gap
	if report := r.hear(t, w); report.MaxUnavailable > s.d {
		t.Errorf("witness: %d ordinals were down at once, expected %d at most", report.MaxUnavailable, s.d)
	}
	s.judge(t, &r, observed)
	asked(t, "finalize", plan, "--yes")
	outcome(t, plan, "Finalized")
	s.available(t, s.places()[1])
	s.nothingDestroyed(t)
}

// While no node of the destination has room on its disk, its pods are evicted and none starts. The
// move takes no further ordinal down, says why, and goes on when there is room (S2).
func TestTheDisksOfTheDestinationAreFull(t *testing.T) {
	s := between(t, "full")
	s.replicas = 4
	s.started(t, s.dataSet(cluster.SharedClass))
	destination := s.places()[1]
	// It runs the storage's provisioner, which stays.
	destination.cordoned(t, destination.Name+"-control-plane")
	watch, w := s.listen(t.Context()), s.witness(t)
	began, file := time.Now(), s.plan(t)
	apply, out := s.stsmigrate(t, "apply", file, "--yes")
	if err := apply.Start(); err != nil {
		t.Fatal(err)
	}
	s.reached(t.Context(), t, 1)
	node := destination.Name + "-worker"
	if err := clusters(t).FillDisk(t.Context(), destination.Cluster, node, true); err != nil {
		t.Fatal(err)
	}
	there := s.moved(t)
	outagePasses(t)
	if after := s.moved(t); after > there+1 {
		t.Errorf("%d ordinals left for a destination whose disk is full, expected one at most", after-there)
	}
	whenFailed(t, s.run(t, 0, "status", s.set))
	if err := clusters(t).FillDisk(t.Context(), destination.Cluster, node, false); err != nil {
		t.Fatal(err)
	}
	if err := apply.Wait(); err != nil { // blocked between two waves; in a wave it waits
		if !strings.Contains(out.String(), "disk-pressure") {
			t.Errorf("it was blocked for another reason than the full disk:\n%s", out.Bytes())
		}
		whenFailed(t, s.run(t, 0, "resume", s.set, "--yes"))
	}
	whenFailed(t, out.String())
	r := row{scenario: "data, the destination's disk is full", ordinals: int(s.replicas), d: s.d, wall: time.Since(began)}
	r.note("the disk of %s, with %d ordinals of the set, was full for %s", node, there, outage)
	if report := r.hear(t, w); report.MaxUnavailable > s.d+int(there) {
		t.Errorf("witness: %d ordinals were down at once, expected %d at most", report.MaxUnavailable, s.d+int(there))
	}
	s.available(t, destination)
	observed := watch()
	r.gap = observed.gap
	s.judge(t, &r, observed)
	s.run(t, 0, "finalize", s.set, "--yes")
	s.nothingDestroyed(t)
}

// A member whose volume is full is not ready, on the source or on the destination. The move takes
// nobody else down, and goes on when there is room; the records that were acknowledged before are
// all there (S2).
func TestAVolumeOfEitherSideIsFull(t *testing.T) {
	s := between(t, "narrow")
	s.replicas = 6
	set := s.dataSet(cluster.SharedClass)
	set.Spec.MinReadySeconds = 4 // the move is still going on when the member notices
	first, last := s.narrow(t, set, 0), s.narrow(t, set, s.replicas-1)
	s.started(t, set)
	lost := new(int)
	s.moveUnder(t, "data, a volume of each side is full", lost,
		fault{1, s.full(s.places()[0], 0, first, lost)},
		fault{3, s.full(s.places()[1], s.replicas-1, last, lost)})
}

// narrow creates a claim of a set before the set, with a volume of a few megabytes, and returns the
// handle of the volume.
func (s fixture) narrow(t *testing.T, set *appsv1.StatefulSet, ordinal int32) (handle string) {
	t.Helper()
	b, template := clusters(t), set.Spec.VolumeClaimTemplates[1]
	// In this order, since the file system is removed after the pods.
	var undo func(context.Context) error
	t.Cleanup(func() {
		if undo == nil {
			return
		}
		if err := undo(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	s.create(t)
	claim := template.DeepCopy()
	claim.Namespace, claim.Name, claim.Labels = s.source, fmt.Sprintf("%s-%s-%d", template.Name, s.set, ordinal), set.Spec.Selector.MatchLabels
	if err := s.from.Client.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Minute, "claim "+claim.Name+" has a volume", func(ctx context.Context) error {
		if err := s.from.Client.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err
		}
		var volume corev1.PersistentVolume
		if err := s.from.Client.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, &volume); err != nil {
			return err
		}
		handle = volume.Spec.CSI.VolumeHandle
		return nil
	})
	var err error
	if undo, err = b.Narrow(t.Context(), handle); err != nil {
		t.Fatal(err)
	}
	return handle
}

// full fills the volume of an ordinal for the time of an outage.
func (s fixture) full(p place, ordinal int32, handle string, lost *int) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		b, pod := clusters(t), fmt.Sprintf("%s-%d", s.set, ordinal)
		*lost++
		if err := b.FillVolume(t.Context(), handle, true); err != nil {
			t.Error(err)
			return ""
		}
		eventually(t, 5*time.Minute, pod+" is not ready", func(ctx context.Context) error {
			var found corev1.Pod
			if err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: pod}, &found); err != nil {
				return err
			}
			for _, c := range found.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse {
					return nil
				}
			}
			return errors.New("it is ready")
		})
		there := s.moved(t)
		if there == s.replicas {
			t.Errorf("the move was over before %s noticed that its volume was full", pod)
		}
		note := s.withinOneWave(func(t *testing.T) string {
			t.Helper()
			outagePasses(t)
			return fmt.Sprintf("the volume of %s in %s was full for %s, with %d ordinals moved", pod, p.Name, outage, there)
		})(t)
		if err := b.FillVolume(t.Context(), handle, false); err != nil {
			t.Error(err)
		}
		return note
	}
}

// cordoned makes a node unschedulable for the time of the test.
func (p place) cordoned(t *testing.T, node string) {
	t.Helper()
	if err := p.cordon(t.Context(), node, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.cordon(context.WithoutCancel(t.Context()), node, false); err != nil {
			t.Error(err)
		}
	})
}

// One etcd goes to and fro, under its client and with a fault on each way, for $SOAK.
func TestEtcdMovesToAndFroForALongTime(t *testing.T) {
	long, err := time.ParseDuration(os.Getenv("SOAK"))
	if err != nil {
		t.Skip("takes as long as SOAK says, and SOAK is not set: SOAK=30m make e2e")
	}
	b := clusters(t)
	s := fixture{set: "etcd", from: b.East, to: b.West, source: "soak" + suite.suffix, destination: "soak" + suite.suffix, replicas: 5, d: 1}
	s.create(t, append(s.around(true, 2379, 2380), s.etcdSet())...)
	s.available(t, s.places()[0])
	for began, way := time.Now(), 0; time.Since(began) < long; way++ {
		source := s.places()[0]
		faults := [][]fault{nil, {{1, s.crash(0)}}, {{2, s.drain(source, source.Name+"-worker")}}, {{1, cut()}}}[way%4]
		kills := [][]int32{nil, {1, 3}, {2}}[way%3]
		if !t.Run(fmt.Sprintf("way %d", way+1), func(t *testing.T) { s.moveEtcd(t, faults, kills...) }) {
			return
		}
		s = s.back()
		s.budget(t)
	}
}

// powerless takes the power from a node for the time of an outage. It adds the number of the set's
// pods on the node to lost.
func (s fixture) powerless(p place, node string, lost *int) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		pods := s.running(t, p, node)
		*lost += pods
		if err := clusters(t).PowerOff(t.Context(), node); err != nil {
			t.Error(err)
		}
		outagePasses(t)
		if err := clusters(t).PowerOn(t.Context(), p.Cluster, node); err != nil {
			t.Error(err)
		}
		return fmt.Sprintf("%s with %d pods of the set was without power for %s", node, pods, outage)
	}
}

// cut disconnects the clusters for the time of an outage, and calls meanwhile near its end.
func cut(meanwhile ...func()) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		b := clusters(t)
		if err := b.Cut(t.Context()); err != nil {
			t.Error(err)
		}
		outagePasses(t)
		for _, f := range meanwhile {
			f()
		}
		if err := b.Connect(t.Context()); err != nil {
			t.Error(err)
		}
		return fmt.Sprintf("the network between the clusters was cut for %s", outage)
	}
}

// outagePasses waits for the time of an outage.
func outagePasses(t *testing.T) {
	t.Helper()
	select {
	case <-t.Context().Done():
	case <-time.After(outage):
	}
}

// running returns how many pods of the set a node of a place has.
func (s fixture) running(t *testing.T, p place, node string) int {
	t.Helper()
	var pods corev1.PodList
	if err := p.Client.List(t.Context(), &pods, client.InNamespace(p.namespace), client.MatchingLabels{"app": s.set}, client.MatchingFields{"spec.nodeName": node}); err != nil {
		t.Error(err)
	}
	return len(pods.Items)
}

func (p place) taint(ctx context.Context, node, taints string) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":`+taints+`}}`))
	return p.Client.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, patch)
}
