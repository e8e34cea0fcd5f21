package controller_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// difference is an intended difference between the built-in controller and ours. docs/slicecontroller.md
// explains it under the same rule. Any other difference fails the test.
type difference struct {
	rule string
	// about matches what differs: "did" for the trace of creations and deletions, or the name of a fact.
	about string
	// from is the first minor version of Kubernetes whose built-in controller differs so; 0 for any.
	from int
	// when narrows the difference, where the name is not enough. It may be nil.
	when func(seen) bool
	// parts means that the two sides have different pods from then on, so that the script ends.
	parts bool
}

// seen is an observed difference.
type seen struct {
	set           *appsv1.StatefulSet
	builtIn, ours string
	// podless means that the pod of a claim does not exist.
	podless bool
	// stuck means that a claim was deleted and remains.
	stuck bool
	// pending means that the pod of a claim waits for a node.
	pending bool
	// outrun means that the built-in controller reported a conflict with a newer object.
	outrun bool
}

// differences lists all intended differences that the scripts can meet.
func differences() []difference {
	return []difference{
		{rule: "CP-12", about: `^claim \S+ owners$`, when: func(s seen) bool { return s.podless && s.ours == "" && !strings.Contains(s.builtIn, "/Pod/") }},
		{rule: "CP-5", about: `^claim \S+ owners$`, when: func(s seen) bool { return !s.podless && s.ours == "" && outlived(s.builtIn, s.set) }},
		{rule: "CP-6", about: `^claim \S+ owners$`, when: func(s seen) bool {
			return s.podless && s.builtIn == "" && strings.Contains(s.ours, "/StatefulSet/web:")
		}},
		{rule: "CP-6", about: `^event SuccessfulUpdate `},
		{rule: "SY-4", about: `^event FailedCreate .* pvc \S+ is being deleted\]?$`},
		{rule: "ST-8", about: `^event Failed\w+ .*the object has been modified`, when: func(s seen) bool { return s.ours == "" }},
		{rule: "ST-8", about: `^event SuccessfulCreate Create Pod `, when: func(s seen) bool { return s.builtIn == "" && s.outrun }},
		{rule: "CP-10", about: `^claim `, when: func(s seen) bool { return s.builtIn == "" && s.pending }},
		{rule: "MU-8", about: `^(did$|status |pod |revision )`, from: 37, parts: true, when: func(s seen) bool {
			return s.set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement && s.set.Spec.MinReadySeconds == neverAvailable
		}},
		{rule: "OR-3", about: `^did$`, from: 37, when: func(s seen) bool {
			return s.set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement && onceMore(s.builtIn, s.ours)
		}},
		{rule: "3335-08", about: `^(did$|status |pod |revision |claim |event )`, parts: true, when: func(s seen) bool {
			return s.stuck && s.set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement
		}},
	}
}

// onceMore reports whether the built-in controller did what ours did, and in addition created and deleted
// one pod of an ordinal that ours created and deleted, too.
func onceMore(builtIn, ours string) bool {
	more := strings.Fields(builtIn)
	for what := range strings.FieldsSeq(ours) {
		k := slices.Index(more, what)
		if k < 0 {
			return false
		}
		more = slices.Delete(more, k, k+1)
	}
	if len(more) != 2 {
		return false
	}
	ordinal, revision, _ := strings.Cut(strings.TrimPrefix(more[0], "+"), "@")
	return revision != "" && more[1] == "-"+ordinal && slices.Contains(strings.Fields(ours), more[1])
}

// outlived reports whether a claim must outlive all of its owners.
func outlived(owners string, s *appsv1.StatefulSet) bool {
	policy := s.Spec.PersistentVolumeClaimRetentionPolicy
	for owner := range strings.SplitSeq(owners, ",") {
		when := policy.WhenDeleted
		if strings.Contains(owner, "/Pod/") {
			when = policy.WhenScaled
		}
		if when != appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
			return false
		}
	}
	return true
}

// The page lists exactly the differences that the test accepts.
func TestThePageListsTheDifferencesThatAreMeant(t *testing.T) {
	page, err := os.ReadFile("../../docs/slicecontroller.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differences() {
		if !regexp.MustCompile(`(?m)^\| ([\w-]+, )*` + d.rule + `(, [\w-]+)* \| `).Match(page) {
			t.Errorf("docs/slicecontroller.md has no row of %s", d.rule)
		}
	}
}

// meant returns the intended difference that matches an observed one, and whether there is one.
func meant(minor int, about string, s seen) (difference, bool) {
	all := differences()
	k := slices.IndexFunc(all, func(d difference) bool {
		return minor >= d.from && regexp.MustCompile(d.about).MatchString(about) && (d.when == nil || d.when(s))
	})
	if k < 0 {
		return difference{}, false
	}
	return all[k], true
}
