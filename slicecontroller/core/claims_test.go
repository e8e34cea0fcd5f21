package core

import (
	"errors"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// owners lists the owners of a claim: set, pod, or other; with ? if the owner is no controller.
func (s *fixture) owners(claim string) string {
	var out []string
	for _, r := range s.claims[claim].OwnerReferences {
		who := "other"
		switch {
		case r.UID == s.set.UID:
			who = "set"
		case r.Kind == "Pod" && s.pods[r.Name] != nil && r.UID == s.pods[r.Name].UID:
			who = "pod"
		}
		if r.Controller == nil || !*r.Controller {
			who += "?"
		}
		out = append(out, who)
	}
	return strings.Join(out, " ")
}

func TestClaimsGoWithWhomThePolicySays(t *testing.T) {
	for _, c := range []struct{ policy, living, condemned string }{
		{"RR", "", ""}, {"RD", "set", "set"}, {"DR", "", "pod"}, {"DD", "set", "pod"},
	} {
		t.Run("CP-6 "+c.policy, func(t *testing.T) {
			s := play(t, "0 1 2", claims("data"))
			retains(c.policy)(s.set)
			s.sync()
			for _, claim := range []string{"data-web-0", "data-web-1", "data-web-2"} {
				if got := s.owners(claim); got != c.living {
					t.Errorf("%s in the range: %q, expected %q", claim, got, c.living)
				}
			}
			replicas(1)(s.set)
			got := s.sync()
			if want := map[bool]string{true: "-2", false: "update data-web-2 update data-web-1 -2"}[c.living == c.condemned]; got != want {
				t.Errorf("CP-7: got %q, expected %q", got, want)
			}
			for _, claim := range []string{"data-web-1", "data-web-2"} {
				if got := s.owners(claim); got != c.condemned {
					t.Errorf("%s outside: %q, expected %q", claim, got, c.condemned)
				}
			}
			retains("RR")(s.set)
			s.sync()
			if got := s.owners("data-web-0") + s.owners("data-web-1"); got != "" {
				t.Errorf("CP-5: back to Retain: %q", got)
			}
		})
	}
	t.Run("CP-11 the low side is outside too", func(t *testing.T) {
		s := play(t, "0 1 2", claims("data"), retains("DR"), start(1), replicas(2))
		s.expect("update data-web-0 -0")
		if got := s.owners("data-web-0"); got != "pod" {
			t.Errorf("%q", got)
		}
	})
	t.Run("CP-7 no pod goes before all claims have their owner", func(t *testing.T) {
		for _, order := range []func(*Set){func(*Set) {}, parallel} {
			s := play(t, "0 1 2", claims("data"), retains("DR"), replicas(1), order)
			s.fails["update data-web-1"] = errors.New("no")
			if got := s.sync(); got != "update data-web-2 update data-web-1" && got != "update data-web-1 update data-web-2" || s.err == nil {
				t.Errorf("got %q, %v", got, s.err)
			}
		}
	})
	t.Run("CP-14 unless they are held", func(t *testing.T) {
		s := play(t, "0 1 2", claims("data"), retains("DD"), start(1), replicas(2), traits(func(t *Traits) { t.RetainClaims = true }))
		s.expect("-0")
		s = play(t, "0 1 2", claims("data"), retains("DD"))
		s.set.RetainClaims = true
		if s.sync(); s.owners("data-web-0") != "" {
			t.Errorf("%q", s.owners("data-web-0"))
		}
	})
	t.Run("CP-12 Retain reaches claims without pods", func(t *testing.T) {
		s := play(t, "0 1 2", claims("data"), retains("RD"))
		delete(s.pods, "web-2")
		replicas(2)(s.set)
		s.expect("")
		retains("RR")(s.set)
		if s.sync(); s.owners("data-web-2") != "" {
			t.Errorf("%q", s.owners("data-web-2"))
		}
	})
}

// A pod that is replaced by force leaves its claims to the next one. They are never deleted with the pod,
// whatever the policy (3541-44).
func TestAForcedReplacementLeavesTheClaims(t *testing.T) {
	for policy, owner := range map[string]string{"RR": "", "RD": "set", "DR": "", "DD": "set"} {
		for name, order := range map[string]func(*Set){"in order": func(*Set) {}, "Parallel": parallel} {
			t.Run(policy+", "+name, func(t *testing.T) {
				s := play(t, "0o! 1o? 2ox", enforced, order, claims("data"), retains(policy))
				before := maps.Clone(s.claims)
				for range 12 {
					s.sync()
					for claim := range s.claims {
						if got := s.owners(claim); s.err != nil || strings.Contains(got, "pod") {
							t.Fatalf("%s goes with %q (%v)", claim, got, s.err)
						}
					}
					s.moveOn()
				}
				for claim, was := range before {
					if now := s.claims[claim]; now == nil || now.UID != was.UID || s.owners(claim) != owner {
						t.Errorf("%s is %v, and was %v", claim, now, was)
					}
				}
				if s.set.Status.CurrentRevision != s.set.Status.UpdateRevision {
					t.Errorf("not all were replaced: %+v", s.set.Status)
				}
			})
		}
	}
}

func TestClaimsOfOthers(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		rule, policy string
		refs         []metav1.OwnerReference
		want         string
		told         bool
	}{
		{"CP-9 another controller, with a Delete policy", "RD", refs("Backup", "b", "other", &yes), "other", false},
		{"CP-9 and our reference goes", "RD", append(refs("Backup", "b", "other", &yes), refs("StatefulSetSlice", "web", "set", &no)...), "other", true},
		{"CP-9 our reference goes with Retain too", "RR", append(refs("Backup", "b", "other", &yes), refs("StatefulSetSlice", "web", "set", &no)...), "other", false},
		{"CP-9 another controller, Retain", "RR", refs("Backup", "b", "other", &yes), "other", false},
		{"CP-9 a reference that is none of a controller", "RD", refs("StatefulSetSlice", "web", "set", &no), "set", false},
		{"CP-9 one of a third party stays", "RD", refs("Backup", "b", "other", nil), "other? set", false},
		{"CP-9 a namesake of the set", "RD", refs("StatefulSetSlice", "web", "former", &yes), "other", false},
		{"CP-9 a namesake of the pod", "RD", refs("Pod", "web-0", "former", &yes), "other", false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, "0", replicas(1), claims("data"), retains(c.policy))
			s.claims["data-web-0"].OwnerReferences = c.refs
			s.sync()
			if got := s.owners("data-web-0"); s.err != nil || got != c.want {
				t.Errorf("got %q, expected %q (%v)", got, c.want, s.err)
			}
			if told := strings.Join(s.told, "\n"); strings.Contains(told, "ConflictingController") != c.told {
				t.Errorf("told %q", told)
			}
			if c.policy == "RR" || c.want == "set" || c.want == "other? set" {
				return
			}
			s.is("web-0", "?") // then each pass records it, as the built-in controller does
			for range 2 {
				s.sync()
				if told := strings.Join(s.told, "\n"); told != "Warning ConflictingController PersistentVolumeClaim data-web-0 has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim" {
					t.Errorf("of a pending pod is told %q", told)
				}
			}
		})
	}
}

// AM-3: a cache that is behind is no failure of a creation.
func TestACreationThatWaitsForTheCacheHasNotFailed(t *testing.T) {
	for _, fails := range []string{"create data-web-2", "+2"} {
		s := play(t, "0 1", claims("data"))
		s.fails[fails] = ErrBehind
		if s.sync(); !errors.Is(s.err, ErrBehind) || strings.Contains(strings.Join(s.told, ""), "Failed") {
			t.Errorf("%s: %v, told %q", fails, s.err, s.told)
		}
	}
}

func TestClaimsComeBeforeTheirPod(t *testing.T) {
	t.Run("CP-1", func(t *testing.T) {
		play(t, "0 1", claims("data", "logs")).expect("create data-web-2 create logs-web-2 +2")
	})
	t.Run("CP-1 no pod without them", func(t *testing.T) {
		s := play(t, "0 1", claims("data", "logs"))
		s.fails["create data-web-2"] = errors.New("no")
		if got := s.sync(); got != "create data-web-2 create logs-web-2" || s.err == nil || len(s.told) != 3 || !strings.HasPrefix(s.told[0], "Warning FailedCreate Create Claim data-web-2") || !strings.HasPrefix(s.told[2], "Warning FailedCreate Create Pod web-2") {
			t.Errorf("got %q, %v, told %q", got, s.err, s.told)
		}
	})
	there := func(s *fixture) *corev1.PersistentVolumeClaim {
		c := s.set.newClaims(2)[0]
		s.store(c)
		return s.claims[c.Name]
	}
	t.Run("CP-2 one that is there is used", func(t *testing.T) {
		s := play(t, "0 1", claims("data"))
		there(s).Labels = nil
		s.expect("+2")
	})
	t.Run("CP-3 one that is going blocks the pod", func(t *testing.T) {
		s := play(t, "0 1", claims("data"))
		there(s).DeletionTimestamp = &metav1.Time{Time: noon()}
		if got := s.sync(); got != "" || s.err == nil || !strings.Contains(s.err.Error(), "pvc data-web-2 is being deleted") {
			t.Errorf("got %q, %v", got, s.err)
		}
	})
	t.Run("CP-4 one that the cache lacks", func(t *testing.T) {
		s := play(t, "0 1", claims("data"))
		there(s)
		s.seen = func(w *World) { w.Claim = func(string) *corev1.PersistentVolumeClaim { return nil } }
		if got := s.sync(); got != "" || s.err == nil || strings.Contains(strings.Join(s.told, ""), "Claim") {
			t.Errorf("got %q, %v, told %q", got, s.err, s.told)
		}
	})
	t.Run("CP-8 one that goes with a former pod is waited for", func(t *testing.T) {
		s := play(t, "0 1", claims("data"), retains("DR"))
		c := there(s)
		c.OwnerReferences = refs("Pod", "web-2", "former", nil)
		s.expect("")
		delete(s.claims, c.Name)
		s.expect("create data-web-2 +2")
	})
	t.Run("CP-10 a pending pod gets the one that it lacks", func(t *testing.T) {
		s := play(t, "0? 1", claims("data"), parallel, replicas(2))
		delete(s.claims, "data-web-0")
		delete(s.claims, "data-web-1")
		s.expect("create data-web-0")
	})
	t.Run("CP-6 a new one is made with its owner", func(t *testing.T) {
		s := play(t, "0 1", claims("data"), retains("RD"))
		s.expect("create data-web-2 +2")
		if got := s.owners("data-web-2"); got != "set" {
			t.Errorf("%q", got)
		}
	})
}

// A claim that is about to be deleted with its former pod is waited for, although the policy has become Retain
// (CP-8).
func TestAClaimOfAFormerPodIsWaitedForWhateverThePolicy(t *testing.T) {
	for keeps, change := range map[string]func(*Set){"Retain": retains("RR"), "held": held} {
		for how, order := range map[string]func(*Set){"in order": func(*Set) {}, "Parallel": parallel} {
			t.Run(keeps+", "+how, func(t *testing.T) {
				s := play(t, "0 1", claims("data"), retains("DR"), conditioned, order)
				c := s.set.newClaims(2)[0]
				c.OwnerReferences = refs("Pod", "web-2", "former", nil)
				s.store(c)
				change(s.set)
				if got := s.sync(); got != "" || s.err == nil { // nothing else may wake it once the claim is kept
					t.Errorf("got %q, %v", got, s.err)
				}
				if got := s.condition(ClaimsNotKept); !strings.HasPrefix(got, "True UpdateRefused: claim data-web-2 cannot be kept: its owner Pod web-2 no longer exists") {
					t.Errorf("the condition is %q", got)
				}
				s.claims[c.Name].DeletionTimestamp = &metav1.Time{Time: noon()}
				if got := s.sync(); got != "" || s.err == nil || !strings.Contains(s.err.Error(), "pvc data-web-2 is being deleted") {
					t.Errorf("CP-3: got %q, %v", got, s.err)
				}
				delete(s.claims, c.Name)
				if s.sync(); s.err != nil || s.pods["web-2"] == nil || s.claims[c.Name] == nil || s.condition(ClaimsNotKept) != "" {
					t.Errorf("%v, the condition is %q", s.err, s.condition(ClaimsNotKept))
				}
			})
		}
	}
}

// A claim that is about to be deleted with a former set of the same name is waited for: a pod that got it would lose its
// data at its next replacement (CP-8).
func TestAClaimOfAFormerSetIsWaitedFor(t *testing.T) {
	for policy, owner := range map[string]string{"RR": "", "RD": "set", "DR": "", "DD": "set"} {
		for how, order := range map[string]func(*Set){"in order": func(*Set) {}, "Parallel": parallel} {
			t.Run(policy+", "+how, func(t *testing.T) {
				s := play(t, "0 1", claims("data"), retains(policy), conditioned, order)
				c := s.set.newClaims(2)[0]
				c.OwnerReferences = refs("StatefulSetSlice", "web", "former", nil)
				s.store(c)
				if got := s.sync(); got != "" || s.err == nil { // the collector may only remove the reference, which wakes nothing
					t.Errorf("got %q, %v", got, s.err)
				}
				if got := s.condition(ClaimsNotKept); !strings.Contains(got, "claim data-web-2 cannot be kept: its owner StatefulSetSlice web no longer exists") {
					t.Errorf("the condition is %q", got)
				}
				s.claims[c.Name].DeletionTimestamp = &metav1.Time{Time: noon()}
				if got := s.sync(); got != "" || s.err == nil || !strings.Contains(s.err.Error(), "pvc data-web-2 is being deleted") {
					t.Errorf("CP-3: got %q, %v", got, s.err)
				}
				delete(s.claims, c.Name)
				if s.sync(); s.err != nil || s.pods["web-2"] == nil || s.owners(c.Name) != owner || s.condition(ClaimsNotKept) != "" {
					t.Errorf("%v, the condition is %q", s.err, s.condition(ClaimsNotKept))
				}
			})
		}
	}
}

// A pod that waits for a claim is not said to be created next.
func TestAClaimThatIsWaitedForIsNamed(t *testing.T) {
	s := play(t, "0 1", claims("data"), retains("DR"), conditioned)
	c := s.set.newClaims(2)[0]
	c.OwnerReferences, c.DeletionTimestamp = refs("Pod", "web-2", "former", nil), &metav1.Time{Time: noon()}
	s.store(c)
	s.expect("")
	if got := s.condition(Progressing); got != "True Waiting: pod web-2 will be created once claim data-web-2 is gone: the claim goes with a former Pod web-2" {
		t.Errorf("the condition is %q", got)
	}
}

func refs(kind, name, uid string, controller *bool) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID(uid), Controller: controller}}
}
