package core

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func held(s *Set) { s.RetainClaims = true }

// Claims that must outlive the set lose their owner in the next pass, whatever the state of the pods: the
// set may be deleted at any time (CP-5, CP-12, CP-14).
func TestWhatIsToBeKeptIsKeptAtOnce(t *testing.T) {
	for _, c := range []struct{ rule, pods, policy string }{
		{"CP-14 the first is not ready", "0! 1 2", "DD"},
		{"CP-14 one is pending", "0 1? 2", "RD"},
		{"CP-14 one is terminating", "0~ 1 2", "RD"},
		{"CP-14 one has failed", "0x 1 2", "RD"},
		{"CP-14 one is missing", "1 2", "RD"},
		{"CP-14 those outside wait for the first", "0! 1 2 3 4", "DD"},
		{"CP-14 those outside are going", "0 1 2 3~ 4~", "DD"},
	} {
		for how, policy := range map[string][]func(*Set){"in order": nil, "Parallel": {parallel}, "Enforced": {enforced}} {
			for keeps, change := range map[string]func(*Set){"held": held, "Retain": retains("RR")} {
				t.Run(c.rule+", "+how+", "+keeps, func(t *testing.T) {
					s := play(t, c.pods, append(policy, claims("data"), retains(c.policy))...)
					for _, p := range s.pods { // as a pass leaves the claims of pods outside the range
						if o, _ := Ordinal("web", p.Name); !s.set.has(o) {
							s.claims["data-"+p.Name].OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p, corev1.SchemeGroupVersion.WithKind("Pod"))}
						}
					}
					s.store(s.set.newClaims(9)[0])
					change(s.set)
					s.sync()
					for name := range s.claims {
						if got := s.owners(name); got != "" {
							t.Errorf("%s goes with %s (%v)", name, got, s.err)
						}
					}
				})
			}
		}
	}
}

// A set that is scaled in leaves its pods as the owners of their claims. Once the range has an ordinal again, or the
// policy is Retain, no pod goes before its claims name it no more: the garbage collector would take them (CP-14).
func TestNoPodGoesBeforeItsClaimIsSafe(t *testing.T) {
	fails := map[string]func(*fixture){
		"refused": func(s *fixture) { s.fails["update data-web-2"] = errors.New("a webhook does not answer") },
		"the cache is behind, and no live read is answered": func(s *fixture) {
			s.fails["read data-web-2"] = errors.New("no answer")
			s.seen = func(w *World) {
				w.Claim = func(name string) *corev1.PersistentVolumeClaim {
					c := s.claim(name)
					c.ResourceVersion = "0"
					return c
				}
			}
		},
	}
	rollsBack := func(s *fixture) {
		s.set.RollsBack, s.set.Status.Failed = true, s.set.Status.UpdateRevision
		s.pods["web-2"].Labels[appsv1.StatefulSetRevisionLabel] = s.set.Status.UpdateRevision
	}
	for name, c := range map[string]struct {
		pods   string
		change []func(*Set)
		then   func(*fixture)
	}{
		"it has failed, in order":      {pods: "0 1 2x"},
		"it has failed, Parallel":      {pods: "0 1 2x", change: is(parallel)},
		"it has succeeded":             {pods: "0 1 2s"},
		"an update":                    {pods: "0o 1o 2o"},
		"an update, Parallel":          {pods: "0o 1o 2o", change: is(parallel)},
		"an update, one at a time":     {pods: "0o 1o 2o", change: is(traits(func(t *Traits) { t.OneAtATime = true }))},
		"an eviction":                  {pods: "0o 1o 2o", change: is(traits(func(t *Traits) { t.Evicts = true }))},
		"an eviction, Parallel":        {pods: "0o 1o 2o", change: is(parallel, traits(func(t *Traits) { t.Evicts = true }))},
		"an enforced update":           {pods: "0o 1o 2o!", change: is(enforced)},
		"an enforced update, failed":   {pods: "0o 1o 2ox", change: is(enforced)},
		"an enforced update, Parallel": {pods: "0o 1o 2ox", change: is(enforced, parallel)},
		"a rollback":                   {pods: "0o 1o 2o!", then: rollsBack},
		"a rollback, Parallel":         {pods: "0o 1o 2o!", change: is(parallel), then: rollsBack},
		"it is pending":                {pods: "0o 1o 2o?", change: is(parallel)},
		"its labels must be repaired":  {pods: "0o 1o 2ox", then: func(s *fixture) { delete(s.pods["web-2"].Labels, appsv1.PodIndexLabel) }},
		"outside the range once more":  {pods: "0 1 2", change: is(replicas(2))},
		"the same, and it has failed":  {pods: "0 1 2x", change: is(replicas(2), parallel)},
	} {
		for how, fail := range fails {
			for _, policy := range []string{"DR", "DD", "RR", "RD"} {
				t.Run(name+", "+how+", "+policy, func(t *testing.T) {
					s := play(t, c.pods, append(c.change, claims("data"), retains(policy))...)
					s.claims["data-web-2"].OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.pods["web-2"], corev1.SchemeGroupVersion.WithKind("Pod"))}
					if c.then != nil {
						c.then(s)
					}
					was := s.pods["web-2"].UID
					fail(s)
					for range 3 {
						s.sync() // the fixture judges
					}
					clear(s.fails)
					s.seen = nil
					s.live()
					if p := s.pods["web-2"]; p != nil && p.UID == was {
						t.Errorf("web-2 stays for ever: %v", s.err)
					}
				})
			}
		}
	}
}

// A claim that existed before its pod gets the owner that the policy requires, as soon as the pod is created
// or while it is pending (CP-2, CP-6).
func TestClaimsThatWereThereGetTheirOwner(t *testing.T) {
	for _, c := range []struct{ rule, pods, want string }{
		{"the pod is made", "0 1", "+2 update data-web-2"},
		{"the pod is pending", "0 1 2?", "update data-web-2"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, c.pods, claims("data"), retains("RD"))
			there := s.set.newClaims(2)[0]
			there.OwnerReferences = nil
			s.store(there)
			if s.expect(c.want); s.owners("data-web-2") != "set" || strings.Contains(strings.Join(s.told, ""), "SuccessfulUpdate") {
				t.Errorf("it goes with %q, told %q", s.owners("data-web-2"), s.told)
			}
		})
	}
	t.Run("a refusal is told", func(t *testing.T) {
		s := play(t, "0 1", claims("data"), retains("RD"))
		there := s.set.newClaims(2)[0]
		there.OwnerReferences = nil
		s.store(there)
		s.fails["update data-web-2"] = errors.New("no")
		if s.sync(); s.err == nil || !strings.HasPrefix(strings.Join(s.told, ""), "Warning FailedUpdate Update Pod web-2") {
			t.Errorf("%v, told %q", s.err, s.told)
		}
	})
}

// A claim whose owner cannot be removed delays nothing else, and has a condition while it is so (CP-14).
func TestAClaimThatCannotBeLetGo(t *testing.T) {
	s := play(t, "0o 1o 2o", claims("data"), retains("RD"), conditioned)
	s.store(s.set.newClaims(7)[0])
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "data-web-7", errors.New("a policy says no"))
	s.fails["update data-web-7"] = refusal
	held(s.set)
	if got := s.sync(); got != "update data-web-0 update data-web-1 update data-web-2 update data-web-7 -2" || !errors.Is(s.err, refusal) {
		t.Errorf("got %q, %v", got, s.err)
	}
	if got := s.condition(ClaimsNotKept); !strings.HasPrefix(got, "True UpdateRefused: claim data-web-7 ") || !strings.HasSuffix(got, refusal.Error()) {
		t.Errorf("the condition is %q", got)
	}
	delete(s.fails, "update data-web-7")
	if s.sync(); s.err != nil || s.condition(ClaimsNotKept) != "" || s.owners("data-web-7") != "" {
		t.Errorf("%v, %q, it goes with %q", s.err, s.condition(ClaimsNotKept), s.owners("data-web-7"))
	}
	former := play(t, "0", replicas(1), claims("data"), conditioned)
	former.claims["data-web-0"].OwnerReferences = append(refs("StatefulSetSlice", "web", "former", nil), former.set.owner())
	if got := former.sync(); got != "" || !strings.Contains(former.condition(ClaimsNotKept), "StatefulSetSlice web no longer exists") {
		t.Errorf("got %q, the condition is %q", got, former.condition(ClaimsNotKept))
	}
}

// Claims without the name of one of the set's ordinals are left unchanged, whatever their owners are.
func TestClaimsOfOtherNamesAreLeftAlone(t *testing.T) {
	for _, name := range []string{"nightly-backup", "data-web-07", "data-webs-1", "logs-web-1", "data-web", "web-1"} {
		s := play(t, "0 1 2", claims("data"))
		c := s.set.newClaims(9)[0]
		c.Name, c.OwnerReferences = name, []metav1.OwnerReference{{APIVersion: s.set.Kind.GroupVersion().String(), Kind: s.set.Kind.Kind, Name: "web", UID: s.set.UID}}
		s.store(c)
		if s.expect(""); s.owners(name) != "set?" {
			t.Errorf("%s goes with %q", name, s.owners(name))
		}
	}
}
