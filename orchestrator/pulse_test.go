package orchestrator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
)

// world is what happens to a process at a time.
type world struct {
	// down reports that the API server does not answer. Its watches show nothing then.
	down bool
	// refused reports that only this process cannot renew its heartbeat, stuck that its tries do not end.
	refused, stuck bool
	// blind reports that the watches of this process show nothing, hangs that a pass does not end.
	blind, hangs bool
	// alone reports that there is no other process.
	alone bool
	// suspended reports that the process does not run, and is not asked.
	suspended bool
}

// show has the watches show what is written now.
func (w world) show(shown map[string]string, written string) {
	if w.down || w.blind || w.suspended {
		return
	}
	if !w.alone {
		shown["other"] = written
	}
	if !w.refused && !w.stuck {
		shown["me"] = written
	}
}

// beat has the process try to renew its heartbeat.
func (w world) beat(p *pulse) {
	switch {
	case w.stuck:
	case w.down || w.refused:
		p.beat(errors.New("it cannot be written"))
	default:
		p.beat(nil)
	}
}

// lives plays three hours of a process, which is asked every ten seconds, and returns why and when it was sick for half a
// minute, as a kubelet restarts it.
func lives(t *testing.T, of func(minute int) world) (why string, minute int) {
	t.Helper()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now, shown := begin, map[string]string{}
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			leases := list.(*coordinationv1.LeaseList) //nolint:forcetypeassert // nothing else is listed
			for holder, version := range shown {
				leases.Items = append(leases.Items, coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "stsmigrate.orchestrator.p" + holder, ResourceVersion: version}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}})
			}
			return nil
		},
	})
	p := newPulse(Setup{Cached: c, Namespace: "stsmigrate", Holder: "me", Now: func() time.Time { return now }})
	sick := 0
	end := p.pass()
	for ; now.Before(begin.Add(3 * time.Hour)); now = now.Add(10 * time.Second) {
		minute = int(now.Sub(begin) / time.Minute)
		w := of(minute)
		written := now.String()
		w.show(shown, written)
		if w.suspended {
			continue
		}
		w.beat(p)
		if !w.hangs {
			end()
			end = p.pass()
		}
		if err := p.sick(t.Context()); err != nil {
			why, sick = err.Error(), sick+1
		} else {
			sick = 0
		}
		if sick == 3 {
			return why, minute
		}
	}
	return "", 0
}

// Only what a restart repairs is a reason for one.
func TestAProcessIsRestartedOnlyIfThatHelps(t *testing.T) {
	during := func(from, to int, w world) func(int) world {
		return func(minute int) world {
			if minute >= from && minute < to {
				return w
			}
			return world{alone: w.alone}
		}
	}
	for name, c := range map[string]struct {
		of   func(int) world
		want string
	}{
		"all is well":                           {during(0, 0, world{}), ""},
		"one process alone":                     {during(0, 180, world{alone: true}), ""},
		"the API server is down for an hour":    {during(30, 90, world{down: true}), ""},
		"it is down from the start":             {during(0, 90, world{down: true}), ""},
		"it is down for nine minutes, again":    {func(m int) world { return world{down: m%10 > 0} }, ""},
		"its tries end late while it is down":   {func(m int) world { return world{down: m > 20, stuck: m > 20 && m%9 > 0} }, ""},
		"one alone may not renew its heartbeat": {during(30, 180, world{refused: true, alone: true}), ""},
		"it is suspended for an hour": {func(m int) world { // and its watches continue later
			return world{suspended: m >= 30 && m < 90, blind: m >= 90 && m < 92}
		}, ""},
		"a pass takes long while it is down": {func(m int) world {
			return world{down: m >= 30 && m < 90, hangs: m >= 30 && m < 95}
		}, ""},
		"the watch lags for some minutes":           {during(30, 38, world{blind: true}), ""},
		"only its own heartbeat is refused":         {during(30, 180, world{refused: true}), "while other orchestrators renew theirs: it cannot be written"},
		"the renewal hangs":                         {during(30, 180, world{stuck: true}), "no try to renew the heartbeat has ended"},
		"the watches are dead":                      {during(30, 180, world{blind: true}), "the watch has not shown that"},
		"the watches of one that is alone are dead": {during(30, 180, world{blind: true, alone: true}), "the watch has not shown that"},
		"a pass hangs":                              {during(30, 180, world{hangs: true}), "a pass over a plan has not ended"},
	} {
		why, minute := lives(t, c.of)
		if !strings.Contains(why, c.want) || (why == "") != (c.want == "") || why != "" && (minute < 40 || minute > 42) {
			t.Errorf("%s: restarted in minute %d with %q, expected %q", name, minute, why, c.want)
		}
	}
}

// A worker that hangs is noticed.
func TestAPassThatHangsIsNoticed(t *testing.T) {
	h, _ := fixture(t)
	during := -1
	h.Cached = interceptor.NewClient(h.Cached.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // it is one
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			during = len(h.pulse.passes)
			return c.Get(ctx, key, o, opts...)
		},
	})
	if _, err := h.Reconcile(t.Context(), request()); err != nil || during != 1 || len(h.pulse.passes) != 0 {
		t.Errorf("%d passes are known during one, and %d after it, %v", during, len(h.pulse.passes), err)
	}
}
