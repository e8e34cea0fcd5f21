package slicecontroller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// arrive shows the cache everything that the API server has.
func (g *rig) arrive(t *testing.T) {
	t.Helper()
	for _, list := range []client.ObjectList{&appsv1.ControllerRevisionList{}, &corev1.PodList{}, &appsv1.StatefulSetList{}} {
		if err := g.lagging.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			object, _ := o.(client.Object)
			g.cached[string(object.GetUID())] = object
			g.ledger.saw(object)
			return nil
		})
	}
}

// lose deletes a pod, and shows that to the cache.
func (g *rig) lose(t *testing.T, p *corev1.Pod) {
	t.Helper()
	g.catchUp(t, p)
	if err := g.lagging.Client.Delete(t.Context(), p, client.Preconditions{UID: &p.UID}); err != nil {
		t.Fatal(err)
	}
	delete(g.cached, string(p.UID))
	g.created, g.deleted = nil, nil
}

// For a set with a field that is not known nothing is done. If that field is in the pod template, lost pods are
// recreated from the former template, and no pod is created from the present one.
func TestWhatIsNotUnderstoodIsNotCarriedOut(t *testing.T) {
	for field, heals := range map[string]bool{"spec.later": false, "spec.template.spec.later": true} {
		for _, had := range []bool{false, true} { // whether it ever had a template that was understood
			g := newRig(t)
			g.kind.undefaulted = true
			if had {
				g.pass(t)
				g.arrive(t)
				g.pass(t) // writes the status
				g.arrive(t)
				g.lose(t, pod("web-1"))
			}
			set, _ := g.cached["set"].(*appsv1.StatefulSet)
			set.Spec.Template.Spec.SchedulerName = "another" // it changed together with the field
			g.kind.unknown = func(client.Object) []string { return []string{field} }
			g.pass(t)
			var want []string
			if had && heals {
				want = []string{"web-1"}
			}
			if !slices.Equal(g.created, want) || len(g.deleted) > 0 {
				t.Errorf("%s, understood before: %t: created %q, deleted %q, expected %q", field, had, g.created, g.deleted, want)
			}
			if told := strings.Join(g.told(), "\n"); !had && !strings.Contains(told, "NotUnderstood") {
				t.Errorf("%s: told %q", field, told)
			}
		}
	}
}

// A template that the API server refuses, or cannot try, is not used. A pass is retried early only if that may help.
func TestATemplateThatIsRefusedIsNotUsed(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		retried bool
	}{
		"it is invalid":     {apierrors.NewInvalid(schema.GroupKind{Kind: "PodTemplate"}, "x", nil), false},
		"a policy says no":  {apierrors.NewForbidden(corev1.Resource("podtemplates"), "x", errors.New("no")), true},
		"nobody answers it": {errors.New("no route to host"), true},
	} {
		g := newRig(t)
		g.kind.undefaulted = true
		was, _ := g.lagging.Client.(client.WithWatch)
		g.lagging.Client = interceptor.NewClient(was, interceptor.Funcs{
			Create: func(ctx context.Context, on client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if _, tried := o.(*corev1.PodTemplate); tried {
					return c.err
				}
				return on.Create(ctx, o, opts...)
			},
		})
		g.Reconciler.client = g.lagging
		_, err := g.Reconcile(t.Context(), reconcile.Request{NamespacedName: web()})
		if len(g.created) > 0 || (err != nil) != c.retried {
			t.Errorf("%s: created %q, %v", name, g.created, err)
		}
	}
}

// Whoever may change a set decides what its faults are called: however many there are and however long they
// are, little is remembered of them, and their events are short.
func TestFaultsTakeLittleMemory(t *testing.T) {
	g := newRig(t)
	g.kind.undefaulted = true
	size := func() (n int) {
		for key := range g.memories[web()].told {
			n += len(key)
		}
		return n
	}
	long := strings.Repeat("x", 500<<10)
	tell := func(about core.Event) {
		g.does(t).Tell(about)
		for _, e := range g.told() {
			if len(e) > 2*maxQuotedBytes {
				t.Fatalf("an event of %d bytes", len(e))
			}
		}
	}
	for _, reason := range []string{"NotUnderstood", "OrphanOutOfRange"} {
		tell(core.Event{Reason: reason, Message: long, Once: long})
	}
	do := g.does(t)
	for k := range 10_000 {
		do.Tell(core.Event{Reason: "InvalidTemplate", Once: fmt.Sprint(k)})
		g.told()
	}
	if n := len(g.memories[web()].told); n > maxTold || size() > 64*maxTold {
		t.Errorf("%d keys of %d bytes are remembered", n, size())
	}
	for _, where := range []string{"spec.", "spec.template.spec."} {
		g.kind.unknown = func(client.Object) []string { return []string{where + long, where + "later"} }
		g.pass(t)
		told := strings.Join(g.told(), "\n")
		if g.pass(t); len(g.told()) > 0 {
			t.Errorf("%s: told again", where)
		}
		if len(told) > 2*maxQuotedBytes || !strings.Contains(told, "NotUnderstood") || !strings.Contains(told, "remove those fields") {
			t.Errorf("%s: told %d bytes: %.100s", where, len(told), told)
		}
	}
}

// A fault is told once, and another one of the same kind is told as well.
func TestAFaultIsToldOnce(t *testing.T) {
	g := newRig(t)
	for _, c := range []struct {
		reason, once string
		told         int
	}{{"A", "x", 1}, {"A", "x", 0}, {"A", "y", 1}, {"B", "x", 1}, {"A", "", 1}, {"A", "", 1}, {"B", "x", 0}} {
		g.does(t).Tell(core.Event{Reason: c.reason, Once: c.once})
		if got := len(g.told()); got != c.told {
			t.Errorf("%s %q: %d events, expected %d", c.reason, c.once, got, c.told)
		}
	}
}

// The API server generates another name for each dry run. The same refusal has the same words at each attempt.
func TestARefusalHasTheSameWordsAtEachAttempt(t *testing.T) {
	for name, of := range map[string]func(name string) error{
		"a quota": func(name string) error {
			return apierrors.NewForbidden(corev1.Resource("podtemplates"), name, errors.New("exceeded quota: few"))
		},
		"not valid": func(name string) error {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "PodTemplate"}, name, nil)
		},
	} {
		first, second := *refusal(fmt.Errorf("as a dry run: %w", of("dry-run-abcde"))), *refusal(fmt.Errorf("as a dry run: %w", of("dry-run-fghij")))
		if first != second || !strings.Contains(first.Message, `"dry-run"`) {
			t.Errorf("%s: %q, then %q", name, first.Message, second.Message)
		}
	}
	if got := refusal(apierrors.NewForbidden(corev1.Resource("podtemplates"), "web", errors.New("no"))).Message; !strings.Contains(got, `"web"`) {
		t.Errorf("of another name: %q", got)
	}
}
