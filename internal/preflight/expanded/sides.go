package expanded

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/expansion"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// sides is what both sides make of the pods.
type sides struct {
	// set is the source's, and destined is what the plan makes of it.
	set, destined *appsv1.StatefulSet
	at            map[plans.Side]expansion.Place
	// objects are what the pods name, by kind and name. A copy that is still to be made is its original.
	objects map[plans.Side]map[plans.Dependency]client.Object
	// services are those of the namespaces; a side without the right to list them has none.
	services map[plans.Side][]corev1.Service
	unseen   []check.Finding
	ordinal  int32
}

// sidesKey is the key of check.Once for the sides.
type sidesKey struct{}

// look reads what the checks of this package compare.
func look(ctx context.Context, i check.Inspection) (sides, error) {
	return check.Once(i, sidesKey{}, func() (sides, error) {
		destined, err := i.Receives()
		if err != nil {
			return sides{}, err
		}
		s := sides{
			set: i.Now.Set, destined: destined, at: map[plans.Side]expansion.Place{}, ordinal: i.Plan.Start,
			objects: map[plans.Side]map[plans.Dependency]client.Object{}, services: map[plans.Side][]corev1.Service{},
		}
		for _, side := range plans.Sides() {
			var list corev1.ServiceList
			err := i.On[side].List(ctx, &list, client.InNamespace(i.Plan.On(side).Namespace))
			if apierrors.IsForbidden(err) {
				f, _ := check.Unseen(err, fmt.Sprintf("Services of namespace %s on the %s", i.Plan.On(side).Namespace, side), "services")
				s.unseen = append(s.unseen, f...)
			} else if err != nil {
				return s, fmt.Errorf("listing the Services of %s: %w", i.Plan.On(side), err)
			}
			s.services[side], s.objects[side] = list.Items, map[plans.Dependency]client.Object{}
		}
		for _, d := range i.Plan.Dependencies {
			from, to, err := i.OnBoth(ctx, d)
			if check.IgnoreForbidden(err) != nil {
				return s, err
			}
			if from != nil {
				s.objects[plans.Source][named(d)] = from
			}
			if to == nil && d.Required == "" {
				to = from
			}
			if to != nil {
				s.objects[plans.Destination][named(d)] = to
			}
		}
		for _, side := range plans.Sides() {
			s.at[side] = place(i.Plan.On(side).Namespace, s.objects[side], s.services[side])
		}
		return s, nil
	})
}

// named is a dependency as a key.
func named(d plans.Dependency) plans.Dependency { return plans.Dependency{Kind: d.Kind, Name: d.Name} }

func place(namespace string, objects map[plans.Dependency]client.Object, services []corev1.Service) expansion.Place {
	at := expansion.Place{Namespace: namespace, Services: services, ConfigMaps: map[string]map[string]string{}, Secrets: map[string][]string{}}
	for d, o := range objects {
		switch o := o.(type) {
		case *corev1.ConfigMap:
			at.ConfigMaps[d.Name] = o.Data
		case *corev1.Secret:
			at.Secrets[d.Name] = slices.Sorted(maps.Keys(o.Data))
		}
	}
	return at
}

// source returns the pod of the first ordinal as the source has it.
func (s sides) source() *corev1.Pod { return build.Pod(s.set, s.ordinal) }

// arriving returns the pod of that ordinal as the destination gets it.
func (s sides) arriving() *corev1.Pod { return build.Pod(s.destined, s.ordinal) }

// labelled returns the labels that the pod of an ordinal has on a side.
func (s sides) labelled(side plans.Side, ordinal int32) labels.Set {
	set := s.set
	if side == plans.Destination {
		set = s.destined
	}
	return build.Pod(set, ordinal).Labels
}

// list is a list of containers of a pod, by the name of its field.
type list struct {
	field string
	of    []corev1.Container
}

func lists(pod *corev1.Pod) []list {
	return []list{{"initContainers", pod.Spec.InitContainers}, {"containers", pod.Spec.Containers}}
}

// containerOf returns the container of a name in one of the lists, and false if there is none.
func containerOf(pod *corev1.Pod, field, name string) (corev1.Container, bool) {
	for _, l := range lists(pod) {
		for _, c := range l.of {
			if l.field == field && c.Name == name {
				return c, true
			}
		}
	}
	return corev1.Container{}, false
}

// joined reports whether the pods of both sides speak to one API, and find one another's Services.
func joined(i check.Inspection) bool { return i.Plan.OneCluster() }
