package volumes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// NamespaceKept warns, within one cluster, of what the volumes need in the source's namespace, and of what
// would be deleted with it: the volume objects stay the same, and name that namespace for ever.
func NamespaceKept(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if !i.Plan.OneCluster() || !i.Plan.HasVolumes() {
		return nil, nil
	}
	volumes, err := departing(ctx, i)
	if err != nil {
		return nil, err
	}
	return bequest(ctx, i, volumes)
}

// bequest lists what the user must do before the source's namespace is deleted.
func bequest(ctx context.Context, i check.Inspection, volumes []*corev1.PersistentVolume) ([]check.Finding, error) {
	old := i.Plan.Source.Namespace
	named := map[string][]*corev1.PersistentVolume{}
	for _, pv := range volumes {
		words, err := naming(pv, old)
		if err != nil {
			return nil, err
		}
		for _, w := range words {
			named[w] = append(named[w], pv)
		}
	}
	var out []check.Finding
	for _, what := range slices.Sorted(maps.Keys(named)) {
		out = append(out, check.Finding{
			Level: check.Warn, Object: several(named[what]), Saw: fmt.Sprintf("they name namespace %s: %s", old, what), Want: "no volume that depends on a namespace which will be deleted",
			Remedy: fmt.Sprintf("keep namespace %s, with what is named in it, as long as these volumes are used: what a volume needs is fixed when it is made, and a new pod could not mount the volume", old),
		})
	}
	for _, k := range heirs() {
		found, err := heirsOf(ctx, i, k)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// heir is a kind of object that names claims of its own namespace.
type heir struct {
	kind         schema.GroupVersionKind
	resource     string
	claim        []string // the path of the claim's name
	want, remedy string
}

func heirs() []heir {
	return []heir{
		{
			kind: schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"}, resource: "volumesnapshots", claim: []string{"spec", "source", "persistentVolumeClaimName"},
			want:   "backups that outlive the namespace",
			remedy: "they are deleted with the namespace, and with deletionPolicy Delete what they stand for, too: make newer ones of the claims in %s first, or set the deletionPolicy of their VolumeSnapshotContents to Retain",
		},
		{
			kind: schema.GroupVersionKind{Group: "volsync.backube", Version: "v1alpha1", Kind: "ReplicationSource"}, resource: "replicationsources", claim: []string{"spec", "sourcePVC"},
			want:   "the volumes to be replicated where they are",
			remedy: "recreate them in namespace %s: after the move nothing replicates these volumes",
		},
	}
}

func heirsOf(ctx context.Context, i check.Inspection, k heir) ([]check.Finding, error) {
	old := i.Plan.Source.Namespace
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.kind.GroupVersion().WithKind(k.kind.Kind + "List"))
	err := i.On[plans.Source].List(ctx, list, client.InNamespace(old))
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return check.Unseen(err, k.kind.Kind+"s of namespace "+old, k.resource+"."+k.kind.Group)
	}
	moved := movedClaims(i.Plan, plans.Source)
	var names []string
	for _, o := range list.Items {
		if claim, _, _ := unstructured.NestedString(o.Object, k.claim...); slices.Contains(moved, claim) {
			names = append(names, o.GetName())
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	slices.Sort(names)
	return []check.Finding{{
		Level: check.Warn, Object: fmt.Sprintf("%ss %s of namespace %s", k.kind.Kind, check.Few(names), old), Saw: "they are about claims that leave the namespace", Want: k.want,
		Remedy: fmt.Sprintf(k.remedy, i.Plan.Destination.Namespace) + fmt.Sprintf("\n%s -n %s get %s", i.Kubectl(plans.Source), old, k.resource),
	}}, nil
}

// naming lists, in words, the parts of a volume that name a namespace: the Secrets of its source and of its
// annotations, and every other field or annotation whose value is the namespace's name.
func naming(pv *corev1.PersistentVolume, namespace string) ([]string, error) {
	source, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pv.Spec.PersistentVolumeSource)
	if err != nil {
		return nil, fmt.Errorf("reading the source of volume %s: %w", pv.Name, err)
	}
	out := within(source, "", namespace)
	for key, value := range pv.Annotations {
		if value != namespace {
			continue
		}
		words := "annotation " + key
		if note, ok := strings.CutSuffix(key, "-namespace"); ok && pv.Annotations[note+"-name"] != "" {
			words = fmt.Sprintf("Secret %s (annotation %s)", pv.Annotations[note+"-name"], key)
		}
		out = append(out, words)
	}
	return out, nil
}

func within(fields map[string]any, path, namespace string) []string {
	var out []string
	for key, value := range fields {
		at := strings.TrimPrefix(path+"."+key, ".")
		switch value := value.(type) {
		case map[string]any:
			out = append(out, within(value, at, namespace)...)
		case string:
			if name, ref := fields["name"].(string); value == namespace && key == "namespace" && ref {
				out = append(out, fmt.Sprintf("Secret %s (%s)", name, path))
			} else if value == namespace {
				out = append(out, at)
			}
		}
	}
	return out
}
