package core

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// step is one pass over a fixture.
type step struct {
	rule, pods string
	set        []func(*Set)
	want       string
}

func is(change ...func(*Set)) []func(*Set) { return change }

func each(t *testing.T, steps []step) {
	t.Helper()
	for _, c := range steps {
		t.Run(c.rule, func(t *testing.T) { play(t, c.pods, c.set...).expect(c.want) })
	}
}

func TestOrderedScaling(t *testing.T) {
	each(t, []step{
		{"OR-1 3335-04 the first is made", "", nil, "+0"},
		{"OR-1 3335-02 from its start", "", is(start(4)), "+4"},
		{"3335-10 from 1", "1 2", is(start(1)), "+3"},
		{"OR-1 the next waits for one that is pending", "0?", nil, ""},
		{"OR-1 the next waits for one that is not ready", "0!", nil, ""},
		{"OR-1 2599-09 the next waits for one that is not available yet", "0", is(minReady(7200)), ""},
		{"OR-1 the next is made after one that is", "0", nil, "+1"},
		{"OR-1 one at a time", "0 1", is(replicas(9)), "+2"},
		{"OR-2 a higher one that is broken holds nobody back", "1! 2", nil, "+0"},
		{"OR-3 a failed one is deleted", "0x 1 2", nil, "-0"},
		{"OR-3 one that has ended is deleted", "0 1s", nil, "-1"},
		{"OR-3 and not twice", "0x~ 1 2", nil, ""},
		{"OR-4 one that is terminating is waited for", "0~", nil, ""},
		{"OR-5 nothing goes while one that stays is broken", "0! 1 2", is(replicas(1)), ""},
		{"OR-5 or missing", "1 2", is(replicas(1)), "+0"},
		{"OR-6 the highest goes first", "0 1 2 3", is(replicas(1)), "-3"},
		{"OR-6 one that is going is waited for", "0 1 2 3~", is(replicas(1)), ""},
		{"OR-6 a broken one goes if nothing lower is broken", "0 1 2!", is(replicas(1)), "-2"},
		{"OR-7 two broken ones wait for one another", "0 1! 2!", is(replicas(1)), ""},
		{"OR-8 3335-05 the high side goes before the low side", "1 2 3 4 5", is(start(3), replicas(1)), "-5"},
		{"OR-8 and then the low side", "1 2 3", is(start(3), replicas(1)), "-2"},
		{"OR-10 to nothing", "0 1", is(replicas(0)), "-1"},
		{"SR-10 the low end goes when all others are available", "0 1 2", is(start(1), replicas(2)), "-0"},
		{"SR-10 and not before", "0 1 2!", is(start(1), replicas(2)), ""},
		{"AV-5 nothing goes while one that stays is not available yet", "0 1", is(replicas(1), minReady(7200)), ""},
		{"AV-5 961-33 also where several may be down", "0 1 2", is(replicas(1), minReady(7200), unavailable("3")), ""},
		{"AM-2 a pod that is going is never deleted again", "0~ 1~ 2~", is(replicas(0)), ""},
	})
}

func TestParallelScaling(t *testing.T) {
	each(t, []step{
		{"PA-1 all are made at once", "1!", is(parallel, replicas(4)), "+0 +2 +3"},
		{"PA-1 and go at once", "0! 1! 2~ 3", is(parallel, replicas(1)), "-1 -3"},
		{"PA-1 a failed one goes, and the rest goes on", "0x 2", is(parallel), "+1 -0"},
		{"PA-2 one that is terminating blocks nobody", "0~ 1!", is(parallel, replicas(4)), "+2 +3"},
		{"SR-5 both ends in one pass", "0 1", is(parallel, start(2), replicas(2)), "+2 +3 -0 -1"},
	})
}

func TestPartOfAParallelPassDoesNotFailTheRest(t *testing.T) {
	full := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-2", errors.New("exceeded quota"))
	t.Run("SY-2 a batch with errors is the last", func(t *testing.T) {
		s := play(t, "", parallel, replicas(20))
		s.fails["+1"] = full
		if got := s.sync(); got != "+0 +1 +2" || !errors.Is(s.err, full) {
			t.Errorf("got %q, %v", got, s.err)
		}
	})
	t.Run("SC-7 one that is gone is gone", func(t *testing.T) {
		s := play(t, "0 1 2", replicas(1))
		s.fails["-2"] = apierrors.NewNotFound(schema.GroupResource{}, "web-2")
		s.expect("-2")
		if len(s.told) > 0 {
			t.Errorf("told %q", s.told)
		}
	})
	t.Run("SY-3 the status is written all the same", func(t *testing.T) {
		s := play(t, "0 1")
		s.fails["+2"] = full
		s.sync()
		if s.err == nil || s.set.Status.ReadyReplicas != 2 || !slices.Equal(s.told, []string{"Warning FailedCreate Create Pod web-2 in StatefulSetSlice web failed error: " + full.Error()}) {
			t.Errorf("%v %+v %q", s.err, s.set.Status, s.told)
		}
	})
}

// The examples of KEP-3335
// (https://github.com/kubernetes/enhancements/tree/master/keps/sig-apps/3335-statefulset-slice) and its
// tests, as sequences.
func TestRangesMove(t *testing.T) {
	for _, c := range []struct {
		rule, pods string
		set        []func(*Set)
		want       string
	}{
		{"SR-3 up before down", "0 1 2", is(start(3)), "+3, +4, +5, -2, -1, -0"},
		{"SR-6 3335-49 without ordinals the start is 0", "3 4", is(replicas(2)), "+0, +1, -4, -3"},
		{"SR-7 3335-07 the move of an ordinal", "3 4", is(start(2)), "+2"},
		{"SR-11 3335-49 {0,1} to 2+3", "0 1", is(start(2), replicas(3)), "+2, +3, +4, -1, -0"},
		{"SR-11 {2,3} to 4+2", "2 3", is(start(4), replicas(2)), "+4, +5, -3, -2"},
		{"SR-11 3335-49 {3,4} to 2+2", "3 4", is(start(2), replicas(2)), "+2, -4"},
		{"SR-2 what is in both is left alone", "2 3 4", is(start(3), replicas(2)), "-2"},
		{"SR-5 Parallel", "0 1", is(parallel, start(2), replicas(2)), "+2 +3 -0 -1"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, c.pods, c.set...)
			if got := strings.Join(s.live(), ", "); got != c.want {
				t.Errorf("got %q, expected %q", got, c.want)
			}
		})
	}
	for _, policy := range []func(*Set){parallel, func(*Set) {}} {
		t.Run("3335-08 never fewer than there are to be", func(t *testing.T) {
			s := play(t, "0 1 2", start(2), policy)
			for range 12 {
				s.sync()
				there := 0
				for _, p := range s.pods {
					if !terminating(p) {
						there++
					}
				}
				if there < 3 {
					t.Errorf("%d pods", there)
				}
				s.moveOn()
			}
		})
	}
	t.Run("SR-4 one that cannot come up keeps those that are to go", func(t *testing.T) {
		s := play(t, "0 1", start(2), replicas(2))
		s.set.Spec.Template.Spec.Containers[0].Image = "broken"
		if got := strings.Join(s.live(), ", "); got != "create revision 2 +2" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("SR-7 also when a higher one is broken", func(t *testing.T) { play(t, "3! 4", start(2)).expect("+2") })
}

func TestThePodIsTheOrdinals(t *testing.T) {
	s := play(t, "", start(7), claims("data"), func(s *Set) {
		t := &s.Spec.Template
		t.Labels["apps.kubernetes.io/pod-index"], t.Annotations, t.Finalizers = "wrong", map[string]string{"a": "b"}, []string{"x/y"}
		t.Spec.Hostname, t.Spec.Subdomain = "wrong", "wrong"
		t.Spec.Volumes = []corev1.Volume{{Name: "other"}, {Name: "data"}, {Name: "last"}}
		s.Spec.VolumeClaimTemplates[0].Finalizers, s.Spec.VolumeClaimTemplates[0].Annotations = []string{"backup/first"}, map[string]string{"c": "d"}
	})
	s.sync()
	p := s.pods["web-7"]
	owner := p.OwnerReferences[0]
	for _, c := range []struct {
		rule      string
		got, want any
	}{
		{"ID-1", p.Namespace + "/" + p.Name, "shop/web-7"},
		{"ID-3 pod-name", p.Labels["statefulset.kubernetes.io/pod-name"], "web-7"},
		{"ID-3 pod-index", p.Labels["apps.kubernetes.io/pod-index"], "7"},
		{"ID-3 revision", p.Labels["controller-revision-hash"], s.set.Status.UpdateRevision},
		{"ID-3 template", p.Labels["app"], "web"},
		{"ID-5", p.Spec.Hostname + "." + p.Spec.Subdomain, "web-7.peers"},
		{"ID-6 annotations", p.Annotations["a"], "b"},
		{"ID-6 finalizers", p.Finalizers[0], "x/y"},
		{"ID-6 owner", owner.Kind + "/" + owner.Name, "StatefulSetSlice/web"},
		{"ID-6 controller", *owner.Controller && *owner.BlockOwnerDeletion, true},
		{"ID-6 of which workload", p.GenerateName, "web-"},
		{"ID-7 others stay", p.Spec.Volumes[1].Name + p.Spec.Volumes[2].Name, "otherlast"},
		{"ID-7 claims come first", p.Spec.Volumes[0].Name + ":" + p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName, "data:data-web-7"},
		{"ID-8 finalizers", strings.Join(s.claims["data-web-7"].Finalizers, " "), "backup/first"},
		{"ID-8 annotations", s.claims["data-web-7"].Annotations["c"], "d"},
		{"ID-8 labels", s.claims["data-web-7"].Labels["app"] + s.claims["data-web-7"].Labels["disk"], "webdata"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, expected %v", c.rule, c.got, c.want)
		}
	}
	for name, want := range map[string]int32{"web-0": 0, "web-10": 10, "web-2147483647": 2147483647, "web-01": -1, "web--1": -1, "web-": -1, "web-2147483648": -1, "web-a": -1, "webs-1": -1, "web": -1, "web-+1": -1} {
		got, member := Ordinal("web", name)
		if member != (want >= 0) || member && got != want {
			t.Errorf("ID-2: %s: %d, %t, expected %d", name, got, member, want)
		}
	}
}

func TestLabelsAreRepaired(t *testing.T) {
	for _, label := range []string{"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"} {
		t.Run("ID-4 "+label, func(t *testing.T) {
			s := play(t, "0 1 2")
			delete(s.pods["web-1"].Labels, label)
			s.expect("update 1")
			if s.pods["web-1"].Labels[label] == "" || !strings.HasPrefix(s.told[0], "Normal SuccessfulUpdate ") {
				t.Errorf("%v %q", s.pods["web-1"].Labels, s.told)
			}
		})
	}
	t.Run("ID-10 what cannot be repaired is told once", func(t *testing.T) {
		s := play(t, "0 1 2")
		claims("data")(s.set)
		s.expect("")
		if len(s.told) != 3 || !strings.HasPrefix(s.told[0], "Warning StorageMismatch pod web-0 does not mount claim data-web-0") {
			t.Errorf("told %q", s.told)
		}
		if s.expect(""); len(s.told) != 0 {
			t.Errorf("told again %q", s.told)
		}
	})
}

// Ordinals without a pod cost no memory, however many there are: a set with too many replicas must not take
// down the controller of all the others.
func TestMissingPodsCostNoMemory(t *testing.T) {
	for name, policy := range map[string]func(*Set){"in order": func(*Set) {}, "Parallel": parallel, "Enforced": enforced} {
		t.Run(name, func(t *testing.T) {
			s := play(t, "1o", replicas(20_000_000), policy, conditioned)
			s.fails["+0"] = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-0", errors.New("exceeded quota"))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			did := s.sync()
			runtime.ReadMemStats(&after)
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; did != "+0" || s.err == nil || used > 10 {
				t.Errorf("got %q, %v; the pass took %d MiB", did, s.err, used)
			}
			if s.outcome.Unavailable != 19_999_999 {
				t.Errorf("%d are unavailable", s.outcome.Unavailable)
			}
		})
	}
}

func reserved(ordinals ...int32) func(*Set) { return func(s *Set) { s.Reserved = ordinals } }

// Ordinals that are left out have no pods, and the range is longer by them (ID-2).
func TestOrdinalsAreLeftOut(t *testing.T) {
	for _, c := range []struct {
		rule, pods string
		set        []func(*Set)
		does       string
		end        int64
	}{
		{"in the middle", "0 2 3", is(reserved(1)), "", 4},
		{"two of them, and the last", "0 3 4", is(reserved(1, 2)), "", 5},
		{"the one after the last becomes the last but one", "0 1 2", is(reserved(3)), "", 3},
		{"below the start", "3 4 5", is(start(3), reserved(0, 1, 2)), "", 6},
		{"the start", "4 5 6", is(start(3), reserved(3)), "", 7},
		{"OR-8 one that is newly left out goes when its substitute is there", "0 1 2 3", is(reserved(1)), "-1", 4},
		{"3335-08 the substitute comes first", "0 1 2", is(reserved(1)), "+3", 4},
		{"PA-1 the same without an order", "0 1 2", is(reserved(1), parallel), "+3 -1", 4},
		{"one that is no longer left out comes back before the last goes", "0 2 3", nil, "+1", 3},
		{"MU-6 the highest is updated first", "0o 2o 3o", is(reserved(1)), "-3", 4},
		{"MU-6 then the one below the gap", "0o 2o 4", is(reserved(1, 3)), "-2", 5},
		{"MU-8 one at a time", "0o 2o 4", is(reserved(1, 3), parallel, traits(func(t *Traits) { t.OneAtATime = true })), "-2", 5},
		{"ER-5 the canary is the last", "0o 2o 4o", is(reserved(1, 3), enforced), "-4", 5},
		{"PT-4 a partition in the gap", "0o 2o 3", is(reserved(1), partition(1)), "-2", 4},
		{"CP-6 claims of one that is left out go as when scaled", "0 1 2 3", is(reserved(1), claims("data"), retains("DR")), "update data-web-1 -1", 4},
		{"nothing is wanted", "0", is(reserved(0, 1), replicas(0)), "-0", 0},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, c.pods, append(c.set, conditioned)...)
			s.expect(c.does)
			if got := s.set.end(); got != c.end {
				t.Errorf("the range ends at %d, expected %d", got, c.end)
			}
		})
	}
	s := play(t, "", reserved(1, 3), conditioned)
	if got, want := strings.Join(s.live(), " "), "+0 +2 +4"; got != want {
		t.Errorf("got %q, expected %q", got, want)
	}
	if got := s.set.Status; got.Replicas != 3 || got.ReadyReplicas != 3 || *got.Ordinals != (Range{0, 5}) || s.condition(Progressing) != "False Complete: 3 of 3 pods are available" {
		t.Errorf("%+v", got)
	}
	s = play(t, "0 1 2", reserved(1), conditioned)
	s.pods["web-1"].OwnerReferences = nil
	if did := s.sync(); strings.Contains(did, "adopt 1") || strings.Contains(did, "-1") {
		t.Errorf("CL-6: an orphan that is left out: %q", did)
	}
}
