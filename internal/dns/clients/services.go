package clients

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Selects reports whether a Service lists pods with these labels. A Service without a selector is listed for by others,
// and one of type ExternalName not at all.
func Selects(s *corev1.Service, of map[string]string) bool {
	return len(s.Spec.Selector) > 0 && s.Spec.Type != corev1.ServiceTypeExternalName &&
		labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(of))
}

// May reports whether a Service may come to select pods of a set with these ordinals: it contradicts no label that its
// pods are made with, and has at least one of them. Its other labels are those that pods get when they run, such as
// their role.
func May(s *corev1.Service, set *appsv1.StatefulSet, ordinals plans.Slice) bool {
	one := false
	for key, value := range s.Spec.Selector {
		made, is := set.Spec.Template.Labels[key]
		switch key {
		case appsv1.StatefulSetPodNameLabel:
			made, is = value, true
			if !slices.ContainsFunc(slices.Collect(ordinals.All()), func(o int32) bool { return value == fmt.Sprintf("%s-%d", set.Name, o) }) {
				return false
			}
		case appsv1.PodIndexLabel:
			made, is = value, true
			if !slices.ContainsFunc(slices.Collect(ordinals.All()), func(o int32) bool { return value == fmt.Sprint(o) }) {
				return false
			}
		}
		if is && made != value {
			return false
		}
		one = one || is
	}
	return one && s.Spec.Type != corev1.ServiceTypeExternalName
}

// Service is a Service and what it selects.
type Service struct {
	corev1.Service
	// Pods are the pods of the set that it selects, and Others are other ones.
	Pods, Others []*corev1.Pod
}

// Side is where Services are looked for: the set of that side, with the pods that it makes, and the ordinals that it may
// have.
type Side struct {
	On        client.Client
	Namespace string
	Set       *appsv1.StatefulSet
	Ordinals  plans.Slice
}

// Services returns the Services that select pods of a set, or may, sorted by name. A set that does not exist yet is looked
// for by what it will be. The governing Service is one of them unless it is headless: else it is there for names.
func (s Side) Services(ctx context.Context) ([]Service, error) {
	out, _, err := s.look(ctx)
	return out, err
}

// look returns all Services of the namespace besides.
func (s Side) look(ctx context.Context) (out []Service, all []corev1.Service, err error) {
	all, pods, err := s.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	for k := range all {
		found := Service{Service: all[k]}
		if found.Name == s.Set.Spec.ServiceName && found.Spec.ClusterIP == corev1.ClusterIPNone {
			continue
		}
		for n := range pods {
			pod := &pods[n]
			switch owner := metav1.GetControllerOfNoCopy(pod); {
			case !Selects(&found.Service, pod.Labels), pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
			case owner != nil && plans.IsSet(owner.Kind) && owner.Name == s.Set.Name:
				found.Pods = append(found.Pods, pod)
			default:
				found.Others = append(found.Others, pod)
			}
		}
		if len(found.Pods) > 0 || May(&found.Service, s.Set, s.Ordinals) {
			out = append(out, found)
		}
	}
	slices.SortFunc(out, func(a, b Service) int { return strings.Compare(a.Name, b.Name) })
	return out, all, nil
}

func (s Side) list(ctx context.Context) ([]corev1.Service, []corev1.Pod, error) {
	var services corev1.ServiceList
	if err := s.On.List(ctx, &services, client.InNamespace(s.Namespace)); err != nil {
		return nil, nil, fmt.Errorf("listing the Services of namespace %s: %w", s.Namespace, err)
	}
	if !slices.ContainsFunc(services.Items, func(o corev1.Service) bool { return len(o.Spec.Selector) > 0 }) {
		return services.Items, nil, nil
	}
	var pods corev1.PodList
	if err := s.On.List(ctx, &pods, client.InNamespace(s.Namespace)); err != nil {
		return nil, nil, fmt.Errorf("listing the pods of namespace %s: %w", s.Namespace, err)
	}
	return services.Items, pods.Items, nil
}

// Left returns how many of the pods of the set that the Service selects are left on their side before the first wave and
// after each one, in the order of a move.
func (s Service) Left(p *plans.Plan, leg plans.Leg) []int {
	moved := map[string]bool{}
	left := func() (n int) {
		for _, pod := range s.Pods {
			if !moved[pod.Name] {
				n++
			}
		}
		return n
	}
	out := []int{left()}
	for wave := range p.Waves(leg) {
		for o := range wave.All() {
			moved[p.Pod(plans.Source, o)] = true
		}
		out = append(out, left())
	}
	return out
}
