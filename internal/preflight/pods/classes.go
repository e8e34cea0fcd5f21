package pods

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
)

// clusterObject is an object that the pods name and that the operator of the cluster owns. It is not copied.
type clusterObject struct {
	kind, name, resource string
	object               func() client.Object
	namespaced           bool
	// differs returns how two objects of that name differ, or "".
	differs func(here, there client.Object) string
	// shows returns what the user must know to make the object.
	shows func(client.Object) string
	// wanted is why the object must exist, and another is how the user names another one. They are empty where the
	// pods name the object.
	wanted, another string
	// byHand reports that volumes made by hand can have this name too, without an object: as they do on a source that
	// has none.
	byHand bool
}

// Classes requires every such object on the destination, and the StorageClasses of the claims that the
// destination's set makes there.
func Classes(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	set, err := i.Receives()
	if err != nil {
		return nil, err
	}
	spec := set.Spec.Template.Spec
	var named []clusterObject
	var unnamed []string
	if i.From == plans.Source { // the claims that the ordinals have left there are theirs again
		named, unnamed = classesOfEmpty(i.Plan, i.Now.Set, set)
	}
	var out []check.Finding
	for _, p := range append(clusterObjectsOf(spec), named...) {
		found, err := proper(ctx, i, p)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	found, err := defaultClass(ctx, i, append(unclassed(spec), unnamed...))
	return append(out, found...), err
}

func proper(ctx context.Context, i check.Inspection, p clusterObject) ([]check.Finding, error) {
	called := p.kind + " " + p.name
	there, err := propertyOn(ctx, i, i.To(), p)
	if err != nil {
		return check.Unseen(err, called+" on the "+string(i.To()), p.resource)
	}
	here, err := propertyOn(ctx, i, i.From, p)
	if err != nil {
		if there != nil || !apierrors.IsForbidden(err) {
			return check.Unseen(err, called+" on the "+string(i.From), p.resource)
		}
		here = nil // the object is missing on the destination anyway
	}
	switch {
	case there == nil && here == nil && err == nil && p.byHand:
		return []check.Finding{{
			Level: check.Warn, Object: called, Saw: "no side has it", Want: "volumes of that name, made by hand, as " + p.wanted,
			Remedy: "see that the destination has one for each ordinal before it comes",
		}}, nil
	case there == nil:
		return []check.Finding{missing(i, p, here)}, nil
	case here != nil && !i.Plan.OneCluster() && p.differs != nil:
		if saw := p.differs(here, there); saw != "" {
			return []check.Finding{{
				Level: check.Warn, Object: called, Saw: saw, Want: "the same on both sides",
				Remedy: "see that the pods get what they need there, or name another with --patch",
			}}, nil
		}
	}
	return nil, nil
}

// missing is the finding about an object that the side which the pods come to lacks. here is the other side's, or nil.
func missing(i check.Inspection, p clusterObject, here client.Object) check.Finding {
	saw := "it does not exist on the " + string(i.To())
	if here != nil && p.shows != nil {
		saw += " (on the " + string(i.From) + ": " + p.shows(here) + ")"
	}
	return check.Finding{
		Object: p.kind + " " + p.name, Saw: saw, Want: "it to exist, as " + cmp.Or(p.wanted, "the pods name it"),
		Remedy: "it is not copied: create it there, or name another with " + cmp.Or(p.another, "--patch"),
	}
}

// propertyOn reads a clusterObject on a side; nil means that it does not exist, or that its API is not
// served.
func propertyOn(ctx context.Context, i check.Inspection, side plans.Side, p clusterObject) (client.Object, error) {
	o, key := p.object(), client.ObjectKey{Name: p.name}
	if p.namespaced {
		key.Namespace = i.Plan.On(side).Namespace
	}
	err := i.On[side].Get(ctx, key, o)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	return o, err
}

func clusterObjectsOf(spec corev1.PodSpec) []clusterObject {
	var out []clusterObject
	if name := spec.PriorityClassName; name != "" {
		out = append(out, clusterObject{kind: "PriorityClass", name: name, resource: "priorityclasses", object: func() client.Object { return &schedulingv1.PriorityClass{} }, differs: priorities, shows: priority})
	}
	if name := spec.RuntimeClassName; name != nil {
		out = append(out, clusterObject{kind: "RuntimeClass", name: *name, resource: "runtimeclasses", object: func() client.Object { return &nodev1.RuntimeClass{} }, differs: handlers, shows: handler})
	}
	for _, v := range spec.Volumes {
		out = append(out, clusterObjectsOfVolume(v.VolumeSource)...)
	}
	for _, c := range spec.ResourceClaims {
		if name := c.ResourceClaimTemplateName; name != nil {
			out = append(out, clusterObject{kind: "ResourceClaimTemplate", name: *name, resource: "resourceclaimtemplates", namespaced: true, object: func() client.Object { return &resourcev1.ResourceClaimTemplate{} }})
		}
		if name := c.ResourceClaimName; name != nil {
			out = append(out, clusterObject{kind: "ResourceClaim", name: *name, resource: "resourceclaims", namespaced: true, object: func() client.Object { return &resourcev1.ResourceClaim{} }})
		}
	}
	return out
}

// clusterObjectsOfVolume returns those of one volume that is made for a pod, or that a driver puts into the
// pod.
func clusterObjectsOfVolume(v corev1.VolumeSource) []clusterObject {
	var out []clusterObject
	if v.Projected != nil {
		for _, s := range v.Projected.Sources {
			if b := s.ClusterTrustBundle; b != nil && b.Name != nil && (b.Optional == nil || !*b.Optional) {
				out = append(out, clusterObject{kind: "ClusterTrustBundle", name: *b.Name, resource: "clustertrustbundles", object: func() client.Object { return &certificatesv1beta1.ClusterTrustBundle{} }})
			}
		}
	}
	if e := v.Ephemeral; e != nil && e.VolumeClaimTemplate != nil {
		if name := e.VolumeClaimTemplate.Spec.StorageClassName; name != nil && *name != "" {
			out = append(out, storageClass(*name))
		}
	}
	if v.CSI != nil {
		// Without this object a kubelet assumes that the driver has persistent volumes only.
		out = append(out, clusterObject{kind: "CSIDriver", name: v.CSI.Driver, resource: "csidrivers", object: func() client.Object { return &storagev1.CSIDriver{} }})
		if name := v.CSI.VolumeAttributes["secretProviderClass"]; name != "" {
			out = append(out, clusterObject{kind: "SecretProviderClass", name: name, resource: "secretproviderclasses", namespaced: true, object: func() client.Object {
				o := &unstructured.Unstructured{}
				o.SetGroupVersionKind(schema.GroupVersionKind{Group: "secrets-store.csi.x-k8s.io", Version: "v1", Kind: "SecretProviderClass"})
				return o
			}})
		}
	}
	return out
}

// classesOfEmpty returns the StorageClasses of the claim templates whose ordinals start without data, and the
// templates that name none. The destination's controller makes these claims. An API server accepts one whose
// class does not exist, and the claim then stays Pending with its ordinal down. So a dry run does not show it.
func classesOfEmpty(p *plans.Plan, source, set *appsv1.StatefulSet) (named []clusterObject, unnamed []string) {
	same := func(template corev1.PersistentVolumeClaim) bool { // a class that was translated or patched must exist
		return slices.ContainsFunc(source.Spec.VolumeClaimTemplates, func(t corev1.PersistentVolumeClaim) bool {
			return t.Name == template.Name && ptr.Equal(t.Spec.StorageClassName, template.Spec.StorageClassName)
		})
	}
	for _, t := range set.Spec.VolumeClaimTemplates {
		if !slices.Contains(p.Claims, plans.ClaimMove{Template: t.Name, Mode: plans.Empty}) {
			continue
		}
		called := "claim template " + t.Name
		switch class := t.Spec.StorageClassName; {
		case class == nil:
			unnamed = append(unnamed, called)
		case *class != "": // otherwise an administrator makes the volumes by hand
			o := storageClass(*class)
			o.wanted, o.another, o.byHand = called+" starts empty with it", "--storage-class or --patch", same(t)
			named = append(named, o)
		}
	}
	return named, unnamed
}

func storageClass(name string) clusterObject {
	return clusterObject{kind: "StorageClass", name: name, resource: "storageclasses", object: func() client.Object { return &storagev1.StorageClass{} }}
}

// unclassed returns the volumes that are made with each pod and name no class.
func unclassed(spec corev1.PodSpec) (out []string) {
	all := sets.Ephemeral(spec)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].Spec.StorageClassName == nil {
			out = append(out, "ephemeral volume "+name)
		}
	}
	return out
}

// defaultClass requires a default StorageClass on the destination for what is made there and names no class.
func defaultClass(ctx context.Context, i check.Inspection, unclassed []string) ([]check.Finding, error) {
	if len(unclassed) == 0 {
		return nil, nil
	}
	var all storagev1.StorageClassList
	if err := i.On[i.To()].List(ctx, &all); err != nil {
		return check.Unseen(err, "the default StorageClass of the "+string(i.To()), "storageclasses")
	}
	if slices.ContainsFunc(all.Items, isDefault) {
		return nil, nil
	}
	var out []check.Finding
	for _, called := range unclassed {
		out = append(out, check.Finding{
			Object: called, Saw: "it names no StorageClass, and the " + string(i.To()) + " has no default one", Want: "a class by which it is made there with each pod",
			Remedy: "name one with --patch, or make one the default there",
		})
	}
	return out, nil
}

// isDefault reports whether Kubernetes takes the class for claims that name none. It still reads the older annotation.
func isDefault(c storagev1.StorageClass) bool {
	return c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" || c.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true"
}

func priority(o client.Object) string {
	return fmt.Sprintf("value %d", o.(*schedulingv1.PriorityClass).Value) //nolint:forcetypeassert // of the prop's own kind
}

func priorities(here, there client.Object) string {
	if a, b := priority(here), priority(there); a != b {
		return fmt.Sprintf("it has %s on the source and %s on the destination: other pods would be preempted for these, or these for others", a, b)
	}
	return ""
}

func handler(o client.Object) string {
	return "handler " + o.(*nodev1.RuntimeClass).Handler //nolint:forcetypeassert // of the prop's own kind
}

func handlers(here, there client.Object) string {
	if a, b := handler(here), handler(there); a != b {
		return fmt.Sprintf("it has %s on the source and %s on the destination", a, b)
	}
	return ""
}
