package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// Trace holds the objects, on both sides, of the volume of one ordinal and claim template. A missing object
// is nil.
type Trace struct {
	Ordinal  int32
	Template string
	Mode     plans.Mode
	Claims   map[plans.Side]*corev1.PersistentVolumeClaim
	// Volumes holds the same object for both sides in one cluster.
	Volumes map[plans.Side]*corev1.PersistentVolume
}

// Traces reads the existing objects of the volumes that move. It calls visit with every volume, of both
// clusters, that the plan has marked or whose claimRef names one of its two namespaces, and with every claim
// of these namespaces.
func Traces(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client, visit func(client.Object)) ([]Trace, error) {
	sides := map[plans.Side]*sideObjects{}
	for _, side := range plans.Sides() {
		if side == plans.Destination && p.OneCluster() {
			sides[side] = &sideObjects{volumes: sides[plans.Source].volumes, manifests: sides[plans.Source].manifests}
		} else {
			sides[side] = &sideObjects{volumes: map[string]*corev1.PersistentVolume{}, manifests: map[string]string{}}
			if err := sides[side].fill(ctx, p, on[side], visit); err != nil {
				return nil, fmt.Errorf("listing the volumes on the %s: %w", side, err)
			}
		}
		sides[side].claims = map[string]*corev1.PersistentVolumeClaim{}
		err := clusters.Each(ctx, on[side], func() client.ObjectList { return &corev1.PersistentVolumeClaimList{} }, func(c *corev1.PersistentVolumeClaim) {
			visit(c)
			sides[side].claims[c.Name] = c.DeepCopy()
		}, client.InNamespace(p.On(side).Namespace))
		if err != nil {
			return nil, fmt.Errorf("listing the claims of %s: %w", p.On(side), err)
		}
	}
	var out []Trace
	for o := range p.Ordinals().All() {
		for _, c := range p.Moved() {
			out = append(out, trace(p, sides, c, o))
		}
	}
	return out, nil
}

// sideObjects holds the objects of one side.
type sideObjects struct {
	claims    map[string]*corev1.PersistentVolumeClaim
	volumes   map[string]*corev1.PersistentVolume
	manifests map[string]string // volume names, by the source claim that is saved on them
}

// fill reads the volumes that may belong to the plan: those with its mark, and those whose claimRef names one
// of its two namespaces.
func (s *sideObjects) fill(ctx context.Context, p *plans.Plan, on client.Client, visit func(client.Object)) error {
	stamp := plans.Stamp{Plan: p.ID}
	return clusters.Each(ctx, on, func() client.ObjectList { return &corev1.PersistentVolumeList{} }, func(pv *corev1.PersistentVolume) {
		ref := pv.Spec.ClaimRef
		near := ref != nil && (ref.Namespace == p.Source.Namespace || ref.Namespace == p.Destination.Namespace)
		if !near && !stamp.Mine(pv) {
			return
		}
		pv = pv.DeepCopy()
		visit(pv)
		s.volumes[pv.Name] = pv
		var kept corev1.PersistentVolumeClaim
		if stamp.Mine(pv) && weight.Unmarshal([]byte(pv.Annotations[plans.ClaimAnnotation]), &kept) == nil && kept.Namespace == p.Source.Namespace {
			s.manifests[kept.Name] = pv.Name
		}
	})
}

// trace collects the objects of one volume. The volume is the one on which the source's claim is saved, or
// else the one that a claim is bound to.
func trace(p *plans.Plan, sides map[plans.Side]*sideObjects, of plans.ClaimMove, ordinal int32) Trace {
	t := Trace{Ordinal: ordinal, Template: of.Template, Mode: of.Mode, Claims: map[plans.Side]*corev1.PersistentVolumeClaim{}, Volumes: map[plans.Side]*corev1.PersistentVolume{}}
	name := ""
	for _, side := range plans.Sides() {
		if kept := sides[side].manifests[p.ClaimName(plans.Source, of.Template, ordinal)]; kept != "" {
			name = kept
		}
	}
	for _, side := range plans.Sides() {
		c := sides[side].claims[p.ClaimName(side, of.Template, ordinal)]
		if c == nil {
			continue
		}
		t.Claims[side] = c
		if name == "" {
			name = c.Spec.VolumeName
		}
	}
	for _, side := range plans.Sides() {
		if pv := sides[side].volumes[name]; pv != nil {
			t.Volumes[side] = pv
		}
	}
	return t
}

// Protected reports whether a volume carries everything that its final restoration needs.
func (t Trace) Protected(p *plans.Plan) bool {
	for _, pv := range t.Volumes {
		if Marked(p, pv) {
			return true
		}
	}
	return false
}

// Marked reports whether a volume object carries the marks of a plan that protects it.
func Marked(p *plans.Plan, pv *corev1.PersistentVolume) bool {
	_, saved := pv.Annotations[plans.PolicyAnnotation]
	return saved && plans.Stamp{Plan: p.ID}.Mine(pv)
}

// Promise returns the claimRef of the volume object on a side if it names the claim of that side, else nil.
func (t Trace) Promise(p *plans.Plan, side plans.Side) *corev1.ObjectReference {
	pv := t.Volumes[side]
	if pv == nil || !(objects{clusters.Pair{Plan: p}}).named(pv.Spec.ClaimRef, side, plans.Volume{Template: t.Template, Ordinal: t.Ordinal}) {
		return nil
	}
	return pv.Spec.ClaimRef
}

// Volume returns the journal's record of the volume when the ordinal leaves a side. It returns false if there
// is no volume object there.
func (t Trace) Volume(p *plans.Plan, side plans.Side) (plans.Volume, bool) {
	pv := t.Volumes[side]
	if pv == nil {
		return plans.Volume{}, false
	}
	v := plans.Volume{Ordinal: t.Ordinal, Template: t.Template, Name: pv.Name, Handle: HandleFor(p, pv)}
	if ref := t.Promise(p, side); ref != nil {
		v.Claim = ref.UID
	}
	if c := t.Claims[side]; c != nil {
		v.Claim = c.UID
	}
	return v, true
}

// OneDisk reports whether the volume objects of both sides mean the same disk. It is true where a side has none.
func (t Trace) OneDisk() bool {
	a, b := t.Volumes[plans.Source], t.Volumes[plans.Destination]
	return a == nil || b == nil || sameDisk(a, b)
}

// Sealed reports whether the volume of a side, in another cluster than the other one, is closed to every claim: its
// claimRef has the UID of the claim that has the disk on the other side (seal).
func (t Trace) Sealed(side plans.Side) bool {
	here, there := t.Volumes[side], t.Volumes[side.Other()]
	return here != nil && there != nil && here != there && here.Spec.ClaimRef != nil && there.Spec.ClaimRef != nil &&
		here.Spec.ClaimRef.UID != "" && here.Spec.ClaimRef.UID == there.Spec.ClaimRef.UID
}
