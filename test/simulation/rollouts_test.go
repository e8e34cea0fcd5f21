package simulation

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Users who change the templates and the update strategies of both sets while a plan is carried out.

// changed lets the user change the set of a side that is on a cluster, if there is one and the plan has begun: one that was
// made for another template does not begin.
func (m *misfortune) changed(s *store, how func(side plans.Side, set *appsv1.StatefulSet) string) {
	if first, _ := m.w.plan.Step(m.w.journal.Leg, 1); m.w.journal.Leg.Direction == plans.Move && m.w.journal.Begun <= first.Seq+int(m.w.plan.Count) {
		return
	}
	sides := plans.Sides()
	m.rng.Shuffle(len(sides), func(i, j int) { sides[i], sides[j] = sides[j], sides[i] })
	for _, side := range sides {
		set, there := get[*appsv1.StatefulSet](s, m.w.namespace(side), setName)
		if m.w.on[side] != s || !there || set.DeletionTimestamp != nil {
			continue
		}
		next := clone(set)
		if what := how(side, next); m.strikes("%s of the %s", what, side) {
			if !equality.Semantic.DeepEqual(next.Spec.UpdateStrategy, set.Spec.UpdateStrategy) {
				m.tactic[side] = next.Spec.UpdateStrategy
				m.w.loosens(set)
			}
			must(s.Update(context.TODO(), next))
		}
		return
	}
}

// rollsOut lets the user give a set another template: one that restarts it, another image, one that never becomes ready, that
// of the other side, or that which the plan was made for.
func (m *misfortune) rollsOut(s *store) {
	m.changed(s, func(side plans.Side, set *appsv1.StatefulSet) string {
		switch n := m.rng.IntN(6); n {
		case 0:
			set.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": fmt.Sprint(m.struck)}
			return "a restart"
		case 1, 2:
			image := []string{"db:2", "db" + faulty}[n-1]
			set.Spec.Template.Spec.Containers[0].Image = image
			return "the image " + image
		case 3:
			if other, there := get[*appsv1.StatefulSet](m.w.on[side.Other()], m.w.namespace(side.Other()), setName); there {
				set.Spec.Template = *other.Spec.Template.DeepCopy()
				return "the template of the other side"
			}
		}
		set.Spec.Template = *m.template().DeepCopy()
		return "the first template"
	})
}

// template returns the one that the plan was made for.
func (m *misfortune) template() *corev1.PodTemplateSpec {
	return &m.w.set(blue, 0, 0).Spec.Template
}

// setsStrategy lets the user change how a set rolls, or what part of it does.
func (m *misfortune) setsStrategy(s *store) {
	m.changed(s, func(_ plans.Side, set *appsv1.StatefulSet) string {
		set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}
		switch n := m.rng.IntN(3); n {
		case 0:
			set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
			return "the strategy OnDelete"
		case 1:
			set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(m.w.plan.Start + 1)}
			return "a partition"
		}
		return "the strategy RollingUpdate"
	})
}

// settles lets the user give both sets the first template, with no partition of their own, and delete the pods whose
// application never becomes ready: a set in order replaces none of them.
func (m *misfortune) settles() {
	for _, side := range plans.Sides() {
		set, there := get[*appsv1.StatefulSet](m.w.on[side], m.w.namespace(side), setName)
		if !there || set.DeletionTimestamp != nil {
			continue
		}
		next := clone(set)
		next.Spec.Template = *m.template().DeepCopy()
		if _, touched := m.tactic[side]; touched && (!plans.Pinned(set) || set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType) {
			next.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}
			m.tactic[side] = next.Spec.UpdateStrategy
			m.w.loosens(set)
		}
		must(m.w.on[side].Update(context.TODO(), next))
		for _, pod := range all[*corev1.Pod](m.w.on[side]) {
			if fails(pod) && pod.Namespace == set.Namespace && pod.DeletionTimestamp == nil {
				must(m.w.on[side].Delete(context.TODO(), clone(pod)))
			}
		}
	}
}

// unlike returns which set does not have the update strategy at the end that its user has given it (S15), or "".
func (m *misfortune) unlike() string {
	var out []string
	for _, side := range plans.Sides() {
		set, there := get[*appsv1.StatefulSet](m.w.on[side], m.w.namespace(side), setName)
		want, touched := m.tactic[side]
		if there && m.w.journal.Ended() && (plans.PinLost(set) || touched && !equality.Semantic.DeepEqual(set.Spec.UpdateStrategy, want)) {
			out = append(out, fmt.Sprintf("S15: the set of the %s has %+v at the end, and its user has given it %+v", side, set.Spec.UpdateStrategy, want))
		}
	}
	return strings.Join(out, "; ")
}
