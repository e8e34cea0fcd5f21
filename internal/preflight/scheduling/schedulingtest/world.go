// Package schedulingtest makes random worlds for what asks, and for the scheduler itself.
package schedulingtest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling"
)

// World is a small cluster of its own among others, and pods that are to come: its nodes, topologies and namespaces
// have names that no other world has.
type World struct {
	Nodes    []*corev1.Node
	Pods     []*corev1.Pod // that stay
	Waves    []Wave
	Together bool
	Claims   []*corev1.PersistentVolumeClaim
	Volumes  map[string]*corev1.PersistentVolume // by claim
	name     string
	limits   map[string]int  // by node
	ported   map[string]bool // by node, whether a pod has a port of it
	rand     *rand.Rand
}

// Wave is what leaves and arrives in one step.
type Wave struct{ Leave, Arrive []*corev1.Pod }

const driver = "disks.example.com"

func (w *World) chance(percent int) bool { return w.rand.IntN(100) < percent }

func oneOf[T any](w *World, of ...T) T { return of[w.rand.IntN(len(of))] }

// Key is a label of the nodes of this world: world, host or zone.
func (w *World) Key(of string) string { return w.name + ".example.com/" + of }

// Namespace is one of its namespaces: mall, shop or else.
func (w *World) Namespace(of string) string { return w.name + "-" + of }

// Random makes the world of a seed.
func Random(name string, seed uint64) *World {
	//nolint:gosec // a world can be made again
	w := &World{rand: rand.New(rand.NewPCG(seed, 49)), name: name, Volumes: map[string]*corev1.PersistentVolume{}, limits: map[string]int{}, ported: map[string]bool{}}
	for n := range 2 + w.rand.IntN(4) {
		w.node(n)
	}
	template := w.template()
	for n := range w.rand.IntN(6) {
		w.resident(n)
	}
	w.Together = w.chance(30)
	window, left := 1+w.rand.IntN(2), 1+w.rand.IntN(4)
	one := w.chance(50)
	for left > 0 {
		var wave Wave
		for range min(window, left) {
			left--
			w.member(&wave, left, template, one)
		}
		w.Waves = append(w.Waves, wave)
	}
	return w
}

func (w *World) node(n int) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-node-%d", w.name, n), Labels: map[string]string{
		w.Key("world"): "true", w.Key("host"): fmt.Sprint("host-", n), w.Key("zone"): fmt.Sprint("zone-", w.rand.IntN(3)), "disk": oneOf(w, "ssd", "ssd", "hdd"),
	}}}
	if w.chance(8) {
		delete(node.Labels, w.Key("zone"))
	}
	room := corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprint(2 + w.rand.IntN(9))), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse(oneOf(w, "110", "110", "110", "2")), "example.com/gpu": resource.MustParse(fmt.Sprint(w.rand.IntN(3)))}
	node.Status = corev1.NodeStatus{Capacity: room, Allocatable: room}
	if w.chance(20) {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "gpu", Value: "yes", Effect: oneOf(w, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)})
	}
	node.Spec.Unschedulable = w.chance(8)
	if w.chance(25) {
		w.limits[node.Name] = 1 + w.rand.IntN(2)
	}
	w.Nodes = append(w.Nodes, node)
}

func (w *World) cpu(spec *corev1.PodSpec, most int) {
	spec.Containers = []corev1.Container{{Name: "app", Image: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprint(w.rand.IntN(most)))}}}}
}

// template is what the members of the set have in common.
func (w *World) template() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", "rev": "one"}}}
	w.cpu(&p.Spec, 4)
	app := &p.Spec.Containers[0]
	if w.chance(15) {
		app.Resources.Requests["example.com/gpu"] = resource.MustParse("1")
		app.Resources.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	}
	if w.chance(15) {
		first := *app.DeepCopy()
		first.Name, first.Resources.Requests["cpu"], first.Ports = "first", resource.MustParse("2"), nil
		if w.chance(50) {
			first.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		p.Spec.InitContainers = []corev1.Container{first}
	}
	if w.chance(25) {
		app.Ports = []corev1.ContainerPort{{ContainerPort: 7001, HostPort: 7001, HostIP: oneOf(w, "", "10.0.0.1")}}
		if p.Spec.HostNetwork = w.chance(30); p.Spec.HostNetwork {
			app.Ports[0].HostPort, app.Ports[0].HostIP = 0, ""
		}
	}
	if w.chance(15) {
		p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	}
	if w.chance(50) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	}
	p.Spec.Affinity = &corev1.Affinity{}
	if w.chance(10) {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: w.Key("zone"), Operator: corev1.NodeSelectorOpNotIn, Values: []string{"zone-0"}}}}}}}
	}
	if w.chance(40) {
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{w.term(oneOf(w, "web", "web", "cache"))}}
	}
	if w.chance(20) {
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{w.term(oneOf(w, "web", "cache"))}}
	}
	over := w.rand.Perm(2)[:w.rand.IntN(3)]
	for _, n := range over {
		if w.chance(60) {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, w.spread(n))
		}
	}
	return p
}

func (w *World) term(app string) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: w.Key(oneOf(w, "host", "zone")), LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
	switch {
	case w.chance(30):
		t.Namespaces = []string{w.Namespace("mall"), w.Namespace("shop")}
	case w.chance(15):
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"world": w.name, "old": "true"}}
	}
	switch {
	case app == "web" && w.chance(15):
		t.MatchLabelKeys = []string{"rev"}
	case app == "web" && w.chance(10):
		t.MismatchLabelKeys = []string{"rev"}
	}
	return t
}

func (w *World) spread(n int) corev1.TopologySpreadConstraint {
	c := corev1.TopologySpreadConstraint{
		TopologyKey: w.Key([]string{"zone", "host"}[n]), MaxSkew: int32(1 + w.rand.IntN(2)), WhenUnsatisfiable: oneOf(w, corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.ScheduleAnyway), //nolint:gosec // small
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}
	if w.chance(20) && c.WhenUnsatisfiable == corev1.DoNotSchedule {
		c.MinDomains = ptr.To(int32(1 + w.rand.IntN(4))) //nolint:gosec // small
	}
	if w.chance(30) {
		c.NodeAffinityPolicy = ptr.To(oneOf(w, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
	}
	if w.chance(30) {
		c.NodeTaintsPolicy = ptr.To(oneOf(w, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
	}
	if w.chance(20) {
		c.MatchLabelKeys = []string{"rev"}
	}
	return c
}

// resident is a pod that stays: one of the set that has moved already, or another one.
func (w *World) resident(n int) {
	app := oneOf(w, "web", "cache", "other")
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace(oneOf(w, "mall", "shop", "else")), Name: fmt.Sprint("resident-", n), Labels: map[string]string{"app": app, "rev": oneOf(w, "one", "two")}}}
	w.cpu(&p.Spec, 3)
	if w.chance(20) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 7001, HostPort: 7001, HostIP: oneOf(w, "", "10.0.0.1", "10.0.0.2")}}
	}
	if w.chance(20) {
		t := w.term("web")
		t.MatchLabelKeys, t.MismatchLabelKeys = nil, nil
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{t}}}
	}
	if !w.settle(p) {
		return
	}
	if w.limits[p.Spec.NodeName] > 0 && w.chance(40) {
		w.disk(p, "")
	}
	w.Pods = append(w.Pods, p)
}

// settle puts a pod on a node, from where no taint drives it away. No two pods of a node have ports of it: no kubelet would
// let them in.
func (w *World) settle(p *corev1.Pod) bool {
	p.Spec.NodeName, p.Spec.Tolerations = w.Nodes[w.rand.IntN(len(w.Nodes))].Name, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	if len(p.Spec.Containers[0].Ports) == 0 {
		return true
	}
	free := !w.ported[p.Spec.NodeName]
	w.ported[p.Spec.NodeName] = true
	return free
}

// disk gives a pod a volume of its own, in a zone or anywhere.
func (w *World) disk(p *corev1.Pod, zone string) {
	name := "data-" + p.Name
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace + "-" + name}}
	pv.Spec = corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{"storage": resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: p.Namespace + "-" + name}},
		ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: p.Namespace, Name: name},
	}
	if zone != "" {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: w.Key("zone"), Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}}
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}}
	claim.Spec = corev1.PersistentVolumeClaimSpec{AccessModes: pv.Spec.AccessModes, StorageClassName: ptr.To(""), VolumeName: pv.Name, Resources: corev1.VolumeResourceRequirements{Requests: pv.Spec.Capacity}}
	w.Claims, w.Volumes[p.Namespace+"/"+name] = append(w.Claims, claim), pv
}

// member is a pod that comes and, in one cluster, the one of the old namespace that leaves for it.
func (w *World) member(wave *Wave, ordinal int, template *corev1.Pod, one bool) {
	p := template.DeepCopy()
	p.Namespace, p.Name = w.Namespace("mall"), fmt.Sprint("web-", ordinal)
	p.Labels["apps.kubernetes.io/pod-index"] = fmt.Sprint(ordinal)
	if p.Spec.NodeSelector == nil {
		p.Spec.NodeSelector = map[string]string{}
	}
	p.Spec.NodeSelector[w.Key("world")] = "true"
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	if w.chance(30) {
		w.disk(p, oneOf(w, "", "zone-0", "zone-1", "zone-2"))
	}
	wave.Arrive = append(wave.Arrive, p)
	if one && w.chance(80) {
		old := template.DeepCopy()
		old.Namespace, old.Name = w.Namespace("shop"), p.Name
		old.Spec.TopologySpreadConstraints, old.Spec.NodeSelector = nil, nil
		if w.settle(old) {
			wave.Leave = append(wave.Leave, old)
		}
	}
}

// Features names what the pods that come ask for, so that worlds can be chosen in which each is asked for.
func (w *World) Features() []string {
	spec, has := w.Waves[0].Arrive[0].Spec, map[string]bool{"one cluster": len(w.Waves[0].Leave) > 0, "together": w.Together, "volumes": len(w.Volumes) > 0, "limits": len(w.limits) > 0}
	for _, c := range spec.Containers {
		has["ports"] = has["ports"] || len(c.Ports) > 0
	}
	has["network of the node"], has["first containers"], has["tolerations"] = spec.HostNetwork, len(spec.InitContainers) > 0, len(spec.Tolerations) > 2
	of := func(rule string, terms []corev1.PodAffinityTerm) {
		for _, t := range terms {
			has[rule+t.LabelSelector.MatchLabels["app"]] = true
			has[rule+"namespaces"] = has[rule+"namespaces"] || len(t.Namespaces) > 0
			has[rule+"selected"] = has[rule+"selected"] || t.NamespaceSelector != nil
			has[rule+"by labels"] = has[rule+"by labels"] || len(t.MatchLabelKeys)+len(t.MismatchLabelKeys) > 0
		}
	}
	if a := spec.Affinity.PodAffinity; a != nil {
		of("near ", a.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if a := spec.Affinity.PodAntiAffinity; a != nil {
		of("apart ", a.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	for _, c := range spec.TopologySpreadConstraints {
		has["spread "+string(c.WhenUnsatisfiable)], has["spread domains"] = true, has["spread domains"] || c.MinDomains != nil
		has["spread policies"] = has["spread policies"] || c.NodeAffinityPolicy != nil || c.NodeTaintsPolicy != nil
	}
	var out []string
	for name, is := range has {
		if is {
			out = append(out, name)
		}
	}
	return out
}

// EveryPod returns all pods of the world.
func (w *World) EveryPod() []*corev1.Pod {
	out := slices.Clone(w.Pods)
	for _, wave := range w.Waves {
		out = append(append(out, wave.Leave...), wave.Arrive...)
	}
	return out
}

// CSINode is the object with the limit of a node, or nil.
func (w *World) CSINode(node string) *storagev1.CSINode {
	if w.limits[node] == 0 {
		return nil
	}
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}}
	n.Spec.Drivers = []storagev1.CSINodeDriver{{Name: driver, NodeID: node, Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To(int32(w.limits[node]))}}} //nolint:gosec // small
	return n
}

// Namespaces returns those of the world, with their labels.
func (w *World) Namespaces() map[string]labels.Set {
	return map[string]labels.Set{
		w.Namespace("mall"): {"world": w.name}, w.Namespace("shop"): {"world": w.name, "old": "true"}, w.Namespace("else"): {"world": w.name},
	}
}

// Asked is the world as the check sees it.
func (w *World) Asked() (*scheduling.World, scheduling.Question, error) {
	out := &scheduling.World{Namespaces: w.Namespaces(), Limits: map[string]map[string]int{}, Attached: map[string]map[scheduling.Disk]bool{}}
	for _, n := range w.Nodes {
		out.Nodes = append(out.Nodes, *n)
		if w.limits[n.Name] > 0 {
			out.Limits[n.Name] = map[string]int{driver: w.limits[n.Name]}
		}
	}
	var q scheduling.Question
	q.Together = w.Together
	for _, p := range w.Pods {
		of, err := w.pod(p)
		if err != nil {
			return nil, q, err
		}
		out.Pods = append(out.Pods, of)
		for _, d := range of.Disks {
			if out.Attached[p.Spec.NodeName] == nil {
				out.Attached[p.Spec.NodeName] = map[scheduling.Disk]bool{}
			}
			out.Attached[p.Spec.NodeName][d] = true
		}
	}
	for _, wave := range w.Waves {
		var next scheduling.Wave
		for _, p := range wave.Leave {
			of, err := w.pod(p)
			if err != nil {
				return nil, q, err
			}
			next.Leaves = append(next.Leaves, of)
		}
		for _, p := range wave.Arrive {
			of, err := w.pod(p)
			if err != nil {
				return nil, q, err
			}
			a := scheduling.Arrival{Pod: of, Spec: &p.Spec}
			for _, v := range p.Spec.Volumes {
				if pvc := v.PersistentVolumeClaim; pvc != nil {
					if pv := w.Volumes[p.Namespace+"/"+pvc.ClaimName]; pv.Spec.NodeAffinity != nil {
						a.Reach = append(a.Reach, pv.Spec.NodeAffinity.Required)
					}
				}
			}
			next.Arrives = append(next.Arrives, a)
		}
		q.Waves = append(q.Waves, next)
	}
	return out, q, nil
}

func (w *World) pod(p *corev1.Pod) (scheduling.Pod, error) {
	of, err := scheduling.PodOf(p)
	for _, v := range p.Spec.Volumes {
		if pvc := v.PersistentVolumeClaim; pvc != nil {
			csi := w.Volumes[p.Namespace+"/"+pvc.ClaimName].Spec.CSI
			of.Disks = append(of.Disks, scheduling.Disk{Driver: csi.Driver, Handle: csi.VolumeHandle})
		}
	}
	return of, err
}
