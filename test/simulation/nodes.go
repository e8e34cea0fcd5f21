package simulation

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/stsmigrate/stsmigrate/plans"
)

// volumesOf lists the volumes of a pod; ok is false until every claim is bound.
func volumesOf(s *store, pod *corev1.Pod) (pvs []*corev1.PersistentVolume, ok bool) {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim, ok := get[*corev1.PersistentVolumeClaim](s, pod.Namespace, v.PersistentVolumeClaim.ClaimName)
		if !ok || claim.Status.Phase != corev1.ClaimBound {
			return nil, false
		}
		pv, ok := get[*corev1.PersistentVolume](s, "", claim.Spec.VolumeName)
		if !ok {
			return nil, false
		}
		pvs = append(pvs, pv)
	}
	return pvs, true
}

// attachable leaves out the volumes that any number of nodes can mount at once.
func attachable(pvs []*corev1.PersistentVolume) []*corev1.PersistentVolume {
	return slices.DeleteFunc(slices.Clone(pvs), func(pv *corev1.PersistentVolume) bool { return pv.Spec.CSI == nil })
}

// scheduler assigns a pod to a node once its claims are bound, and none of them is being deleted. Of the nodes that take it, it
// prefers those with pods that prefer it. What it finds no node for, it says once.
func (w *world) scheduler(s *store) bool {
	for pod := range shuffle(w, all[*corev1.Pod](s)) {
		_, bound := volumesOf(s, pod)
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || !bound || losesClaims(s, pod) || slices.Contains(w.crashing, pod.UID) {
			continue
		}
		var best *corev1.Node
		for node := range shuffle(w, all[*corev1.Node](s)) {
			if w.takes(s, node, pod) && (best == nil || preference(s, node, pod) > preference(s, best, pod)) {
				best = node
			}
		}
		next := clone(pod)
		switch {
		case best != nil:
			next.Spec.NodeName = best.Name
		case w.options.Places == plans.Warm && len(pod.Status.Conditions) == 0 && !w.options.Placeless:
			next.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		default:
			continue
		}
		s.put(next)
		return true
	}
	return false
}

// takes reports whether a node takes a pod.
func (w *world) takes(s *store, node *corev1.Node, pod *corev1.Pod) bool {
	placeless := w.options.Placeless && pod.Labels[plans.PlaceholderLabel] != ""
	named, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	return up(node) && !drained(node) && !placeless && err == nil && named && !w.taken(s, node, pod)
}

// preference is how much the pods on a node prefer to have another one beside them.
func preference(s *store, node *corev1.Node, pod *corev1.Pod) (sum int32) {
	for _, p := range all[*corev1.Pod](s) {
		if p.Spec.NodeName != node.Name || p.Namespace != pod.Namespace || p.Spec.Affinity == nil || p.Spec.Affinity.PodAffinity == nil {
			continue
		}
		for _, t := range p.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			selects, err := metav1.LabelSelectorAsSelector(t.PodAffinityTerm.LabelSelector)
			if must(err); t.PodAffinityTerm.TopologyKey == corev1.LabelHostname && selects.Matches(labels.Set(pod.Labels)) {
				sum += t.Weight
			}
		}
	}
	return sum
}

// losesClaims reports whether a claim of a pod is being deleted.
func losesClaims(s *store, pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		if v.PersistentVolumeClaim == nil {
			return false
		}
		claim, ok := get[*corev1.PersistentVolumeClaim](s, pod.Namespace, v.PersistentVolumeClaim.ClaimName)
		return ok && claim.DeletionTimestamp != nil
	})
}

// hasEnded reports whether the containers of a pod have ended for good.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func nodeIsReady() []corev1.NodeCondition {
	return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
}

// up reports whether a node is Ready.
func up(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// drained reports whether a node takes no pods because it is being drained.
func drained(node *corev1.Node) bool {
	return node.Spec.Unschedulable || node.DeletionTimestamp != nil || len(node.Spec.Taints) > 0
}

func outOfService(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// taken reports whether a node has no room for a pod: in options where each pod needs a node of its own, and where a node has
// so many pod slots. An anchor needs a slot alone.
func (w *world) taken(s *store, node *corev1.Node, pod *corev1.Pod) bool {
	slots, room := 0, true
	for _, p := range all[*corev1.Pod](s) {
		if p.Spec.NodeName == node.Name {
			slots++
			room = room && (anchor(p) || anchor(pod))
		}
	}
	return w.options.Slots > 0 && slots >= w.options.Slots || w.options.Spread && !room
}

// kubelet starts pods whose volumes are attached, and ends those that are being deleted. The kubelet of a
// node that is not Ready does nothing. In its place, the collector of pods ends those that are being deleted on a node
// that is said to be out of service.
func (w *world) kubelet(s *store) bool {
	for pod := range shuffle(w, all[*corev1.Pod](s)) {
		node, ok := get[*corev1.Node](s, "", pod.Spec.NodeName)
		switch {
		case !ok || !up(node) && !outOfService(node):
			continue
		case pod.DeletionTimestamp != nil:
			if w.stops(s, pod, node) {
				return true
			}
			continue
		case !up(node):
			continue
		}
		if hasEnded(pod) {
			continue
		}
		if ready(pod) {
			if w.options.MinReady > 0 && !w.aged[pod.UID] {
				w.aged[pod.UID] = true
				return true
			}
			continue
		}
		if w.starts(s, pod, node) {
			return true
		}
	}
	return false
}

// starts is what a kubelet does with a pod that does not run yet. It reports whether it did anything.
func (w *world) starts(s *store, pod *corev1.Pod, node *corev1.Node) bool {
	if !w.mounted(s, pod, node) || slices.Contains(w.crashing, pod.UID) || fails(pod) {
		return false
	}
	if w.partitioned && asksAround(pod) {
		return misses(s, pod)
	}
	next := clone(pod)
	next.Status.InitContainerStatuses = nil
	next.Status.Phase = corev1.PodRunning
	next.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: readiness(pod)}}
	if ready(next) || pod.Status.Phase != corev1.PodRunning {
		s.put(next)
		return true
	}
	return false
}

// readiness is what a kubelet says of a pod whose containers are ready: nobody here fulfils a gate.
func readiness(pod *corev1.Pod) corev1.ConditionStatus {
	if len(pod.Spec.ReadinessGates) > 0 {
		return corev1.ConditionFalse
	}
	return corev1.ConditionTrue
}

// dates gives the conditions of a pod that have none the time since which they have their status, as kubelets do. Here no two
// of these times are the same, unless whoever writes the pod says so.
func dates(pod, was *corev1.Pod, now metav1.Time) {
	for k := range pod.Status.Conditions {
		c := &pod.Status.Conditions[k]
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = now
		if was == nil {
			continue
		}
		for _, before := range was.Status.Conditions {
			if before.Type == c.Type && before.Status == c.Status {
				c.LastTransitionTime = before.LastTransitionTime
			}
		}
	}
}

// stops is what a kubelet does next with a pod that is being deleted. It reports whether it did anything: some pods
// never end.
func (w *world) stops(s *store, pod *corev1.Pod, node *corev1.Node) bool {
	switch left := w.lingers[pod.UID]; {
	case !up(node) && len(pod.Finalizers) == 0:
		s.remove(keyOf(pod))
	case !up(node):
		return false
	case left < 0, len(pod.Finalizers) > 0 && hasEnded(pod):
		return false
	case left > 0:
		w.lingers[pod.UID]--
	case (w.options.Unattached || len(pod.Finalizers) > 0) && pod.Status.Phase != corev1.PodSucceeded:
		s.put(reported(pod))
	default:
		s.remove(keyOf(pod))
	}
	return true
}

// reported returns a pod whose kubelet has reported the end of its containers.
func reported(pod *corev1.Pod) *corev1.Pod {
	next := clone(pod)
	next.Status.Phase, next.Status.Conditions = corev1.PodSucceeded, nil
	for _, c := range pod.Spec.Containers {
		next.Status.ContainerStatuses = append(next.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}})
	}
	return next
}

func (w *world) mounted(s *store, pod *corev1.Pod, node *corev1.Node) bool {
	pvs, ok := volumesOf(s, pod)
	for _, pv := range attachable(pvs) {
		_, attached := get[*storagev1.VolumeAttachment](s, "", attachment(pv.Name, node.Name))
		ok = ok && attached && slices.Contains(node.Status.VolumesInUse, inUse(pv))
	}
	return ok
}

// goneNode is a node that no cluster has. Nobody removes an attachment to it, and it keeps the volume from no other node.
const goneNode = "gone-node"

func attachment(pv, node string) string { return pv + "." + node }

func inUse(pv *corev1.PersistentVolume) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName("kubernetes.io/csi/" + pv.Spec.CSI.Driver + "^" + pv.Spec.CSI.VolumeHandle)
}

// attacher is the attach-detach controller and the kubelet's report of the volumes in use. A volume is
// reported in use BEFORE it is attached, and detached AFTER it is no longer reported.
func (w *world) attacher(s *store) bool {
	if w.slow[s.name] > 0 {
		w.slow[s.name]--
		return true
	}
	wanted := map[string]bool{}
	for pod := range shuffle(w, all[*corev1.Pod](s)) {
		node, ok := get[*corev1.Node](s, "", pod.Spec.NodeName)
		pvs, bound := volumesOf(s, pod)
		if !ok || !bound || hasEnded(pod) {
			continue
		}
		for _, pv := range attachable(pvs) {
			wanted[attachment(pv.Name, node.Name)] = true
			wanted[node.Name+string(inUse(pv))] = true
			if pod.DeletionTimestamp == nil && s.name != w.jammed && w.attach(s, pv, node) {
				return true
			}
		}
	}
	return w.unreports(s, wanted) || w.detaches(s, wanted)
}

// unreports takes a volume that is not wanted any more out of what a node reports in use.
func (w *world) unreports(s *store, wanted map[string]bool) bool {
	for node := range shuffle(w, all[*corev1.Node](s)) {
		for used := range shuffle(w, slices.Clone(node.Status.VolumesInUse)) {
			if !wanted[node.Name+string(used)] {
				next := clone(node)
				next.Status.VolumesInUse = slices.DeleteFunc(next.Status.VolumesInUse, func(n corev1.UniqueVolumeName) bool { return n == used })
				s.put(next)
				return true
			}
		}
	}
	return false
}

// detaches removes an attachment that is not wanted any more.
func (w *world) detaches(s *store, wanted map[string]bool) bool {
	for va := range shuffle(w, all[*storagev1.VolumeAttachment](s)) {
		if !wanted[va.Name] && s.name != w.stuck && va.Spec.NodeName != goneNode {
			s.remove(keyOf(va))
			return true
		}
	}
	return false
}

func (w *world) attach(s *store, pv *corev1.PersistentVolume, node *corev1.Node) bool {
	for _, va := range all[*storagev1.VolumeAttachment](s) {
		if *va.Spec.Source.PersistentVolumeName == pv.Name && va.Spec.NodeName != node.Name && va.Spec.NodeName != goneNode {
			return false // ReadWriteOnce: the other node must detach it first
		}
	}
	if !slices.Contains(node.Status.VolumesInUse, inUse(pv)) {
		next := clone(node)
		next.Status.VolumesInUse = append(next.Status.VolumesInUse, inUse(pv))
		slices.Sort(next.Status.VolumesInUse) // a set: two orders are no two states
		s.put(next)
		return true
	}
	va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: attachment(pv.Name, node.Name)}}
	if _, ok := get[*storagev1.VolumeAttachment](s, "", va.Name); ok {
		return false
	}
	va.Spec = storagev1.VolumeAttachmentSpec{NodeName: node.Name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name}}
	va.Annotations = map[string]string{"disk": diskOf(pv)}
	must(s.Create(context.TODO(), va))
	return true
}

// roomForPods is what a node can take.
func roomForPods() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourcePods: quantity.MustParse("110")}
}
