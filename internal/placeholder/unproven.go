package placeholder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// Gap is something of the pod of an ordinal that its placeholder does not prove.
type Gap struct {
	// What is not proven, and Why.
	What, Why string
	// Breaks reports that the ordinal may stay down by it although its placeholder has its place.
	Breaks bool
}

func (g Gap) String() string { return g.What + ": " + g.Why }

// Unproven returns what the placeholders of the pods of a set do not prove, because a placeholder is another pod: what is left out of
// it, and what the labels do that it does not have. That its own volumes come only with the ordinal is true of every
// placeholder, and not in the list. Where the NetworkPolicies of the namespace cannot be read, it returns the rest with the
// error.
func Unproven(ctx context.Context, on client.Reader, set *appsv1.StatefulSet) ([]Gap, error) {
	var policies networkingv1.NetworkPolicyList
	err := on.List(ctx, &policies, client.InNamespace(set.Namespace))
	if err != nil {
		err = fmt.Errorf("listing the NetworkPolicies of namespace %s: %w", set.Namespace, err)
	}
	return unproven(build.Pod(set, plans.SliceOf(set).Start), policies.Items), err
}

func unproven(of *corev1.Pod, policies []networkingv1.NetworkPolicy) (out []Gap) {
	if claims := len(of.Spec.ResourceClaims); claims > 0 {
		out = append(out, Gap{"its devices", fmt.Sprintf("a placeholder asks for none (resourceClaims: %d), so that the pod finds the devices free", claims), true})
	}
	if inits := ordinary(of.Spec.InitContainers); len(inits) > 0 {
		out = append(out, Gap{What: "its init containers", Why: fmt.Sprintf("a placeholder does not run %s, and does not pull the images of them", names(inits, func(c corev1.Container) string { return c.Name }))})
	}
	selecting := slices.DeleteFunc(about(policies, of.Labels), func(p networkingv1.NetworkPolicy) bool {
		return len(p.Spec.PodSelector.MatchLabels)+len(p.Spec.PodSelector.MatchExpressions) == 0 // it is about every pod
	})
	if len(selecting) > 0 {
		out = append(out, Gap{What: "what its pod reaches", Why: fmt.Sprintf("NetworkPolicy %s is about its labels, which a placeholder does not have", names(selecting, func(p networkingv1.NetworkPolicy) string { return p.Name }))})
	}
	return out
}

// about returns the policies that select pods with these labels.
func about(policies []networkingv1.NetworkPolicy, of map[string]string) (out []networkingv1.NetworkPolicy) {
	for _, p := range policies {
		if s, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector); err == nil && s.Matches(labels.Set(of)) {
			out = append(out, p)
		}
	}
	return out
}

func names[T any](all []T, name func(T) string) string {
	var out []string
	for _, one := range all {
		out = append(out, name(one))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
