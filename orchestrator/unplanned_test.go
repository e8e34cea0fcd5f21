package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// replicas are several processes with one clock, which renew their heartbeats until they are dead.
type replicas struct {
	all  []*Orchestrator
	dead map[int]time.Time
	next []time.Time
	now  time.Time
	// writes counts what is written to the status, requests all requests without a cache, and shown has every value
	// of the condition Stalled.
	writes, requests int
	shown            []bool
}

// unplanned returns replicas in whose namespace is an object of which no plan can be made.
func unplanned(t *testing.T, n int) *replicas {
	t.Helper()
	first, _ := undeclared(t, func(d *plans.Declaration) { d.ApprovedHash = "" })
	r := &replicas{now: first.Now(), dead: map[int]time.Time{}}
	base := first.Live
	live := interceptor.NewClient(base.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // it is one
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			r.requests++
			return c.Get(ctx, k, o, opts...)
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			r.requests++
			r.writes++
			for i := range r.next {
				r.next[i] = r.now // the watch wakes all of them
			}
			err := c.SubResource(sub).Apply(ctx, o, opts...)
			d, _ := records.ReadDeclared(ctx, base, first.Namespace, "web")
			r.shown = append(r.shown, meta.IsStatusConditionTrue(d.Status.Conditions, "Stalled"))
			return err
		},
	})
	cached := interceptor.NewClient(base.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // it is one
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if leases, ok := list.(*coordinationv1.LeaseList); ok {
				leases.Items = r.leases()
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
	for i := range n {
		s := first.Setup
		s.Live, s.Cached, s.Holder, s.Now = live, cached, holderOf(i), func() time.Time { return r.now }
		r.all = append(r.all, New(s))
		r.next = append(r.next, r.now)
	}
	return r
}

func holderOf(i int) string { return fmt.Sprintf("orchestrator-%d", i) }

// leases returns the heartbeats of the replicas.
func (r *replicas) leases() (out []coordinationv1.Lease) {
	for i := range r.all {
		renewed, holder := r.now, holderOf(i)
		if at, dead := r.dead[i]; dead {
			renewed = at
		}
		out = append(out, coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: holder, ResourceVersion: renewed.String()}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}})
	}
	return out
}

// pass lets time pass.
func (r *replicas) pass(t *testing.T, d time.Duration) {
	t.Helper()
	for end := r.now.Add(d); r.now.Before(end); r.now = r.now.Add(5 * time.Second) {
		for i, h := range r.all {
			if _, dead := r.dead[i]; dead {
				continue
			}
			for again := true; again && !r.next[i].IsZero() && !r.now.Before(r.next[i]); {
				r.look(t, i)
				h.all.Wait()
				if again = len(h.news) > 0; again {
					<-h.news
					r.next[i] = r.now
				}
			}
		}
	}
}

func (r *replicas) look(t *testing.T, i int) {
	t.Helper()
	r.next[i] = time.Time{}
	q, err := r.all[i].Reconcile(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	if q.RequeueAfter > 0 && (r.next[i].IsZero() || r.next[i].After(r.now.Add(q.RequeueAfter))) {
		r.next[i] = r.now.Add(q.RequeueAfter)
	}
}

// tries counts how often each replica has tried to make the plan.
func (r *replicas) tries() (out []int) {
	for _, h := range r.all {
		n := 0
		h.with("web", func(s *planState) {
			if s.draft != nil {
				n = s.draft.tries
			}
		})
		out = append(out, n)
	}
	return out
}

// An object of which no plan can be made is told once, and costs next to nothing, however many replicas there are.
func TestWhatCannotBePlannedIsToldOnce(t *testing.T) {
	r := unplanned(t, 3)
	r.pass(t, 2*time.Hour)
	t.Logf("in two hours: %d writes of the status, %d requests, tries %v", r.writes, r.requests, r.tries())
	if r.writes > 2 || r.requests > 10 {
		t.Errorf("%d writes of the status, %d requests", r.writes, r.requests)
	}
	if last := slices.Index(r.shown, true); last < 0 || slices.Contains(r.shown[last:], false) {
		t.Errorf("the condition Stalled comes and goes: %v", r.shown)
	}
	busy := slices.DeleteFunc(r.tries(), func(n int) bool { return n == 0 })
	if len(busy) != 1 || busy[0] < 7 || busy[0] > 10 { // after 1, 2, 4, 8, 16, 30, 30, 30 minutes
		t.Errorf("the replicas have tried %v times, expected one of them, and ever more seldom", r.tries())
	}
}

// When the process that makes the plan dies, another one makes it, and the object tells the same meanwhile.
func TestAnotherProcessMakesThePlanOfADeadOne(t *testing.T) {
	r := unplanned(t, 3)
	r.pass(t, time.Hour)
	first := slices.IndexFunc(r.tries(), func(n int) bool { return n > 0 })
	writes := r.writes
	r.dead[first] = r.now
	r.pass(t, time.Minute)
	second := slices.IndexFunc(r.tries(), func(n int) bool { return n > 0 && n < 3 })
	if second < 0 || second == first || r.writes != writes {
		t.Errorf("%d is dead, the tries are %v, and %d writes of the status", first, r.tries(), r.writes-writes)
	}
}

// A change of a Secret with clusters, or of the object, is worth a try at once.
func TestWhatHasChangedIsPlannedAtOnce(t *testing.T) {
	r := unplanned(t, 1)
	h := r.all[0]
	r.pass(t, time.Hour)
	tries := r.tries()[0]
	for _, c := range []struct {
		name   string
		labels map[string]string
		want   int
	}{{"of an application", nil, tries}, {"with clusters", map[string]string{"stsmigrate.dev/cluster": "east"}, 1}} {
		_ = h.Learn(secret(c.labels))
		for len(h.news) > 0 {
			<-h.news
			r.next[0] = r.now
		}
		r.pass(t, 5*time.Second)
		if n := r.tries()[0]; n != c.want {
			t.Errorf("a Secret %s: %d tries, expected %d", c.name, n, c.want)
		}
	}
	r.pass(t, time.Hour)
	o := records.NewDeclared(h.Namespace, "web")
	if err := h.Cached.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"tried":"again"}}}`))); err != nil {
		t.Fatal(err)
	}
	r.next[0] = r.now
	if r.pass(t, 5*time.Second); r.tries()[0] != 1 {
		t.Errorf("an object that was annotated: %d tries", r.tries()[0])
	}
}

// At most four plans are made at once. An object that is gone when its turn comes gets none.
func TestFewPlansAreMadeAtOnce(t *testing.T) {
	r := unplanned(t, 1)
	h := r.all[0]
	for range cap(h.drafts) {
		h.drafts <- struct{}{}
	}
	r.look(t, 0)
	var busy bool
	h.with("web", func(s *planState) { busy = s.draft.busy })
	if !busy || len(h.news) > 0 {
		t.Errorf("the draft waits: %t, and %d are woken", busy, len(h.news))
	}
	if err := h.Cached.Delete(t.Context(), records.NewDeclared(h.Namespace, "web")); err != nil {
		t.Fatal(err)
	}
	<-h.drafts
	h.all.Wait()
	h.with("web", func(s *planState) {
		if s.draft.busy || s.draft.err != nil {
			t.Errorf("%+v", s.draft)
		}
	})
}

func secret(labels map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: "east", Labels: labels}}
}
