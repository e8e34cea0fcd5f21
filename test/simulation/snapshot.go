package simulation

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// snapshot returns every object of the world without the fields that differ between runs: versions, UIDs,
// times, and the nodes of pods. VolumeAttachments, Nodes and the record of the plan itself, which stays, are
// left out.
func (w *world) snapshot() map[string]any {
	out := map[string]any{}
	for _, s := range w.stores {
		for _, k := range s.order {
			o := s.objects[k]
			if recordOf(o) || k.kind == kindOf(&storagev1.VolumeAttachment{}) || k.kind == kindOf(&corev1.Node{}) {
				continue
			}
			out[s.name+" "+k.String()] = plain(clone(o))
		}
	}
	return out
}

func plain(o client.Object) client.Object {
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetGeneration(0)
	o.SetCreationTimestamp(metav1.Time{})
	if len(o.GetAnnotations()) == 0 {
		o.SetAnnotations(nil)
	}
	owners := o.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = types.UID("")
	}
	o.SetOwnerReferences(owners)
	switch o := o.(type) {
	case *appsv1.StatefulSet:
		o.Status.ObservedGeneration = 0
	case *policyv1.PodDisruptionBudget:
		o.Status.ObservedGeneration = 0
	case *corev1.Pod:
		o.Spec.NodeName = ""
		for k := range o.Status.Conditions {
			o.Status.Conditions[k].LastTransitionTime = metav1.Time{}
		}
	case *corev1.PersistentVolume:
		if o.Spec.ClaimRef != nil {
			o.Spec.ClaimRef.UID = ""
		}
	}
	return o
}

// marked lists the objects that still carry a mark or label of ours.
func (w *world) marked() []string {
	var out []string
	for _, s := range w.stores {
		for _, k := range s.order {
			o := clone(s.objects[k])
			_, labeled := o.GetLabels()[plans.PlanLabel]
			if !recordOf(o) && (plans.Unmark(o) || labeled) {
				out = append(out, s.name+" "+k.String())
			}
		}
	}
	return out
}

// recordOf reports whether an object is part of the record of a plan.
func recordOf(o client.Object) bool {
	_, labeled := o.GetLabels()[plans.PlanLabel]
	return labeled && kindOf(o) == "ConfigMap"
}

// counts returns how many objects were created and removed, by kind and cluster. VolumeAttachments and Jobs are left
// out.
func (w *world) counts() map[string]int {
	out := map[string]int{}
	for _, s := range w.stores {
		for _, what := range slices.Sorted(maps.Keys(s.counts)) {
			// A pod that is restarted is attached again, and another process asks the gates again (S19).
			if !strings.Contains(what, "VolumeAttachment") && !strings.Contains(what, " Job ") {
				out[s.name+": "+what] = s.counts[what]
			}
		}
	}
	return out
}
