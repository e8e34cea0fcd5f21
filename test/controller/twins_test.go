package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/cluster"
)

// side is a set in one of the two clusters, and what was seen of its pods.
type side struct {
	client.WithWatch
	name, namespace string

	lock  sync.Mutex
	trace []string
	news  chan struct{}
}

func newSide(t *testing.T, c *cluster.Cluster, namespace string) *side {
	t.Helper()
	return &side{WithWatch: connect(t, c), name: c.Name, namespace: namespace, news: make(chan struct{}, 1)}
}

// twins are the same set under both controllers.
type twins struct {
	t     *testing.T
	sides [2]*side
	minor int
	// met are the meant differences that were met, and parted says that the sides are not to be compared any more.
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
		s.listen(t, &corev1.PodList{}, &appsv1.StatefulSetList{}, &corev1.PersistentVolumeClaimList{}, &appsv1.ControllerRevisionList{})
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

// listen writes down which pods come and go, in their order.
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
				if pod, ok := e.Object.(*corev1.Pod); ok {
					s.heard(e.Type, pod, going)
				}
				select {
				case s.news <- struct{}{}:
				default:
				}
			}
		}()
	}
}

func (s *side) heard(what watch.EventType, pod *corev1.Pod, going map[string]bool) {
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

// taken gives what was written down and forgets it.
func (s *side) taken() []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	out := s.trace
	s.trace = nil
	return out
}

const (
	// quiet is how long nothing may change for a side to count as being at rest, and patience
	// how long it may take to come to rest.
	quiet    = 300 * time.Millisecond
	patience = 3 * time.Minute // the controller-manager learns of a new kind within two
	// soonAvailable is for how many minReadySeconds it is waited, and neverAvailable for how many it is not.
	soonAvailable, neverAvailable = 1, 3600
)

// rest waits until nothing happens on either side any more, and what the statuses say is
// true.
func (tw *twins) rest() {
	tw.t.Helper()
	end := time.NewTimer(patience)
	defer end.Stop()
	for {
		select {
		case <-tw.sides[0].news:
		case <-tw.sides[1].news:
		case <-end.C:
			tw.t.Fatalf("not at rest after %s: %s; %s", patience, tw.sides[0].unrest(tw.t.Context()), tw.sides[1].unrest(tw.t.Context()))
		case <-time.After(quiet):
			if tw.sides[0].unrest(tw.t.Context())+tw.sides[1].unrest(tw.t.Context()) == "" {
				return
			}
		}
	}
}

// unrest says why a side is not at rest, or "".
func (s *side) unrest(ctx context.Context) string {
	set, pods, err := s.read(ctx)
	if err != nil {
		return s.name + ": " + err.Error()
	}
	ready := int32(0)
	for _, p := range pods {
		if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodPending && !stranded(&p) {
			return fmt.Sprintf("%s: pod %s is %s", s.name, p.Name, p.Status.Phase)
		}
		if isReady(&p) {
			ready++
		}
	}
	if name := missing(set, pods); name != "" {
		return fmt.Sprintf("%s: pod %s is missing", s.name, name)
	}
	if why := s.collecting(ctx, pods); why != "" {
		return why
	}
	if why := s.truncating(ctx, set, pods); why != "" {
		return why
	}
	if name := leaving(set, pods); name != "" {
		return fmt.Sprintf("%s: pod %s is to go", s.name, name)
	}
	if why := s.updating(set, pods); why != "" {
		return why
	}
	st := set.Status
	if st.ObservedGeneration != set.Generation || st.Replicas != int32(len(pods)) || st.ReadyReplicas != ready {
		return fmt.Sprintf("%s: generation %d, %d pods, %d ready, status %+v", s.name, set.Generation, len(pods), ready, st)
	}
	if set.Spec.MinReadySeconds <= soonAvailable && st.AvailableReplicas != ready {
		return fmt.Sprintf("%s: %d pods are ready, and %d available", s.name, ready, st.AvailableReplicas)
	}
	return ""
}

// stranded reports whether no node takes a pod.
func stranded(p *corev1.Pod) bool {
	return len(p.Spec.NodeSelector) > 0 && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	})
}

// missing names a pod that a controller is about to make, or to make anew: after a failure it may rest for some time.
func missing(set *appsv1.StatefulSet, pods []corev1.Pod) string {
	if set.Annotations[crowded] != "" {
		return ""
	}
	start := int32(0)
	if set.Spec.Ordinals != nil {
		start = set.Spec.Ordinals.Start
	}
	for o := start; o < start+*set.Spec.Replicas; o++ {
		name := fmt.Sprintf("web-%d", o)
		k := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == name })
		switch {
		case k < 0:
			return name
		case pods[k].Status.Phase == corev1.PodFailed || pods[k].Status.Phase == corev1.PodSucceeded:
			return name
		case set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement && (!isReady(&pods[k]) || set.Spec.MinReadySeconds == neverAvailable):
			return ""
		}
	}
	return ""
}

// leaving names a pod outside the range that nothing keeps from going.
func leaving(set *appsv1.StatefulSet, pods []corev1.Pod) string {
	start := int32(0)
	if o := set.Spec.Ordinals; o != nil {
		start = o.Start
	}
	held := set.Annotations[crowded] != "" || set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement &&
		(set.Spec.MinReadySeconds == neverAvailable || slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !isReady(&p) }))
	for _, p := range pods {
		ordinal, err := strconv.ParseInt(strings.TrimPrefix(p.Name, "web-"), 10, 32)
		if out := int32(ordinal) < start || int32(ordinal) >= start+*set.Spec.Replicas; err == nil && out && !held {
			return p.Name
		}
	}
	return ""
}

// updating names a pod that is to be replaced while nothing keeps it from being: a controller that is
// slow to go on is not at rest.
func (s *side) updating(set *appsv1.StatefulSet, pods []corev1.Pod) string {
	if set.Spec.MinReadySeconds == neverAvailable || set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType || slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !isReady(&p) }) {
		return ""
	}
	from := 0
	if o := set.Spec.Ordinals; o != nil {
		from = int(o.Start)
	}
	if ru := set.Spec.UpdateStrategy.RollingUpdate; ru != nil && ru.Partition != nil {
		from += int(*ru.Partition)
	}
	for _, p := range pods {
		ordinal, err := strconv.Atoi(strings.TrimPrefix(p.Name, "web-"))
		if err == nil && ordinal >= from && p.Labels[appsv1.StatefulSetRevisionLabel] != set.Status.UpdateRevision {
			return fmt.Sprintf("%s: pod %s is to be replaced", s.name, p.Name)
		}
	}
	return ""
}

// collecting names a claim that the garbage collector is about to delete with its pod.
func (s *side) collecting(ctx context.Context, pods []corev1.Pod) string {
	var claims corev1.PersistentVolumeClaimList
	if err := s.List(ctx, &claims, client.InNamespace(s.namespace)); err != nil {
		return s.name + ": " + err.Error()
	}
	for _, c := range claims.Items {
		owned := slices.ContainsFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool {
			return r.Kind == "Pod" && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == r.UID })
		})
		pod := c.Name[strings.Index(c.Name, "-")+1:]
		used := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == pod }) // then it stays for as long
		if (owned || c.DeletionTimestamp != nil) && !used && !slices.Contains(c.Finalizers, kept) {
			return fmt.Sprintf("%s: claim %s is going", s.name, c.Name)
		}
	}
	return ""
}

// truncating says that the history is longer than it is to be (RV-7).
func (s *side) truncating(ctx context.Context, set *appsv1.StatefulSet, pods []corev1.Pod) string {
	var all appsv1.ControllerRevisionList
	if err := s.List(ctx, &all, client.InNamespace(s.namespace)); err != nil {
		return s.name + ": " + err.Error()
	}
	live := map[string]bool{set.Status.CurrentRevision: true, set.Status.UpdateRevision: true}
	for _, p := range pods {
		live[p.Labels[appsv1.StatefulSetRevisionLabel]] = true
	}
	old := slices.DeleteFunc(all.Items, func(r appsv1.ControllerRevision) bool { return live[r.Name] })
	if limit := int(*set.Spec.RevisionHistoryLimit); len(old) > limit {
		return fmt.Sprintf("%s: %d old revisions, expected %d", s.name, len(old), limit)
	}
	return ""
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
