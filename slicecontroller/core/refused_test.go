package core

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func denied(pod string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod, errors.New("a policy says no"))
}

func full(pod string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod, errors.New("exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3"))
}

// passes makes some passes, moves the pods on after each, and returns the effects.
func (s *fixture) passes(n int) string {
	var out []string
	for range n {
		if did := s.sync(); did != "" {
			out = append(out, did)
		}
		s.moveOn()
	}
	return strings.Join(out, ", ")
}

// A range that moves while its new pods cannot be created keeps its existing pods (3335-08).
func TestPodsThatCannotBeMadeCostNone(t *testing.T) {
	going := func(s *fixture) {
		c := s.set.newClaims(3)[0]
		s.store(c)
		s.claims[c.Name].DeletionTimestamp = &metav1.Time{Time: noon()}
	}
	stale := func(s *fixture) {
		c := s.set.newClaims(3)[0]
		c.OwnerReferences = refs("Pod", "web-3", "former", nil)
		s.store(c)
	}
	refuses := func(err error) func(*fixture) {
		return func(s *fixture) { s.fails["+3"] = err }
	}
	for _, c := range []struct {
		rule, pods string
		set        []func(*Set)
		why        func(*fixture)
		want       string
	}{
		{"Parallel, refused", "0 1 2", is(parallel), refuses(denied("web-3")), "+3, +3, +3, +3, +3, +3"},
		{"CP-7 Parallel, refused: claims stay with the set", "0 1 2", is(parallel, claims("data"), retains("DR")), refuses(denied("web-3")), "+3 create data-web-3, +3, +3, +3, +3, +3"},
		{"in order, refused", "0 1 2", nil, refuses(denied("web-3")), "+3, +3, +3, +3, +3, +3"},
		{"Enforced, refused", "0 1 2", is(enforced), refuses(denied("web-3")), "+3, +3, +3, +3, +3, +3"},
		{"Enforced in Parallel, refused", "0 1 2", is(enforced, parallel), refuses(denied("web-3")), "+3, +3, +3, +3, +3, +3"},
		{"Parallel, an error that may pass", "0 1 2", is(parallel), refuses(errors.New("no connection")), "+3, +3, +3, +3, +3, +3"},
		{"Parallel, full with no more than there are to be", "0 1 2", is(parallel), refuses(full("web-3")), "+3, +3, +3, +3, +3, +3"},
		{"Enforced, full with no more than there are to be", "0 1 2", is(enforced), refuses(full("web-3")), "+3, +3, +3, +3, +3, +3"},
		{"PA-3 Parallel, full: what is too many goes", "0 1 2 9 10", is(parallel, replicas(4)), refuses(full("web-3")), "+3 -10, +3, +3, +3, +3, +3"},
		{"PA-3 Parallel, refused: what is too many stays", "0 1 2 9 10", is(parallel, replicas(4)), refuses(denied("web-3")), "+3, +3, +3, +3, +3, +3"},
		{"PA-3 Enforced, full: what is too many goes", "0 1 2 7 8", is(enforced), refuses(full("web-3")), "+3 -8, +3 -7, +3, +3, +3, +3"},
		{"CP-3 a claim that is going", "0 1 2", is(parallel, claims("data")), going, ""},
		{"CP-8 a claim that goes with a former pod", "0 1 2", is(parallel, replicas(1), claims("data"), retains("DR")), stale, "-1 -2 update data-web-0 update data-web-1 update data-web-2"},
		{"SR-4 Enforced, a template that is broken", "0 1 2", is(enforced, func(s *Set) { s.Spec.Template.Spec.Containers[0].Image = "broken" }), func(*fixture) {}, "create revision 2 +3, -2"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			set := c.set
			if !strings.HasPrefix(c.rule, "PA-3 Parallel") {
				set = append(set, start(3))
			}
			s := play(t, c.pods, set...)
			c.why(s)
			if got := s.passes(6); got != c.want {
				t.Errorf("got %q, expected %q", got, c.want)
			}
			there := 0
			for _, p := range s.pods {
				if !terminating(p) {
					there++
				}
			}
			if there < int(s.set.replicas()) {
				t.Errorf("%d pods are left of %d", there, s.set.replicas())
			}
		})
	}
}

// A full quota has room again when surplus pods are deleted (PA-3).
func TestAFullQuotaIsEmptied(t *testing.T) {
	s := play(t, "0 1 3 4", parallel)
	s.fails["+2"] = full("web-2")
	if got := s.sync(); got != "+2 -4" || !errors.Is(s.err, s.fails["+2"]) {
		t.Errorf("got %q, %v", got, s.err)
	}
	s.moveOn()
	delete(s.fails, "+2")
	if got := s.passes(3); got != "+2 -3" {
		t.Errorf("got %q", got)
	}
}

// A pod that terminates or has failed does not make up for a pod that is deleted in a full quota (PA-3, 3335-08).
func TestAFullQuotaIsNotEmptiedForPodsThatDoNotServe(t *testing.T) {
	for _, pods := range []string{"0 1 3~ 4", "0 1 3x 4"} {
		s := play(t, pods, parallel)
		s.fails["+2"] = full("web-2")
		if got := s.sync(); got != "+2" || !errors.Is(s.err, s.fails["+2"]) {
			t.Errorf("%s: got %q, %v", pods, got, s.err)
		}
	}
}
