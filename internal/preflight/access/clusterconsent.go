package access

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/api/consent"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// VolumeConsent returns the object with which a cluster agrees to the volumes that an orchestrator may create in it, as
// it is before it agrees to any. The admission policy of new volumes compares volumes with it. It is read and written as
// it stands, so that what this program does not know of it stays (kind: package consent).
func VolumeConsent() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": plans.APIVersion, "kind": "VolumeConsent", "metadata": map[string]any{"name": "cluster"}}}
}

// OldVolumesMap is the ConfigMap in kube-system that the policy of older releases compares volumes with: a key for each
// volume, with lines of which the first names the plan.
const OldVolumesMap = "stsmigrate-volumes"

// NewVolumesPolicy is the name of that policy and of its binding.
const NewVolumesPolicy = "stsmigrate-new-volumes"

// ProtectedVolumesPolicy is the name of the admission policy that lets only who carries plans out change the volumes that
// a plan protects.
const ProtectedVolumesPolicy = "stsmigrate-protected-volumes"

// largestConsent is how many bytes of volumes an object holds, beside what the API server notes of its writers.
const largestConsent = 1 << 20

// NewVolumes returns what a side's cluster must agree to for a plan, by the names of its volumes: the volumes
// that the plan makes there, and those that exist there already, as they would be recreated. Within one
// cluster a volume keeps its object, so that only the second objects of shared volumes remain.
func NewVolumes(ctx context.Context, p *plans.Plan, on clusters.Clusters, side plans.Side, names []string) ([]consent.Volume, error) {
	if p.OneCluster() {
		names = nil
		for _, s := range p.Shared {
			if side == plans.Destination {
				names = append(names, p.SecondVolume(s))
			}
		}
	}
	ours := claimSet(p, side)
	var out []consent.Volume
	for _, name := range names {
		pv, _, why, err := storage.Made(ctx, p, on, side, name)
		switch {
		case err != nil:
			return nil, err
		case why != "":
			return nil, fmt.Errorf("volume %s cannot be made on the %s: %s", name, side, why)
		case pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.Namespace != p.On(side).Namespace || !ours[pv.Spec.ClaimRef.Name]:
			continue // the volume of that name is not of this plan, or it is gone
		}
		v, err := storage.Agreed(p.ID, pv)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// AgreeVolumes returns the object by which a cluster agrees to the volumes of one plan (NewVolumes), in
// addition to the volumes of other plans in have (nil for none). It replaces an earlier agreement to this
// plan. It fails if the object would be too large.
func AgreeVolumes(p *plans.Plan, volumes []consent.Volume, have *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	next := VolumeConsent()
	if have != nil {
		next, _ = WithdrawVolumes(p, have)
	}
	named := map[string]map[string]any{}
	for _, v := range agreedIn(next) {
		named[nameOf(v)] = v
	}
	for _, v := range volumes {
		doc, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v)
		if err != nil {
			return nil, err
		}
		named[v.Name] = doc
	}
	all := make([]any, 0, len(named))
	for _, name := range slices.Sorted(maps.Keys(named)) {
		all = append(all, named[name])
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	if len(raw) > largestConsent {
		return nil, fmt.Errorf("the %d volumes that the cluster agrees to would take %d bytes, and the VolumeConsent holds %d: take those of plans that have ended away (stsmigrate revoke), or move the set in parts", len(all), len(raw), largestConsent)
	}
	return next, unstructured.SetNestedSlice(next.Object, all, "spec", "volumes")
}

// agreedIn returns the volumes of the object, as they stand.
func agreedIn(have *unstructured.Unstructured) []map[string]any {
	all, _, err := unstructured.NestedSlice(have.Object, "spec", "volumes")
	if err != nil {
		return nil // its kind allows nothing but a list
	}
	var out []map[string]any
	for _, v := range all {
		if doc, ok := v.(map[string]any); ok {
			out = append(out, doc)
		}
	}
	return out
}

// PlansOf returns the plans of the volumes to which a cluster agrees (nil for none), by the names of the volumes.
func PlansOf(have *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	if have == nil {
		return out
	}
	for _, v := range agreedIn(have) {
		out[nameOf(v)], _ = v["plan"].(string)
	}
	return out
}

func nameOf(volume map[string]any) string {
	name, _ := volume["name"].(string)
	return name
}

// WithdrawVolumes returns the object without the volumes of a plan, and whether it had any of them.
func WithdrawVolumes(p *plans.Plan, have *unstructured.Unstructured) (next *unstructured.Unstructured, less bool) {
	next = have.DeepCopy()
	left := []any{}
	for _, v := range agreedIn(have) {
		if v["plan"] == p.ID {
			less = true
			continue
		}
		left = append(left, v)
	}
	if less {
		_ = unstructured.SetNestedSlice(next.Object, left, "spec", "volumes") // its kind allows nothing but a list
	}
	return next, less
}

// AgreedVolumes reads what a side's cluster agrees to; nil where there is no such object, or no such kind.
func AgreedVolumes(ctx context.Context, on client.Client, side plans.Side) (*unstructured.Unstructured, error) {
	have := VolumeConsent()
	err := on.Get(ctx, client.ObjectKeyFromObject(have), have)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading VolumeConsent %s on the %s: %w", VolumeConsent().GetName(), side, err)
	}
	return have, nil
}

// Unagreed returns the lines of a volume to which have (nil for none) does not agree, and those to which it agrees and
// that the volume does not have.
func Unagreed(v consent.Volume, have *unstructured.Unstructured) ([]string, error) {
	doc, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v)
	if err != nil {
		return nil, err
	}
	wanted, agreed := map[string]string{}, map[string]string{}
	lines("", doc, wanted)
	if have != nil {
		for _, other := range agreedIn(have) {
			if nameOf(other) == v.Name {
				lines("", other, agreed)
			}
		}
	}
	if len(agreed) == 0 {
		return []string{"name: " + v.Name}, nil
	}
	var out []string
	for _, path := range slices.Sorted(maps.Keys(wanted)) {
		if was, has := agreed[path]; !has || was != wanted[path] {
			out = append(out, path+": "+wanted[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(agreed)) {
		if _, has := wanted[path]; !has {
			out = append(out, "without "+path+": "+agreed[path])
		}
	}
	return out, nil
}

// lines adds a line for each field of a document that is no object itself, by its path.
func lines(path string, of any, into map[string]string) {
	doc, is := of.(map[string]any)
	if !is || len(doc) == 0 {
		raw, _ := json.Marshal(of) //nolint:errchkjson // it was read as JSON
		into[path] = string(raw)
		return
	}
	for key, value := range doc {
		lines(strings.TrimPrefix(path+"."+key, "."), value, into)
	}
}

// withdrawVolumes removes the volumes of a plan from those that a side's cluster agrees to, and reports
// whether there were any. The policies of an older release may still be in force there.
func withdrawVolumes(ctx context.Context, p *plans.Plan, on client.Client, side plans.Side) (less bool, err error) {
	have, err := AgreedVolumes(ctx, on, side)
	if err != nil {
		return false, err
	}
	if have != nil {
		var next *unstructured.Unstructured
		if next, less = WithdrawVolumes(p, have); less {
			if err := writes.Change(ctx, on, have, next); err != nil {
				return false, err
			}
		}
	}
	old, err := withdrawOld(ctx, p, on, side)
	return less || old, err
}

// OldVolumes reads the volumes to which a cluster agrees by the policies of an older release, with their plans. The
// ConfigMap is nil where there is none.
func OldVolumes(ctx context.Context, on client.Client) (cm *corev1.ConfigMap, plan map[string]string, err error) {
	cm = &corev1.ConfigMap{}
	switch err := on.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: OldVolumesMap}, cm); {
	case apierrors.IsNotFound(err):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	plan = map[string]string{}
	for name, facts := range cm.Data {
		first, _, _ := strings.Cut(facts, "\n")
		plan[name] = strings.TrimPrefix(first, "plan ")
	}
	return cm, plan, nil
}

func withdrawOld(ctx context.Context, p *plans.Plan, on client.Client, side plans.Side) (less bool, err error) {
	have, plan, err := OldVolumes(ctx, on)
	if err != nil {
		return false, fmt.Errorf("reading ConfigMap %s/%s on the %s: %w", metav1.NamespaceSystem, OldVolumesMap, side, err)
	}
	if have == nil {
		return false, nil
	}
	next := have.DeepCopy()
	for name, of := range plan {
		if of == p.ID {
			delete(next.Data, name)
			less = true
		}
	}
	if !less {
		return false, nil
	}
	return true, writes.Change(ctx, on, have, next)
}
