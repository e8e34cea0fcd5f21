package controller_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
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
		if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodPending {
			return fmt.Sprintf("%s: pod %s is %s", s.name, p.Name, p.Status.Phase)
		}
		if isReady(&p) {
			ready++
		}
	}
	if why := s.collecting(ctx, pods); why != "" {
		return why
	}
	if why := s.truncating(ctx, set, pods); why != "" {
		return why
	}
	if why := s.updating(set, pods); why != "" {
		return why
	}
	st := set.Status
	if st.ObservedGeneration != set.Generation || st.Replicas != int32(len(pods)) || st.ReadyReplicas != ready {
		return fmt.Sprintf("%s: generation %d, %d pods, %d ready, status %+v", s.name, set.Generation, len(pods), ready, st)
	}
	return ""
}

// updating names a pod that is to be replaced while nothing keeps it from being: a controller that is
// slow to go on is not at rest.
func (s *side) updating(set *appsv1.StatefulSet, pods []corev1.Pod) string {
	if set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType || slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !isReady(&p) }) {
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
		if (owned || c.DeletionTimestamp != nil) && !used {
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
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
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

// state is everything of a side that must be as on the other one, a line each.
func (s *side) state(ctx context.Context) ([]string, error) {
	set, pods, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	var claims corev1.PersistentVolumeClaimList
	if err := s.List(ctx, &claims, client.InNamespace(s.namespace)); err != nil {
		return nil, err
	}
	var revisions appsv1.ControllerRevisionList
	if err := s.List(ctx, &revisions, client.InNamespace(s.namespace)); err != nil {
		return nil, err
	}
	st := set.Status
	// RV-9: the built-in one of this version never moves the current revision under OnDelete,
	// and keeps it for that, whatever the limit.
	onDelete := set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	current, live := fmt.Sprintf("current %d of %s", st.CurrentReplicas, st.CurrentRevision), map[string]bool{st.UpdateRevision: true}
	if onDelete {
		current = ""
	}
	out := []string{fmt.Sprintf("status: replicas %d, ready %d, available %d, updated %d of %s, %s, collisions %v", st.Replicas, st.ReadyReplicas, st.AvailableReplicas, st.UpdatedReplicas, st.UpdateRevision, current, *st.CollisionCount)}
	there := map[string]bool{}
	for _, p := range pods {
		there[p.Name], live[p.Labels[appsv1.StatefulSetRevisionLabel]] = true, true
		delete(p.Labels, corev1.LabelTopologyZone) // of the node
		volumes := ""
		for _, v := range p.Spec.Volumes {
			name, _, token := strings.Cut(v.Name, "kube-api-access-") // whose end is random
			if volumes += name; token {
				volumes += "token"
			}
			if v.PersistentVolumeClaim != nil {
				volumes += "=" + v.PersistentVolumeClaim.ClaimName
			}
			volumes += " "
		}
		out = append(out, fmt.Sprintf("pod %s: generated from %s, labels %v, annotations %v, owners %s, ready %t, host %s.%s, volumes %s", p.Name, p.GenerateName, p.Labels, p.Annotations, owners(p.OwnerReferences), isReady(&p), p.Spec.Hostname, p.Spec.Subdomain, volumes))
	}
	for _, c := range claims.Items {
		refs := owners(c.OwnerReferences)
		if pod := c.Name[strings.Index(c.Name, "-")+1:]; !there[pod] {
			refs = "" // CP-12: the built-in one leaves its reference on claims without pods
		}
		finalizers := slices.DeleteFunc(c.Finalizers, func(f string) bool { return f == "kubernetes.io/pvc-protection" }) // comes and goes with the pod
		out = append(out, fmt.Sprintf("claim %s: labels %v, annotations of the template %s, finalizers %v, asks for %v, owners %s", c.Name, c.Labels, c.Annotations["kept"], finalizers, c.Spec.Resources.Requests, refs))
	}
	for _, r := range revisions.Items {
		if onDelete && !live[r.Name] {
			continue
		}
		out = append(out, fmt.Sprintf("revision %s: number %d, labels %v, owners %s, %s", r.Name, r.Revision, r.Labels, owners(r.OwnerReferences), r.Data.Raw))
	}
	slices.Sort(out)
	return out, nil
}

func owners(refs []metav1.OwnerReference) string {
	var out []string
	for _, r := range refs {
		out = append(out, fmt.Sprintf("%s/%s/%s:%t:%t", r.APIVersion, r.Kind, r.Name, r.Controller != nil && *r.Controller, r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion))
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// told are the forms of the events on the set that say what was done. Which pods they name
// is left out: what is told of too often is dropped or summed up by the client library. So are
// updates: a claim that is made with its owner needs none (CP-6).
func (s *side) told(ctx context.Context) ([]string, error) {
	var events corev1.EventList
	if err := s.List(ctx, &events, client.InNamespace(s.namespace)); err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, e := range events.Items {
		if e.InvolvedObject.Kind == "StatefulSet" && strings.HasPrefix(e.Reason, "Successful") && e.Reason != "SuccessfulUpdate" {
			text := strings.TrimPrefix(e.Message, "(combined from similar events): ")
			out[fmt.Sprintf("%s %s %s %s", e.Source.Component, e.Type, e.Reason, regexp.MustCompile(`web-\d+`).ReplaceAllString(text, "web-N"))] = true
		}
	}
	return slices.Sorted(maps.Keys(out)), nil
}
