package build

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/plainyaml"
)

// DestinationSet returns the source's set in its form for the destination: in the destination's namespace,
// with the patches of the plan, and without the fields that the source's control plane sets. Its
// range is still the source's. It fails for a patch that does not fit the set, has unknown fields, or
// changes a field on which the move relies.
func DestinationSet(set *appsv1.StatefulSet, p *plans.Plan) (*appsv1.StatefulSet, error) {
	out := bare(set, p.Destination.Namespace)
	out.Spec.UpdateStrategy = p.Destination.Strategy(out.Spec.UpdateStrategy)
	for _, patch := range p.Patches {
		next, err := patched(out, patch)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", patch, err)
		}
		if field := guarded(out, next); field != "" {
			return nil, fmt.Errorf("%s: it changes %s, which the move itself sets or relies on; remove that from the patch", patch, field)
		}
		out = next
	}
	return out, nil
}

// DestinationSet returns the set that a plan from these inputs would create.
func (in Inputs) DestinationSet() (*appsv1.StatefulSet, error) {
	out, err := DestinationSet(in.Set, &plans.Plan{Destination: in.Destination, Patches: in.Patches})
	if err != nil {
		return nil, err
	}
	return out, in.selected(out)
}

// selected refuses a pod template that a selector of the move no longer matches.
func (in Inputs) selected(after *appsv1.StatefulSet) error {
	by := map[string]*metav1.LabelSelector{"the set's selector": in.Set.Spec.Selector}
	for side, b := range map[plans.Side]*policyv1.PodDisruptionBudget{plans.Source: in.SourceBudget, plans.Destination: in.DestinationBudget} {
		if b != nil {
			by[fmt.Sprintf("PodDisruptionBudget %s of the %s", b.Name, side)] = b.Spec.Selector
		}
	}
	for who, s := range by {
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			return fmt.Errorf("%s: %w", who, err)
		}
		if selector.Matches(labels.Set(in.Set.Spec.Template.Labels)) && !selector.Matches(labels.Set(after.Spec.Template.Labels)) {
			return fmt.Errorf("the patches change spec.template.metadata.labels so that %s (%s) no longer finds the pods; leave these labels as they are", who, selector)
		}
	}
	return nil
}

func bare(set *appsv1.StatefulSet, namespace string) *appsv1.StatefulSet {
	own := plans.Unpinned(set).DeepCopy()
	delete(own.Annotations, corev1.LastAppliedConfigAnnotation)
	plans.Unmark(own)
	return &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: plans.NativeKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: own.Name, Labels: own.Labels, Annotations: own.Annotations},
		Spec:       own.Spec,
	}
}

// guarded returns the first field that a patch must not change and has changed, or "".
func guarded(before, after *appsv1.StatefulSet) string {
	b, a := before.Spec, after.Spec
	for _, f := range []struct {
		field         string
		before, after any
	}{
		{"apiVersion or kind", before.TypeMeta, after.TypeMeta},
		{"metadata.name", before.Name, after.Name},
		{"metadata.namespace", before.Namespace, after.Namespace},
		{"metadata (other than labels and annotations)", unlabelled(before), unlabelled(after)},
		{"metadata.annotations." + ours(after.Annotations), ours(before.Annotations), ours(after.Annotations)},
		{"status", before.Status, after.Status},
		{"spec.replicas", b.Replicas, a.Replicas},
		{"spec.ordinals", b.Ordinals, a.Ordinals},
		{"spec.selector", b.Selector, a.Selector},
		{"spec.serviceName", b.ServiceName, a.ServiceName},
		{"spec.podManagementPolicy", b.PodManagementPolicy, a.PodManagementPolicy},
		{"spec.persistentVolumeClaimRetentionPolicy", b.PersistentVolumeClaimRetentionPolicy, a.PersistentVolumeClaimRetentionPolicy},
		{"spec.updateStrategy.rollingUpdate.partition", partition(b), partition(a)},
		{"the names or the number of spec.volumeClaimTemplates", templateNames(b), templateNames(a)},
	} {
		if !equality.Semantic.DeepEqual(f.before, f.after) {
			return f.field
		}
	}
	return ""
}

func unlabelled(set *appsv1.StatefulSet) metav1.ObjectMeta {
	out := set.ObjectMeta
	out.Labels, out.Annotations = nil, nil
	return out
}

// ours returns an annotation of the migration, or "".
func ours(annotations map[string]string) string {
	for k := range annotations {
		if strings.HasPrefix(k, "stsmigrate.dev/") {
			return k
		}
	}
	return ""
}

func partition(s appsv1.StatefulSetSpec) int32 {
	if r := s.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		return *r.Partition
	}
	return 0
}

func templateNames(s appsv1.StatefulSetSpec) []string {
	var out []string
	for _, t := range s.VolumeClaimTemplates {
		out = append(out, t.Name)
	}
	return out
}

// patched returns the set with the patch applied. The text of the patch may have several documents.
func patched(set *appsv1.StatefulSet, p plans.Patch) (*appsv1.StatefulSet, error) {
	doc, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(p.Patch))); ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		raw, err := plainyaml.ToJSON(text)
		if err != nil {
			return nil, fmt.Errorf("malformed YAML: %s", strings.Join(strings.Fields(err.Error()), " "))
		}
		if doc, err = apply(doc, raw); err != nil {
			return nil, err
		}
	}
	var out appsv1.StatefulSet
	return &out, plans.DecodeStrictly(doc, &out)
}

func apply(doc, patch []byte) ([]byte, error) {
	switch patch = bytes.TrimSpace(patch); {
	case bytes.Equal(patch, []byte("null")): // an empty document
		return doc, nil
	case patch[0] == '[':
		return applyJSON(doc, patch)
	case patch[0] == '{':
		return applyMerge(doc, patch)
	}
	return nil, errors.New("expected a strategic merge patch (a map) or a JSON patch (a list)")
}

// A patch can double a document with every copy operation. This limit bounds the size.
func init() { jsonpatch.AccumulatedCopySizeLimit = plans.MaxPatchBytes } //nolint:gochecknoinits // the library has this limit for all of a process

func applyJSON(doc, patch []byte) ([]byte, error) {
	var shape []struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		From  string          `json:"from"`
		Value json.RawMessage `json:"value"`
	}
	if err := plans.DecodeStrictly(patch, &shape); err != nil {
		return nil, fmt.Errorf("malformed JSON patch: %w", err)
	}
	ops, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return ops.Apply(doc)
}

// applyMerge applies a strategic merge patch. The API merges the entries of most lists by name, but
// replaces volumeClaimTemplates as a whole; here they are also merged by name.
func applyMerge(doc, patch []byte) ([]byte, error) {
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, err
	}
	plain, err := json.Marshal(undirected(fields))
	if err != nil {
		return nil, err
	}
	if err := plans.DecodeStrictly(plain, &appsv1.StatefulSet{}); err != nil {
		return nil, err
	}
	if spec, ok := fields["spec"].(map[string]any); ok && spec["volumeClaimTemplates"] != nil {
		if spec["volumeClaimTemplates"], err = mergeTemplates(doc, spec["volumeClaimTemplates"]); err != nil {
			return nil, err
		}
		if patch, err = json.Marshal(fields); err != nil {
			return nil, err
		}
	}
	return strategicpatch.StrategicMergePatch(doc, patch, appsv1.StatefulSet{})
}

// mergeTemplates returns all claim templates of the set, with each given entry merged into the
// template of its name.
func mergeTemplates(doc []byte, entries any) ([]any, error) {
	var set appsv1.StatefulSet
	if err := json.Unmarshal(doc, &set); err != nil {
		return nil, err
	}
	list, _ := entries.([]any) // its type was checked before
	for i, e := range list {
		raw, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		var named corev1.PersistentVolumeClaim
		if err := json.Unmarshal(raw, &named); err != nil {
			return nil, err
		}
		k := slices.IndexFunc(set.Spec.VolumeClaimTemplates, func(t corev1.PersistentVolumeClaim) bool { return t.Name == named.Name })
		if k < 0 {
			return nil, fmt.Errorf("spec.volumeClaimTemplates[%d] is named %q, expected one of %s: claim templates are patched by metadata.name, and none can be added", i, named.Name, strings.Join(templateNames(set.Spec), ", "))
		}
		before, err := json.Marshal(set.Spec.VolumeClaimTemplates[k])
		if err != nil {
			return nil, err
		}
		merged, err := strategicpatch.StrategicMergePatch(before, raw, corev1.PersistentVolumeClaim{})
		if err != nil {
			return nil, err
		}
		set.Spec.VolumeClaimTemplates[k] = corev1.PersistentVolumeClaim{}
		if err := plans.DecodeStrictly(merged, &set.Spec.VolumeClaimTemplates[k]); err != nil {
			return nil, err
		}
	}
	var out []any
	for _, t := range set.Spec.VolumeClaimTemplates {
		out = append(out, t)
	}
	return out, nil
}

// undirected returns a patch without its directives ($patch and the like), which are not fields of the API.
func undirected(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, inner := range v {
			if !strings.HasPrefix(k, "$") {
				out[k] = undirected(inner)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = undirected(v[i])
		}
		return out
	}
	return v
}
