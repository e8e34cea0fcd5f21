package controller_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// side is a set in one of the two clusters, and the trace of its pods.
type side struct {
	client.WithWatch
	name, namespace string

	lock  sync.Mutex
	trace []string
	told  told
	news  chan struct{}
}

func newSide(t *testing.T, c *cluster.Cluster, namespace string) *side {
	t.Helper()
	return &side{WithWatch: connect(t, c), name: c.Name, namespace: namespace, told: told{facts{}, map[string]int{}}, news: make(chan struct{}, 1)}
}

// twins are the same set under both controllers.
type twins struct {
	t     *testing.T
	sides [2]*side
	minor int
	// met holds the intended differences that were met. parted means that the sides
	// must not be compared any more.
	met    *sync.Map
	parted bool
}

func newTwins(t *testing.T, namespace string) *twins {
	t.Helper()
	tw := &twins{t: t}
	for k, c := range []*cluster.Cluster{bed.East, bed.West} {
		s := newSide(t, c, namespace)
		tw.sides[k] = s
		if err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			t.Fatal(err)
		}
		s.listen(t, &corev1.PodList{}, &appsv1.StatefulSetList{}, &corev1.PersistentVolumeClaimList{}, &appsv1.ControllerRevisionList{}, &corev1.EventList{})
	}
	return tw
}

// both does the same on both sides.
func (tw *twins) both(do func(*side) error) {
	tw.t.Helper()
	for _, s := range tw.sides {
		if err := do(s); err != nil {
			tw.t.Fatalf("%s: %v", s.name, err)
		}
	}
}

// listen records the creations and deletions of pods, in their order.
func (s *side) listen(t *testing.T, lists ...client.ObjectList) {
	t.Helper()
	for _, list := range lists {
		w, err := s.Watch(t.Context(), list, client.InNamespace(s.namespace))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		go func() {
			going := map[string]bool{}
			for e := range w.ResultChan() {
				switch o := e.Object.(type) {
				case *corev1.Pod:
					s.observed(e.Type, o, going)
				case *corev1.Event:
					s.lock.Lock()
					s.told.hear(o)
					s.lock.Unlock()
				}
				select {
				case s.news <- struct{}{}:
				default:
				}
			}
		}()
	}
}

func (s *side) observed(what watch.EventType, pod *corev1.Pod, going map[string]bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	ordinal := strings.TrimPrefix(pod.Name, "web-")
	switch {
	case what == watch.Added:
		s.trace = append(s.trace, "+"+ordinal+"@"+pod.Labels[appsv1.StatefulSetRevisionLabel])
	case what == watch.Modified && pod.DeletionTimestamp != nil && !going[string(pod.UID)]:
		going[string(pod.UID)] = true
		s.trace = append(s.trace, "-"+ordinal)
	}
}

// taken returns the trace and clears it.
func (s *side) taken() []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	out := s.trace
	s.trace = nil
	return out
}

func isReady(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (s *side) read(ctx context.Context) (*appsv1.StatefulSet, []corev1.Pod, error) {
	var set appsv1.StatefulSet
	if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "web"}, &set); err != nil {
		return nil, nil, err
	}
	var pods corev1.PodList
	err := s.List(ctx, &pods, client.InNamespace(s.namespace))
	return &set, pods.Items, err
}
