package core

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMaxUnavailable(t *testing.T) {
	for _, c := range []struct {
		m    string
		n    int32
		want int
	}{
		{"", 5, 1}, {"2", 5, 2}, {"50%", 5, 2}, {"10%", 25, 2}, {"10%", 5, 1}, {"1%", 0, 1}, {"100%", 5, 5}, {"7", 5, 7}, {"0", 5, 1}, {"99%", 100, 99},
	} {
		s := play(t, "", replicas(c.n))
		if c.m != "" {
			unavailable(c.m)(s.set)
		}
		if got := s.set.MaxUnavailable(); got != c.want {
			t.Errorf("MU-1 961-03 961-04: %q of %d is %d, expected %d", c.m, c.n, got, c.want)
		}
	}
	s := play(t, "", unavailable("3"), traits(func(t *Traits) { t.OneAtATime = true }))
	if got := s.set.MaxUnavailable(); got != 1 {
		t.Errorf("961-42: with the gate off it is %d", got)
	}
}

func TestRollingUpdates(t *testing.T) {
	each(t, []step{
		{"MU-4 961-17 the highest first", "0o 1o 2o", nil, "-2"},
		{"MU-4 961-17 terminating ones are passed over", "0o 1o 2o~", is(parallel, unavailable("2")), "-1"},
		{"MU-4 those that are new are passed over", "0o 1o 2", nil, "-1"},
		{"MU-14 a missing one comes first", "0o 1o", nil, "+2"},
		{"MU-14 and condemned ones", "0o 1o 2o 3o", nil, "-3"},
		{"MU-5 the next batch waits for the whole last one", "0o 1o 2! 3", is(replicas(4), unavailable("2")), ""},
		{"MU-5 961-08 961-24 961-36 a batch is M together", "0o 1o 2o 3o 4o", is(replicas(5), unavailable("2")), "-4 -3"},
		{"MU-5 961-09 3 back and 4 not: 2 waits", "0o 1o 2o 3 4~", is(replicas(5), unavailable("2")), ""},
		{"MU-5 the second batch", "0o 1o 2o 3 4", is(replicas(5), unavailable("2")), "-2 -1"},
		{"MU-6 961-11 961-13 Parallel goes on at once", "0o 1o 2o 3 4~", is(parallel, replicas(5), unavailable("2")), "-2"},
		{"MU-6 961-24 Parallel takes M at once", "0o 1o 2o 3o 4o", is(parallel, replicas(5), unavailable("2")), "-3 -4"},
		{"MU-6 961-12 also out of order", "0o 1o 2 3 4!", is(parallel, replicas(5), unavailable("2")), "-1"},
		{"961-14 pending is unavailable", "0o 1o 2?", is(parallel), ""},
		{"961-14 not ready is unavailable", "0o 1o 2!", is(parallel), ""},
		{"961-14 terminating is unavailable", "0o 1o 2~", is(parallel), ""},
		{"961-14 missing is unavailable", "0o 1o", is(parallel), "+2"},
		{"MU-6 with M in flight", "0o 1o 2o 3? 4~", is(parallel, replicas(5), unavailable("2")), ""},
		{"MU-7 961-14 961-33 961-54 2599-10 ready is not available", "0o 1o 2r", is(parallel, minReady(1800)), ""},
		{"MU-7 2599-10 961-33 and not broken", "0or 1or 2or 3or 4or", is(parallel, replicas(5), minReady(1800)), ""},
		{"MU-7 961-33 scaling down takes nothing from M", "0o 1o 2o 3o", is(parallel, minReady(1800)), "-2 -3"},
		{"MU-7 961-33 and ready is not available meanwhile", "0o 1o 2r 3o", is(parallel, minReady(1800)), "-3"},
		{"MU-7 961-33 one that is ready goes within M", "0o 1o 2or", is(parallel, minReady(1800)), "-2"},
		{"MU-7 961-33 and leaves the rest of M", "0o 1o 2or", is(parallel, minReady(1800), unavailable("2")), "-1 -2"},
		{"MU-7 961-33 that are as many as M", "0o 1or 2or", is(parallel, minReady(1800), unavailable("2")), "-1 -2"},
		{"MU-7 961-33 they wait for what is above", "0or 1or 2o", is(parallel, minReady(1800), unavailable("2")), ""},
		{"MU-7 961-33 that are more than M", "0or 1or 2or 3o", is(parallel, replicas(4), minReady(1800), unavailable("2")), ""},
		{"MU-8 what is not ready goes beside what is not available", "0o! 1or 2", is(parallel, minReady(1800)), "-0"},
		{"MU-8 with the gate off the highest goes, broken or not", "0o! 1o! 2o", is(parallel, oneAtATime), "-2"},
		{"MU-8 with the gate off whatever is broken below", "0! 1o 2o", is(parallel, oneAtATime), "-2"},
		{"MU-8 with the gate off one at a time", "0o! 1o! 2o!", is(parallel, oneAtATime), "-2"},
		{"MU-8 with the gate off after what is above", "0o! 1o! 2!", is(parallel, oneAtATime), ""},
		{"MU-8 with the gate off after one that terminates", "0o! 1o! 2o~", is(parallel, oneAtATime), ""},
		{"MU-8 with the gate off when what is above is not available yet", "0o! 1o! 2r", is(parallel, oneAtATime, minReady(1800)), ""},
		{"MU-8 with the gate off ready is enough to go", "0or 1or 2or", is(parallel, oneAtATime, minReady(1800)), "-2"},
		{"MU-8 with the gate off a partition holds", "0o! 1o! 2", is(parallel, oneAtATime, partition(2)), ""},
		{"MU-8 Parallel replaces what is broken without regard to M", "0o! 1o! 2o", is(parallel), "-0 -1"},
		{"MU-8 and then what is not", "0o! 1o 2o", is(parallel, unavailable("2")), "-0 -2"},
		{"MU-8 a broken new one counts", "0o 1o 2!", is(parallel), ""},
		{"MU-3 961-15 a protected broken one counts", "0o! 1o 2o", is(parallel, partition(1)), ""},
		{"MU-3 condemned ones do not count", "0o 1o 2o 3o~", is(parallel), "-2"},
		{"MU-9 961-06 961-26 M above what is staged", "0o 1o 2o", is(unavailable("5"), partition(1)), "-2 -1"},
		{"MU-9 961-05 961-25 M above N", "0o 1o 2o", is(unavailable("9")), "-2 -1 -0"},
		{"MU-9 961-25 M above N in Parallel", "0o 1o 2o", is(parallel, unavailable("9")), "-0 -1 -2"},
		{"MU-9 961-29 M above N with a partition", "0o 1o 2o", is(unavailable("9"), partition(1)), "-2 -1"},
		{"MU-10 961-27 as many as are staged", "0o 1o 2o 3o", is(replicas(4), unavailable("2"), partition(2)), "-3 -2"},
		{"MU-10 961-28 more are staged", "0o 1o 2o 3o", is(replicas(4), unavailable("2"), partition(1)), "-3 -2"},
		{"MU-13 Parallel with M 1", "0o 1o 2o", is(parallel), "-2"},
		{"MU-13 961-42 M is ignored with the gate off", "0o 1o 2o", is(unavailable("3"), traits(func(t *Traits) { t.OneAtATime = true })), "-2"},
		{"MU-15 3541-17 961-58 OnDelete deletes nothing", "0o 1o 2o", is(onDelete), ""},
		{"MU-15 and scales", "0o 1o", is(onDelete), "+2"},
		{"PT-1 offset: nine from 2, partition 5", "2o 3o 4o 5o 6o 7o 8o 9o 10o", is(start(2), replicas(9), partition(5), unavailable("9"), traits(offset)), "-10 -9 -8 -7"},
		{"PT-4 3335-06 absolute: nine from 2, partition 5", "2o 3o 4o 5o 6o 7o 8o 9o 10o", is(start(2), replicas(9), partition(5), unavailable("9")), "-10 -9 -8 -7 -6 -5"},
		{"PT-5 at or below the start nothing is protected", "3o 4o", is(start(3), replicas(2), partition(3), unavailable("2")), "-4 -3"},
		{"PT-5 at the end all are", "3o 4o", is(start(3), replicas(2), partition(5)), ""},
		{"PT-6 a protected one that is new is left alone", "0 1o 2o", is(partition(2)), "-2"},
		{"PT-7 one that is protected and old stays", "0o 1 2", is(partition(1)), ""},
	})
}

func offset(t *Traits) { t.OffsetPartition = true }

func oneAtATime(s *Set) { s.OneAtATime = true }

func TestUpdatesAsSequences(t *testing.T) {
	for _, c := range []struct {
		rule, pods string
		set        []func(*Set)
		want       string
	}{
		{"961-02 961-23 B24-11 M 1", "0o 1o 2o", nil, "-2, +2, -1, +1, -0, +0"},
		{"961-23 M 1 in Parallel", "0o 1o 2o", is(parallel), "-2, +2, -1, +1, -0, +0"},
		{"961-31 961-32 B24-03 B24-04 B24-05 4 and 3 together, 2 only when both are back", "0o 1o 2o 3o 4o", is(replicas(5), unavailable("2")), "-4 -3, +3, +4, -2 -1, +1, +2, -0, +0"},
		{"961-31 961-32 B24-09 Parallel", "0o 1o 2o 3o 4o", is(parallel, replicas(5), unavailable("2")), "-3 -4, +3 +4, -1 -2, +1 +2, -0, +0"},
		{"961-07 with a partition", "0o 1o 2o 3o 4o", is(replicas(5), unavailable("2"), partition(2)), "-4 -3, +3, +4, -2, +2"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, c.pods, c.set...)
			if got := strings.Join(s.live(), ", "); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// The ordinal of a missing pod decides which revision it is made from, as it does for deletions (PT-4).
func TestMissingPodsAreOfTheRightRevision(t *testing.T) {
	for _, c := range []struct {
		rule, pods string
		set        []func(*Set)
		ordinal    int
		image      string
	}{
		{"RV-11 staged", "0o 2", nil, 1, "web:2"},
		{"RV-11 protected", "0o 2", is(partition(2)), 1, "web:1"},
		{"RV-11 961-58 OnDelete", "0o 2", is(onDelete), 1, "web:2"},
		{"RV-11 without the block, within the current replicas", "0o 2o", is(withoutBlock, current(2)), 1, "web:1"},
		{"RV-11 without the block, beyond", "0o 2o", is(withoutBlock, current(1)), 1, "web:2"},
		{"ER-15 3541-14 staged", "0o 2", is(enforced), 1, "web:2"},
		{"ER-15 protected", "0o 2", is(enforced, partition(2)), 1, "web:1"},
		{"PT-4 absolute, protected", "3o 5", is(start(3), partition(5)), 4, "web:1"},
		{"PT-4 absolute, staged", "3o 5", is(start(3), partition(4)), 4, "web:2"},
		{"PT-1 offset, protected", "3o 5", is(start(3), partition(2), traits(offset)), 4, "web:1"},
		{"PT-1 offset, staged", "3o 5", is(start(3), partition(1), traits(offset)), 4, "web:2"},
		{"PT-8 an ordinal that is added below", "4o 5", is(start(3), partition(5)), 3, "web:1"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, c.pods, c.set...)
			s.expect(fmt.Sprintf("+%d", c.ordinal))
			if got := s.pods[fmt.Sprintf("web-%d", c.ordinal)].Spec.Containers[0].Image; got != c.image {
				t.Errorf("it is made of %s, expected %s", got, c.image)
			}
		})
	}
}

func current(n int32) func(*Set) { return func(s *Set) { s.Status.CurrentReplicas = n } }

func TestEnforcedRollingUpdates(t *testing.T) {
	each(t, []step{
		{"3541-03 3541-15 RollingUpdate waits for ever", "0o 1o 2o?", nil, ""},
		{"3541-16 also with M 2 of 5", "0o 1o 2o 3o 4o?", is(replicas(5), unavailable("2")), ""},
		{"3541-08 whatever its state: ready", "0o 1o 2o", is(enforced), "-2"},
		{"3541-08 not ready", "0o 1o 2o!", is(enforced), "-2"},
		{"3541-08 failed", "0o 1o 2ox", is(enforced), "-2"},
		{"3541-04 Enforced does not", "0o 1o 2o?", is(enforced), "-2"},
		{"ER-1 nothing to do", "0 1 2", is(enforced), ""},
		{"ER-2 3541-06 at the new revision it waits", "0o 1o 2!", is(enforced), ""},
		{"ER-2 a protected broken one blocks", "0o! 1o 2o", is(enforced, partition(1)), ""},
		{"ER-3 a broken old one holds back no missing higher one", "0o! 1o", is(enforced), "+2"},
		{"ER-3 one that is terminating does", "0~", is(enforced), ""},
		{"ER-4 one that has failed goes in its turn", "0ox 1o 2o", is(enforced), "-2"},
		{"ER-5 3541-07 3541-12 the canary goes alone", "0o! 1o! 2o!", is(enforced, unavailable("3")), "-2"},
		{"ER-5 also where there is no order", "0o! 1o! 2o!", is(parallel, enforced, unavailable("3")), "-2"},
		{"ER-5 3541-11 nobody goes while it is not available", "0o! 1o! 2!", is(parallel, enforced, unavailable("3")), ""},
		{"ER-5 or terminating", "0o! 1o! 2~", is(parallel, enforced, unavailable("3")), ""},
		{"ER-5 it is the highest that is staged", "3o! 4o! 5o!", is(start(3), enforced, partition(4)), ""},
		{"ER-7 what is due is not in flight", "0o! 1o! 2o 3", is(replicas(4), enforced), "-2"},
		{"ER-8 3541-05 the highest M, broken or not", "0o! 1o! 2o 3o 4", is(replicas(5), enforced, unavailable("3")), "-3 -2 -1"},
		{"ER-8 a batch starts with nothing in flight", "0o! 1o! 2! 3", is(replicas(4), enforced, unavailable("3")), ""},
		{"ER-9 Parallel: the broken ones, then M", "0o! 1o! 2o 3o 4", is(parallel, replicas(5), enforced), "-0 -1 -3"},
		{"ER-9 with one in flight", "0o! 1o! 2o 3! 4", is(parallel, replicas(5), enforced), "-0 -1"},
		{"ER-5 961-16 Parallel: no healthy canary while one is missing", "0o 2o", is(parallel, enforced), "+1"},
		{"ER-5 961-16 or terminating", "0o 1~ 2o", is(parallel, enforced), ""},
		{"ER-5 961-16 or new and broken", "0o 1! 2! 3! 4o", is(parallel, enforced, replicas(5)), ""},
		{"ER-5 961-15 or protected and broken", "0o! 1o 2o", is(parallel, enforced, partition(1)), ""},
		{"ER-5 within M it goes", "0o 1~ 2o", is(parallel, enforced, unavailable("2")), "-2"},
		{"ER-5 a broken canary goes at once", "0o 1~ 2o!", is(parallel, enforced), "-2"},
		{"ER-5 one that is ready counts itself", "0o 1o 2or", is(parallel, enforced, minReady(1800)), "-2"},
		{"ER-5 and waits for the others", "0o 1or 2or", is(parallel, enforced, minReady(1800)), ""},
		{"ER-9 2599-10 Parallel: ready is not broken", "0or 1or 2or 3or 4", is(parallel, enforced, replicas(5), minReady(1800)), ""},
		{"ER-9 and goes within M", "0o 1o 2o 3or 4", is(parallel, enforced, replicas(5), minReady(1800)), "-3"},
		{"OR-3 3541-08 a failed one is replaced while the canary is down", "0o 1ox 2?", is(enforced), "-1"},
		{"OR-3 3541-08 also where there is no order", "0o 1ox 2!", is(parallel, enforced), "-1"},
		{"ER-10 a broken new revision stops after the canary", "0o 1o 2?", is(enforced), ""},
		{"ER-12 3541-13 condemned ones go whatever is broken", "0o! 1o 2!", is(enforced, replicas(1)), "-2"},
		{"ER-12 3541-13 also when the new ones are broken", "0! 1 2", is(enforced, replicas(1)), "-2"},
		{"ER-12 one at a time", "0! 1 2~", is(enforced, replicas(1)), ""},
		{"OR-5 which RollingUpdate does not", "0! 1 2", is(replicas(1)), ""},
		{"ER-12 after a creation they wait", "0 2", is(enforced, replicas(2)), "+1"},
		{"ER-19 3541-23 with its gate off it is RollingUpdate", "0o 1o 2o?", is(enforced, traits(func(t *Traits) { t.NotEnforced = true })), ""},
	})
	t.Run("ER-19 3541-24 switched off in mid-update, and on again", func(t *testing.T) {
		s := play(t, "0o 1o? 2", enforced)
		s.set.NotEnforced = true
		s.expect("")
		s.set.NotEnforced = false
		s.expect("-1")
	})
	t.Run("ER-6 3541-09 3541-50 what is forced is told, with what it was like", func(t *testing.T) {
		s := play(t, "0o 1o 2o?", enforced)
		s.pods["web-2"].Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
		s.expect("-2")
		if !strings.HasPrefix(s.told[0], "Warning ForcedReplacement pod web-2 of revision "+s.set.Status.CurrentRevision+" is not available (ImagePullBackOff)") {
			t.Errorf("told %q", s.told)
		}
		for _, how := range []string{"", "r"} {
			s = play(t, "0o 1o 2o"+how, enforced, minReady(1800))
			if s.expect("-2"); strings.Contains(strings.Join(s.told, ""), "ForcedReplacement") || len(s.outcome.Forced) > 0 {
				t.Errorf("one that is ready: told %q", s.told)
			}
		}
	})
}

// The integration scenarios of KEP-3541, with an image that cannot be pulled.
func TestRecoveryFromABrokenTemplate(t *testing.T) {
	image := func(s *fixture, ref string) {
		s.set.Spec.Template.Spec.Containers[0].Image = ref
		s.set.Generation++
	}
	for _, c := range []struct {
		rule string
		set  []func(*Set)
		next string
		want string
	}{
		{"3541-19 RollingUpdate does not recover", nil, "good", "create revision 3"},
		{"3541-20 Enforced does", is(enforced), "good", "create revision 3 -2, +2, -1, +1, -0, +0"},
		{"3541-10 3541-21 Enforced stops at another broken one", is(enforced), "broken too", "create revision 3 -2, +2"},
		{"3541-22 RollingUpdate in Parallel recovers", is(parallel), "good", "create revision 3 -2, +2, -1, +1, -0, +0"},
		{"3541-22 Enforced in Parallel", is(parallel, enforced), "good", "create revision 3 -2, +2, -1, +1, -0, +0"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, "0 1 2", c.set...)
			image(s, "broken")
			if got := strings.Join(s.live(), ", "); got != "create revision 2 -2, +2" {
				t.Fatalf("the broken one: %q", got)
			}
			image(s, c.next)
			if got := strings.Join(s.live(), ", "); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// A replacement that cannot be created stops the update there (ER-20, ER-21, 3541-46, 3541-47).
func TestAReplacementThatCannotBeMadeStopsTheUpdate(t *testing.T) {
	begin := func() *fixture {
		s := play(t, "0o! 1o! 2o!", enforced, claims("data"))
		s.expect("-2")
		delete(s.pods, "web-2")
		return s
	}
	t.Run("ER-20 a quota", func(t *testing.T) {
		s := begin()
		full := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-2", errors.New("exceeded quota"))
		s.fails["+2"] = full
		for range 3 {
			if got := s.sync(); got != "+2" || !errors.Is(s.err, full) {
				t.Fatalf("got %q, %v", got, s.err)
			}
		}
		delete(s.fails, "+2")
		s.expect("+2")
	})
	t.Run("ER-20 a refusal, in Parallel", func(t *testing.T) {
		s := play(t, "0o 1o", parallel, unavailable("3"))
		s.fails["+2"] = denied("web-2")
		if got := s.sync(); got != "+2" || !errors.Is(s.err, s.fails["+2"]) {
			t.Errorf("got %q, %v", got, s.err)
		}
	})
	t.Run("ER-21 a claim that is going", func(t *testing.T) {
		s := begin()
		s.claims["data-web-2"].DeletionTimestamp = &metav1.Time{Time: noon()}
		if got := s.sync(); got != "" || s.err == nil {
			t.Errorf("got %q, %v", got, s.err)
		}
		delete(s.claims, "data-web-2")
		s.expect("create data-web-2 +2")
	})
}

// 3541-41: three broken templates one after the other break no more than one pod.
func TestBrokenTemplatesOneAfterTheOther(t *testing.T) {
	s := play(t, "0 1 2", enforced)
	for k := range 3 {
		reimaged(s, fmt.Sprintf("broken %d", k))
		s.live()
		for _, name := range []string{"web-0", "web-1"} {
			if image := s.pods[name].Spec.Containers[0].Image; image != "web:1" {
				t.Errorf("after %d broken templates %s is of %s", k+1, name, image)
			}
		}
	}
	reimaged(s, "good")
	s.live()
	for _, p := range s.pods {
		if p.Spec.Containers[0].Image != "good" || s.set.down(p, s.now) {
			t.Errorf("%s is of %s, down: %t", p.Name, p.Spec.Containers[0].Image, s.set.down(p, s.now))
		}
	}
}

func TestUpdatesAreToldInTheStatus(t *testing.T) {
	s := play(t, "0o 1o 2o", unavailable("2"))
	s.expect("-2 -1")
	if got := s.set.Status; got.CurrentReplicas != 1 || got.UpdatedReplicas != 0 || got.Replicas != 3 {
		t.Errorf("ST-3 961-19: %+v", got)
	}
	if s.outcome.MaxUnavailable != 2 || s.outcome.Unavailable != 0 {
		t.Errorf("MT-1: %+v", s.outcome)
	}
	s = play(t, "0o 1o 2o")
	s.fails["-2"] = errors.New("no")
	if s.sync(); s.err == nil || s.set.Status.CurrentReplicas != 3 {
		t.Errorf("a failed deletion: %v %+v", s.err, s.set.Status)
	}
	s = play(t, "0o 1o 2o", unavailable("2"))
	s.fails["-2"] = apierrors.NewNotFound(schema.GroupResource{}, "web-2")
	s.expect("-2 -1") // 961-18
}

func TestUpdatesComplete(t *testing.T) {
	for _, c := range []struct {
		rule, pods string
		set        []func(*Set)
		want       bool
	}{
		{"RV-8 all new and ready", "0 1 2", nil, true},
		{"RV-8 not all ready", "0 1 2!", nil, false},
		{"RV-8 not all new", "0o 1 2", nil, false},
		{"RV-8 one too many", "0 1 2 3", nil, false},
		{"RV-8 ready is enough", "0 1 2", is(minReady(7200)), true},
		{"RV-9 OnDelete", "0 1 2", is(onDelete), true},
		{"RV-9 3541-29 Enforced", "0 1 2", is(enforced), true},
		{"3541-29 Enforced, not all new", "0o 1 2", is(enforced), false},
		{"RV-10 a slice without replicas", "", is(replicas(0)), false},
		{"RV-10 a StatefulSet without replicas", "", is(replicas(0), traits(func(t *Traits) { t.CompleteEmpty = true })), true},
		{"PT-7 protected ones are old", "0o 1 2", is(partition(1)), false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := play(t, c.pods, c.set...)
			s.set.Spec.Template.Spec.Containers[0].Image = "web:2"
			latest := s.revision(2)
			for name, p := range s.pods {
				if !strings.Contains(c.pods, strings.TrimPrefix(name, "web-")+"o") {
					p.Labels[appsv1.StatefulSetRevisionLabel] = latest.Name
				}
			}
			s.sync()
			if got := s.set.Status; s.err != nil || (got.CurrentRevision == got.UpdateRevision) != c.want || got.UpdateRevision != latest.Name {
				t.Errorf("%v %+v", s.err, got)
			}
		})
	}
}
