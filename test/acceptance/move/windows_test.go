package move_test

import (
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// fiveOfThree returns a set of five, of which three may be down.
func fiveOfThree(policy appsv1.PodManagementPolicyType) options {
	most := intstr.FromString("60%")
	return options{budget: &most, set: func(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = policy }}
}

func TestMovesSeveralOrdinalsPerWave(t *testing.T) {
	for n, policy := range []appsv1.PodManagementPolicyType{appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement} {
		t.Run(string(policy), func(t *testing.T) {
			inOneMode(t, n, fiveOfThree(policy), func(s *migration) {
				t := s.t
				before := s.state(s.source)
				w := s.watchedInWaves(3)
				run(t, s.planArgs("--window", "3")...).expect(t, done, "3 ordinals move together",
					"3 of 3  stop web-2..4, hand over their 6 claims, start web-2..4", "Total: 5 ordinals in 2 waves, 10 volumes.")
				run(t, s.applyArgs()...).expect(t, done, "web-2..4 Shrink", "[0..4] -> [0..1]", "[] -> [2..4]", "web-0..1 Grow", "moved: 5 ordinals")
				s.arrived(before)
				run(t, s.args("finalize")...).expect(t, done)
				proper(t, w, 3)
				s.settled(before)
			})
		})
	}
}

func TestAbortInTheMiddleOfAWaveWalksEverythingBack(t *testing.T) {
	for n, line := range [][]string{
		{"web-3..4 Release", "delete claim data-web-3"},
		{"web-3..4 Grow", "[] -> [3..4]"},
		{"web-0 Reserve"}, // the last, small wave
	} {
		t.Run(line[0], func(t *testing.T) {
			inOneMode(t, n, fiveOfThree(appsv1.OrderedReadyPodManagement), func(s *migration) {
				t := s.t
				before, there := s.state(s.source), s.names("destination")
				w := s.watchedInWaves(2)
				s.planned("--window", "2")
				p := start(t, s.applyArgs()...)
				p.until(line...)
				p.signal(syscall.SIGKILL)
				p.end().expect(t, killed)
				run(t, s.args("abort")...).expect(t, done, "aborted")
				proper(t, w, 3)
				s.asBefore(before, there)
			})
		})
	}
}

// 3335-13
func TestASplitStaysUntilItIsResumedOrWalkedBack(t *testing.T) {
	inBothModes(t, fiveOfThree(appsv1.ParallelPodManagement), func(s *migration) {
		t := s.t
		before := s.state(s.source)
		w := s.watchedInWaves(2)
		s.planned("--window", "2")
		run(t, s.applyArgs("--until-ordinal", "7")...).expect(t, failed, "expected an ordinal from 0 to 4")
		run(t, s.applyArgs("--until-ordinal", "1")...).expect(t, done, "web-3..4 Shrink", "web-1..2 Shrink", "split, as asked")
		s.shows(done, "Split", "unavailable=0", "stsmigrate resume web", "moves the remaining ordinals")
		run(t, s.args("finalize")...).expect(t, failed, "not complete")
		run(t, s.applyArgs()...).expect(t, failed, "is split, as it was asked to be", "stsmigrate resume web")
		run(t, s.args("resume", "--until-ordinal", "1")...).expect(t, failed, "expected an ordinal from 0 to 0")
		run(t, s.args("resume")...).expect(t, done, "web-0 Shrink", "moved: 5 ordinals")
		s.arrived(before)
		run(t, s.args("finalize")...).expect(t, done)
		proper(t, w, 3)
		s.settled(before)
	})
}

func TestASplitIsWalkedBack(t *testing.T) {
	inBothModes(t, fiveOfThree(appsv1.OrderedReadyPodManagement), func(s *migration) {
		t := s.t
		before, there := s.state(s.source), s.names("destination")
		w := s.watched()
		s.planned()
		run(t, s.applyArgs("--until-ordinal", "3")...).expect(t, done, "split, as asked")
		s.shows(done, "Split")
		run(t, s.args("abort")...).expect(t, done, "aborted")
		proper(t, w, 3)
		s.asBefore(before, there)
	})
}

// A user who approves at the prompt sees one ordinal arrive first, whatever the window.
func TestAPersonSeesTheFirstOrdinalArriveFirst(t *testing.T) {
	inBothModes(t, fiveOfThree(appsv1.ParallelPodManagement), func(s *migration) {
		t := s.t
		before := s.state(s.source)
		s.planned("--window", "3")
		asked := strings.Replace(strings.Join(s.applyArgs(), "\n"), "\n--yes", "", 1)
		r := atTerminal(t, "yes\n", strings.Split(asked, "\n")...)
		r.expect(t, done, "It pauses after the first ordinal, web-4", "Carry this out? [yes/no]", "web-4 Shrink", "paused before web-1..3 Tighten", "stsmigrate resume web")
		s.shows(done, "Paused", "unavailable=0", "stsmigrate resume web")
		run(t, s.args("resume", "--pause-after", "3")...).expect(t, done, "web-1..3 Shrink", "paused before web-0 Tighten")
		run(t, s.args("resume")...).expect(t, done, "moved: 5 ordinals")
		s.arrived(before)
	})
}

func TestAPersonWhoSaysNoHasChangedNothing(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		s.planned()
		before := s.versions()
		asked := strings.Replace(strings.Join(s.applyArgs("--no-canary-pause"), "\n"), "\n--yes", "", 1)
		r := atTerminal(s.t, "no\n", strings.Split(asked, "\n")...)
		r.expect(s.t, failed, "Carry this out? [yes/no]", "not confirmed; nothing has been written")
		if strings.Contains(r.stderr, "pauses after") {
			s.t.Error("it would pause although it was told not to")
		}
		same(s.t, "objects", before, s.versions())
	})
}

func TestRefusesAWindowWiderThanTheBudget(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		run(s.t, s.planArgs("--window", "2")...).expect(s.t, failed, "window 2: expected 1 to 1 ordinals per wave")
		run(s.t, s.planArgs("--window", "-1")...).expect(s.t, failed, "window -1: expected 1 to 1")
	})
}
