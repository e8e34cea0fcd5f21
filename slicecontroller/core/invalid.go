package core

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// ErrInvalid is the error of a set whose spec cannot be acted on.
var ErrInvalid = errors.New("the set is invalid, and nothing is done until it is changed")

// invalid returns the rule that the set breaks, and how, or two empty strings (VA-4). The API server refuses
// such StatefulSets, but stores such objects of other kinds. Their pods could not be kept: they would be
// released as soon as they are created, or end by themselves.
func (s *Set) invalid() (reason, why string) {
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	has, restarts, deadline := labels.Set(s.Spec.Template.Labels), s.Spec.Template.Spec.RestartPolicy, s.Spec.Template.Spec.ActiveDeadlineSeconds
	switch {
	case err != nil:
		return "InvalidSelector", fmt.Sprintf("spec.selector cannot be parsed: %v", err)
	case s.Spec.Selector == nil || selector.Empty():
		return "EmptySelector", "spec.selector is empty: it would select every pod; name labels of spec.template in it"
	case !selector.Matches(has):
		return "SelectorMismatch", fmt.Sprintf("spec.selector %s does not match the labels of spec.template, which are %s", selector, has)
	case restarts != "" && restarts != corev1.RestartPolicyAlways:
		return "UnsupportedRestartPolicy", fmt.Sprintf("spec.template.spec.restartPolicy is %s, and pods of a set must not end by themselves: it has to be Always", restarts)
	case deadline != nil:
		return "ActiveDeadline", fmt.Sprintf("spec.template.spec.activeDeadlineSeconds is %d: every pod would fail after that time and be recreated for ever; remove the field", *deadline)
	}
	return "", ""
}
