package controller_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// soaking returns how long TestABrokenUpdateIsMended runs, and with how many
// sets. `make soak` raises both.
func soaking(t *testing.T) (time.Duration, int) {
	t.Helper()
	for_, sets := 15*time.Second, 4
	if s := os.Getenv("SOAK"); s != "" {
		var err error
		if for_, err = time.ParseDuration(s); err != nil {
			t.Fatalf("SOAK: %v", err)
		}
		sets = 50
	}
	return for_, sets
}

// 3541-36, 3541-37, 2599-22: templates break at random moments, and are fixed at others. No update is stuck
// after its fix, and no pod counts as available too early.
func TestABrokenUpdateIsMended(t *testing.T) {
	t.Parallel()
	long, sets := soaking(t)
	end := time.Now().Add(long)
	var lock sync.Mutex
	var took, waits []time.Duration
	var counts int
	t.Run("sets", func(t *testing.T) {
		for k := range sets {
			t.Run(fmt.Sprint(k), func(t *testing.T) {
				t.Parallel()
				m := &mended{side: place(t), seed: rand.New(rand.NewPCG(1, uint64(k)))}
				m.start(t)
				var own []time.Duration
				for own == nil || time.Now().Before(end) { // each set runs one round at least, however late it starts
					own = append(own, m.round(t))
				}
				select {
				case <-time.After(stale): // the last counts are compared a moment later
				case <-t.Context().Done():
				}
				lock.Lock()
				defer lock.Unlock()
				took, waits, counts = append(took, own...), append(waits, m.clock.waits...), counts+m.clock.check(t)
			})
		}
	})
	if len(took) == 0 || len(waits) == 0 || counts == 0 {
		t.Fatalf("%d updates were mended, %d names were free and %d counts were checked", len(took), len(waits), counts)
	}
	t.Logf("%d updates of %d sets were broken and mended, none was stuck: %s from the mending to the end; %s from a free name to its new pod; %d counts of available pods were checked",
		len(took), sets, spread(took), spread(waits), counts)
}

// spread returns the distribution of durations.
func spread(all []time.Duration) string {
	slices.Sort(all)
	p := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))].Round(time.Millisecond) }
	return fmt.Sprintf("half within %s, 95 %% within %s, 99 %% within %s, the longest %s", p(0.5), p(0.95), p(0.99), p(1))
}

// mended is a slice whose template is broken and fixed.
type mended struct {
	*side
	seed  *rand.Rand
	n     int32
	turn  int
	clock *clock
}

func (m *mended) start(t *testing.T) {
	t.Helper()
	m.n = 2 + m.seed.Int32N(4)
	ready := m.seed.Int32N(2)
	policy := []string{"OrderedReady", "Parallel"}[m.seed.IntN(2)]
	m.clock = watchAvailability(t, m.side, time.Duration(ready)*time.Second)
	spec := fmt.Sprintf("  replicas: %d\n  minReadySeconds: %d\n  podManagementPolicy: %s\n  updateStrategy: {type: EnforcedRollingUpdate, enforcedRollingUpdate: {maxUnavailable: %d}}", m.n, ready, policy, 1+m.seed.IntN(2))
	if err := m.Create(t.Context(), m.written(t, spec)); err != nil {
		t.Fatal(err)
	}
	m.updated(t, m.n)
}

// round breaks the template and fixes it, and returns how long the update took from then on.
func (m *mended) round(t *testing.T) time.Duration {
	t.Helper()
	for range 1 + m.seed.IntN(2) { // the second template is broken too
		m.turn++
		m.template(t, cluster.NeverReady, fmt.Sprintf("\"%d\"", m.turn))
		select {
		case <-time.After(time.Duration(m.seed.IntN(400)) * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	if m.seed.IntN(3) == 0 { // in addition, one of its pods is deleted
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = m.namespace, fmt.Sprintf("web-%d", m.seed.Int32N(m.n))
		if err := m.Delete(t.Context(), pod); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	if err := m.patch(t.Context(), fmt.Sprintf(`{"template":{"metadata":{"annotations":{%q:null,"mended":"%d"}}}}`, cluster.NeverReady, m.turn)); err != nil {
		t.Fatal(err)
	}
	m.updated(t, m.n)
	return time.Since(start)
}

// clock records since when pods have been ready, and compares that with the status of the slice.
type clock struct {
	lock  sync.Mutex
	after time.Duration
	// ready holds, by pod UID, when the pod became ready. gone holds when it was no longer ready.
	ready, gone map[string]time.Time
	// free holds since when pod names have been free, and waits how long they were free.
	free   map[string]time.Time
	waits  []time.Duration
	wrong  []string
	counts int
}

// watchAvailability compares the counts of the status with the pods.
func watchAvailability(t *testing.T, s *side, after time.Duration) *clock {
	t.Helper()
	c := &clock{after: after, ready: map[string]time.Time{}, gone: map[string]time.Time{}, free: map[string]time.Time{}}
	for _, list := range []client.ObjectList{&corev1.PodList{}, &v1alpha1.StatefulSetSliceList{}} {
		w, err := s.Watch(t.Context(), list, client.InNamespace(s.namespace))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		go func() {
			before := int32(0)
			for e := range w.ResultChan() {
				switch o := e.Object.(type) {
				case *corev1.Pod:
					c.saw(o, e.Type == watch.Deleted)
					c.named(o, e.Type)
				case *v1alpha1.StatefulSetSlice:
					if now := o.Status.AvailableReplicas; now > before {
						c.count(now)
					}
					before = o.Status.AvailableReplicas
				}
			}
		}()
	}
	return c
}

// saw records since when a pod is ready, by the pod's own condition, as the controller reads it: times
// of the API have no fractions.
func (c *clock) saw(p *corev1.Pod, deleted bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	id := string(p.UID)
	if isReady(p) && !deleted {
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodReady {
				c.ready[id] = condition.LastTransitionTime.Time
			}
		}
		return
	}
	if _, was := c.ready[id]; was && c.gone[id].IsZero() {
		c.gone[id] = time.Now()
	}
}

// named records how long the name of a pod was free (961-49).
func (c *clock) named(p *corev1.Pod, what watch.EventType) {
	c.lock.Lock()
	defer c.lock.Unlock()
	since, was := c.free[p.Name]
	switch {
	case what == watch.Deleted:
		c.free[p.Name] = time.Now()
	case what == watch.Added && was:
		c.waits = append(c.waits, time.Since(since))
		delete(c.free, p.Name)
	}
}

// stale is how far the controller may be behind the watch of the test.
const stale = 2 * time.Second

// count checks a status that counts more pods as available than the one before: so many pods must
// have been ready for long enough, now or a moment ago. It first waits for events that the
// watches have not delivered yet.
func (c *clock) count(said int32) {
	now := time.Now()
	time.AfterFunc(stale/2, func() {
		c.lock.Lock()
		defer c.lock.Unlock()
		c.counts++
		var so []string
		for id, since := range c.ready {
			if left := c.gone[id]; !left.IsZero() && left.Before(now.Add(-stale)) {
				continue
			}
			if since.Add(c.after).After(now) {
				continue
			}
			so = append(so, id)
		}
		if int32(len(so)) < said {
			c.wrong = append(c.wrong, fmt.Sprintf("%d pods counted as available, %d were for %s: %v", said, len(so), c.after, so))
		}
	})
}

// check returns how many counts were compared.
func (c *clock) check(t *testing.T) int {
	t.Helper()
	c.lock.Lock()
	defer c.lock.Unlock()
	if len(c.wrong) > 0 {
		t.Errorf("2599-22: %s", strings.Join(c.wrong, "\n"))
	}
	return c.counts
}
