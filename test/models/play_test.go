package models_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/simulation"
)

const (
	// seeds is in how many orders the models act. All end alike.
	seeds = 20
	// patience is how long the real one may take. It is for broken machines.
	patience = 3 * time.Minute
	// worker is a node whose kubelet the script plays.
	worker = "worker"
)

// stage is where a script is played.
type stage struct {
	client.Client
	t         *testing.T
	namespace string
	on        components
	seen      []moment // what there was, by step
}

type moment struct {
	step string
	is   []string
}

// components are the real ones, or the models.
type components interface {
	// breaks lets a pod be not ready, or ready again.
	breaks(pod *corev1.Pod, is bool)
	evict(pod *corev1.Pod, precondition *types.UID) error
	// report writes the status of an object as the component does that has it to.
	report(o client.Object)
	// rest lets all controllers act. n is the number of this rest.
	rest(s *stage, step string)
}

// play plays a script on the models, in several orders, and then on the real control plane.
func play(t *testing.T, script func(*stage)) {
	t.Helper()
	t.Parallel()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	var want []moment
	for seed := range uint64(seeds) {
		m := simulation.NewModels(seed, "node-a", "node-b", name+"-"+worker)
		s := &stage{Client: m, t: t, namespace: name, on: models{m}}
		script(s)
		if want == nil {
			want = s.seen
		}
		if diff := cmp.Diff(want, s.seen, cmp.AllowUnexported(moment{})); diff != "" {
			t.Fatalf("the models end differently in another order (seed %d): -first +now\n%s", seed, diff)
		}
	}
	s := &stage{Client: here, t: t, namespace: name}
	s.on = &realOnes{want: want}
	s.must(here.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	script(s)
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// then lets everything come to rest, and notes what there is.
func (s *stage) then(step string) {
	s.t.Helper()
	s.on.rest(s, step)
}

// answers notes the answer of an API server: one word.
func (s *stage) answers(what string, err error) {
	word := "granted"
	if err != nil {
		word = string(apierrors.ReasonForError(err))
	}
	s.then(what + ": " + word)
}

// name makes names of objects without a namespace.
func (s *stage) name(of string) string { return s.namespace + "-" + of }

// get reads an object of the namespace, or without one.
func get[T client.Object](s *stage, o T, name string) T {
	s.t.Helper()
	key := client.ObjectKey{Namespace: s.namespace, Name: name}
	switch any(o).(type) {
	case *corev1.PersistentVolume, *corev1.Node:
		key = client.ObjectKey{Name: s.name(name)}
	}
	s.must(s.Get(s.t.Context(), key, o))
	return o
}

// edit changes an object with a merge patch.
func (s *stage) edit(o client.Object, patch string) {
	s.t.Helper()
	s.must(s.Patch(s.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func (s *stage) add(o client.Object) {
	s.t.Helper()
	s.must(s.Create(s.t.Context(), o))
}

func (s *stage) remove(o client.Object, opts ...client.DeleteOption) {
	s.t.Helper()
	s.must(s.Delete(s.t.Context(), o, opts...))
}

// look describes what there is.
func (s *stage) look(ctx context.Context) ([]string, error) {
	var claims corev1.PersistentVolumeClaimList
	var pods corev1.PodList
	var budgets policyv1.PodDisruptionBudgetList
	var volumes corev1.PersistentVolumeList
	var attachments storagev1.VolumeAttachmentList
	for _, list := range []client.ObjectList{&claims, &pods, &budgets} {
		if err := s.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			return nil, err
		}
	}
	for _, list := range []client.ObjectList{&volumes, &attachments} {
		if err := s.List(ctx, list); err != nil {
			return nil, err
		}
	}
	out := []string{}
	uids := map[string]types.UID{}
	for _, c := range claims.Items {
		uids[c.Name] = c.UID
		out = append(out, described(&c, "claim %s: %s, volume %q", c.Name, c.Status.Phase, c.Spec.VolumeName))
	}
	for _, v := range volumes.Items {
		if strings.HasPrefix(v.Name, s.namespace+"-") {
			out = append(out, described(&v, "volume %s: %s, for %s", v.Name, v.Status.Phase, reservedFor(&v, uids)))
		}
	}
	for _, a := range attachments.Items {
		if name := *a.Spec.Source.PersistentVolumeName; strings.HasPrefix(name, s.namespace+"-") {
			out = append(out, described(&a, "volume %s is attached", name))
		}
	}
	for _, p := range pods.Items {
		out = append(out, described(&p, "pod %s: placed %t, ready %t", p.Name, p.Spec.NodeName != "", isReady(&p)))
	}
	for _, b := range budgets.Items {
		st := b.Status
		out = append(out, described(&b, "budget %s: allowed %d, healthy %d of %d, expected %d, disrupted %d, observed %t", b.Name, st.DisruptionsAllowed, st.CurrentHealthy, st.DesiredHealthy, st.ExpectedPods, len(st.DisruptedPods), st.ObservedGeneration == b.Generation))
	}
	slices.Sort(out)
	return out, nil
}

// described adds what any object may be.
func described(o client.Object, format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if o.GetDeletionTimestamp() != nil {
		text += ", going"
	}
	if n := len(o.GetOwnerReferences()); n > 0 {
		text += fmt.Sprintf(", owners %d", n)
	}
	return text
}

// reservedFor says which claim a volume is for. uids are those of the claims that there are.
func reservedFor(v *corev1.PersistentVolume, uids map[string]types.UID) string {
	switch ref := v.Spec.ClaimRef; {
	case ref == nil:
		return "nobody"
	case ref.UID == "":
		return ref.Name + " of any time"
	case ref.UID != uids[ref.Name]:
		return ref.Name + " of another time"
	default:
		return ref.Name
	}
}

func isReady(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// models are those of the simulation.
type models struct{ *simulation.Models }

func (m models) breaks(pod *corev1.Pod, is bool) {
	if is {
		m.Break(pod)
		return
	}
	m.Mend(pod)
}

func (m models) evict(pod *corev1.Pod, uid *types.UID) error {
	if uid != nil && *uid != pod.UID {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, pod.Name, errors.New("the UID in the precondition is another"))
	}
	return m.Evict(pod)
}
func (m models) report(o client.Object) { m.Report(o) }

func (m models) rest(s *stage, step string) {
	m.Rest()
	is, err := s.look(s.t.Context())
	s.must(err)
	s.seen = append(s.seen, moment{step, is})
}

// realOnes are those of the control plane.
type realOnes struct {
	want []moment
	at   int
}

func (*realOnes) breaks(pod *corev1.Pod, is bool) {
	value := "null"
	if is {
		value = `"true"`
	}
	must(here.Patch(context.Background(), pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+cluster.NeverReady+`":`+value+`}}}`))))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (*realOnes) evict(pod *corev1.Pod, uid *types.UID) error {
	e := &policyv1.Eviction{}
	if uid != nil {
		e.DeleteOptions = &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: uid}}
	}
	return here.SubResource("eviction").Create(context.Background(), pod, e)
}

func (*realOnes) report(o client.Object) {
	must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now := o.DeepCopyObject().(client.Object)
		if err := here.Get(context.Background(), client.ObjectKeyFromObject(o), now); err != nil {
			return err
		}
		switch now := now.(type) {
		case *corev1.Node:
			now.Status.Conditions = o.(*corev1.Node).Status.Conditions
		case *corev1.Pod:
			now.Status = o.(*corev1.Pod).Status
		}
		return here.Status().Update(context.Background(), now)
	}))
}

// rest waits until there is what the models have left, before and after the controllers have done what they were given
// later.
func (r *realOnes) rest(s *stage, step string) {
	s.t.Helper()
	if r.at == len(r.want) || r.want[r.at].step != step {
		s.t.Fatalf("%s: the models do not come here: %v", step, r.want[min(r.at, len(r.want)-1)].step)
	}
	want := r.want[r.at].is
	r.at++
	s.seen = append(s.seen, moment{step, want})
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	news := s.listen(ctx)
	for late := false; ; {
		is, err := s.look(ctx)
		diff := cmp.Diff(want, is)
		switch {
		case ctx.Err() != nil:
			s.t.Fatalf("%s: not within %s: -models +real\n%s%v", step, patience, r.last(s, want), err)
		case err != nil || diff != "":
			late = false
			select {
			case <-news:
			case <-ctx.Done():
			}
		case late:
			return
		default:
			s.must(s.errand(ctx))
			late = true
		}
	}
}

func (*realOnes) last(s *stage, want []string) string {
	is, err := s.look(context.WithoutCancel(s.t.Context()))
	return cmp.Diff(want, is) + fmt.Sprint(err)
}

// listen tells of every change.
func (s *stage) listen(ctx context.Context) <-chan struct{} {
	s.t.Helper()
	news := make(chan struct{}, 1)
	for _, list := range []client.ObjectList{&corev1.PersistentVolumeClaimList{}, &corev1.PodList{}, &policyv1.PodDisruptionBudgetList{}, &corev1.PersistentVolumeList{}, &storagev1.VolumeAttachmentList{}} {
		w, err := here.Watch(ctx, list)
		s.must(err)
		go func() {
			for range w.ResultChan() {
				select {
				case news <- struct{}{}:
				default:
				}
			}
		}()
	}
	return news
}
