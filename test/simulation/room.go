package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavecheck"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// shut is a way in which a side takes no ordinals any more.
type shut string

const (
	noNodes  shut = "its nodes are cordoned"
	noClaims shut = "its quota has no claims left"
	noPods   shut = "a policy refuses the pods"
	noGrowth shut = "a policy refuses that the set grows"
)

func shuts() []shut { return []shut{noNodes, noClaims, noPods, noGrowth} }

// close shuts a side, and opens it again.
func (w *world) close(side plans.Side, how shut) (open func()) {
	s, namespace := w.on[side], w.namespace(side)
	w.foreign = true
	w.closed = map[plans.Side]shut{side: how}
	cordon := func(is bool) {
		for _, n := range all[*corev1.Node](s) {
			next := clone(n)
			next.Spec.Unschedulable = is
			s.put(next)
		}
	}
	refuses := map[shut]string{noClaims: "PersistentVolumeClaim", noPods: "Pod", noGrowth: "StatefulSet"}[how]
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "closed"}}
	quota.Spec.Hard = corev1.ResourceList{"persistentvolumeclaims": {}}
	switch how {
	case noNodes:
		cordon(true)
	case noClaims:
		must(s.Create(context.TODO(), quota))
	case noPods, noGrowth: // the API server refuses them
	}
	s.refuses = func(o client.Object, before client.Object) bool {
		grows := func() bool {
			a, ok := before.(*appsv1.StatefulSet)
			return ok && plans.SliceOf(o.(*appsv1.StatefulSet)).Replicas > plans.SliceOf(a).Replicas
		}
		return kindOf(o) == refuses && o.GetNamespace() == namespace && (how == noGrowth) == (before != nil) && (how != noGrowth || grows())
	}
	return func() {
		s.refuses, w.closed = nil, nil
		cordon(false)
		s.remove(keyOf(quota))
	}
}

// refused is what an API server answers that refuses an object.
func (s *store) refused(next, before client.Object) error {
	if s.refuses == nil || !s.refuses(next, before) {
		return nil
	}
	return apierrors.NewForbidden(resource(keyOf(next)), next.GetName(), fmt.Errorf("the namespace is closed"))
}

// upgrade gives the set of a side another image and lets its controller roll it out.
func (w *world) upgrade(side plans.Side, image string) {
	w.foreign = true
	set, _ := get[*appsv1.StatefulSet](w.on[side], w.namespace(side), setName)
	next := clone(set)
	next.Spec.Template.Spec.Containers[0].Image = image
	must(w.on[side].Update(context.TODO(), next))
	w.rest()
}

func imageOf(set *appsv1.StatefulSet) string { return set.Spec.Template.Spec.Containers[0].Image }

// suits is S18 at the only moment at which an engine can break it. Ordinals leave a side only if the template of the other
// one is the same. An ordinal that serves leaves only if the other side takes it.
func (w *world) suits(r *process, before, after plans.Slice, side plans.Side) {
	for o := range w.plan.Ordinals().All() {
		if !before.Has(o) || after.Has(o) {
			continue
		}
		if images := w.otherImages(r); images != "" {
			w.fail("S18", "ordinal %d leaves the %s, and would start with another template (%s)", o, side, images)
		}
		if w.available(side, o) && w.differs() {
			w.fail("S18", "ordinal %d serves and leaves the %s, and its Secret is not the same on both sides", o, side)
		}
		if how, is := w.closed[side.Other()]; is && w.checked && w.available(side, o) && len(w.journal.Assurances.Ignored) == 0 {
			w.fail("S18", "ordinal %d serves and leaves the %s, and the other side takes none: %s", o, side, how)
		}
	}
}

// otherImages returns the images of both sets if they are not the same, nothing that the plan or the user knows says so, and the
// watches of the process have told all of the sets (Grow looks at it again). Else it returns "".
func (w *world) otherImages(r *process) string {
	a, _ := get[*appsv1.StatefulSet](w.on[plans.Source], blue, setName)
	b, _ := get[*appsv1.StatefulSet](w.on[plans.Destination], green, setName)
	if a == nil || b == nil || imageOf(a) == imageOf(b) || r.behind() || len(w.plan.Patches) > 0 || w.journal.Assurances.OtherTemplate != "" {
		return ""
	}
	return imageOf(a) + " and " + imageOf(b)
}

// differs reports whether the Secret that the pods name is not the same on both sides, and the plan could know it, and the
// user has not.
func (w *world) differs() bool {
	if w.racing || len(w.journal.Assurances.OtherCopies) > 0 {
		return false
	}
	a, here := get[*corev1.Secret](w.on[plans.Source], blue, setName)
	b, there := get[*corev1.Secret](w.on[plans.Destination], green, setName)
	return here && there && !equality.Semantic.DeepEqual(a.Data, b.Data)
}

// asks lets an engine run the checks before its waves, as every process does. They run beside the engine, and the clusters
// must not change meanwhile: only those are made for which the engine waits.
func (r *process) asks(e *engine.Engine) {
	on := clusters.Clusters{}
	for side, c := range r.stores {
		on[side] = asking{c}
	}
	waves := preflight.Waves{Plan: e.Plan(), On: on, Now: func() time.Time { return r.w.app.clock }}
	e.CheckWave = func(ctx context.Context, j *journal.Journal, wave plans.Slice) (wavecheck.Answer, error) {
		if step, _, _ := j.Next(e.Plan()); step.Op != plans.Shrink {
			return wavecheck.Answer{}, nil
		}
		found, err := waves.Check(ctx, j, wave)
		return wavecheck.Answer{Why: check.Words(found.Bars), Unfit: found.Unfit()}, err
	}
}

// asking is a client of the checks: it also answers what the user may do, and dry runs.
type asking struct{ *conn }

func (c asking) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	switch o := o.(type) {
	case *authorizationv1.SelfSubjectRulesReview:
		for _, r := range c.rules(o.Spec.Namespace) {
			o.Status.ResourceRules = append(o.Status.ResourceRules, authorizationv1.ResourceRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
		}
		return nil
	case *corev1.Pod: // the user has the right to it
		return c.trial().Create(c.by(ctx), o, opts...)
	}
	return c.conn.Create(ctx, o, opts...)
}

func (c asking) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := c.may("patch", keyOf(o)); err != nil {
		return err
	}
	return c.trial().Patch(c.by(ctx), o, patch, opts...)
}

// Delete is sent by a check as a dry run alone.
func (c asking) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	if asked := (&client.DeleteOptions{}).ApplyOptions(opts); len(asked.DryRun) == 0 || asked.Preconditions == nil || asked.Preconditions.UID == nil {
		c.r.w.fail("S8", "a check deletes %s", keyOf(o))
		return nil
	}
	if err := c.may("delete", keyOf(o)); err != nil {
		return err
	}
	return c.trial().Delete(c.by(ctx), o, opts...)
}

// Get and List also answer that they may not: the checks then warn.
func (c asking) Get(ctx context.Context, k client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if err := c.conn.refused("get", key{kindOf(into), k.Namespace, k.Name}); err != nil {
		return err
	}
	return c.store.Get(ctx, k, into, opts...)
}

func (c asking) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if u, ok := into.(*unstructured.UnstructuredList); ok && !c.kinds.Recognizes(u.GroupVersionKind()) {
		return &meta.NoKindMatchError{GroupKind: u.GroupVersionKind().GroupKind()}
	}
	var o client.ListOptions
	o.ApplyOptions(opts)
	if err := c.conn.refused("list", key{strings.TrimSuffix(kindOf(into), "List"), o.Namespace, ""}); err != nil {
		return err
	}
	return c.store.List(ctx, into, opts...)
}

// rules returns what the account may do in a namespace. It may also try pods, as users may who deploy them.
func (c asking) rules(namespace string) []rbacv1.PolicyRule {
	have := c.r.w.rights[c.name]
	return append(slices.Concat(have[""], have[namespace]), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create"}})
}
