package placeholder

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresource "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling"
	"github.com/stsmigrate/stsmigrate/plans"
)

// The labels of a placeholder: Label has the name of its plan, SetLabel that of the set for which it holds a place.
const (
	Label    = plans.PlaceholderLabel
	SetLabel = "stsmigrate.dev/placeholder-for"
	// TagAnnotation tells of which pod it was made: one that was made of another template proves nothing.
	TagAnnotation = "stsmigrate.dev/placeholder-of"
)

// notServing is a condition that no program sets, so that a placeholder is never Ready: no budget and no Service counts it, not even
// one that selects every pod of a namespace.
const notServing = "stsmigrate.dev/serving"

const (
	// tools is the volume with the waiting program, and where it is mounted.
	tools    = "stsmigrate-placeholder"
	toolsDir = "/.stsmigrate"
	// maxTerms is how many terms node affinity may have. The API server knows no limit, the scheduler asks each of each node.
	maxTerms = 128
)

// Program is what a placeholder's containers run. Without an image they are told to run a program that no image has: they
// end after the images are pulled and the volumes are mounted, and are tried again.
type Program struct {
	// Image has the waiting program at /placeholder. It can put a copy of itself into a directory.
	Image string
	// Reach is what must be reached, as the plan says it; Targets are the addresses that this stands for now.
	Reach, Targets []string
	// Reports keeps the program from failing where something is not reached.
	Reports bool
}

// needed reports whether a placeholder without the program would not do.
func (p Program) needed() bool { return len(p.Reach) > 0 }

// Place is what a placeholder is made of.
type Place struct {
	// Pod is the pod of the ordinal as the controller of its set will make it.
	Pod *corev1.Pod
	// Name is that of the placeholder, Plan and Set are those of its plan and its set.
	Name, Plan, Set string
	// Owner is the set of its side: its placeholders go with the set.
	Owner metav1.OwnerReference
	// Tag tells placeholders of different pods apart.
	Tag string
	// Reach says from which nodes the volumes behind these claims can be reached: one selector for each that says so.
	Reach []corev1.NodeSelector
	// Like selects the pods of the set.
	Like *metav1.LabelSelector
	// Full are the places that the spread of the set leaves no room in, by topology key.
	Full map[string][]string
	// Alone reports that the terms of pod affinity find no pod yet, and Others that there are placeholders of the set.
	Alone, Others bool
	// PriorityClass is a class below all others, or "": then the placeholder has the priority that pods have there.
	PriorityClass string
	Program       Program
	// Without is why it is made without the program, or "".
	Without string
	// Deadline is how long it runs at most, in seconds, if no process takes it away.
	Deadline int64
}

// Make returns the placeholder. What it does not stand for is what Unproven returns.
func Make(p Place) (pod *corev1.Pod, err error) {
	of := p.Pod.DeepCopy()
	pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: p.Name, Annotations: of.Annotations,
			Labels: map[string]string{Label: p.Plan, SetLabel: p.Set, "app.kubernetes.io/managed-by": "stsmigrate"},
		},
		Spec: of.Spec,
	}
	if p.Owner.UID != "" {
		pod.OwnerReferences = []metav1.OwnerReference{p.Owner}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[TagAnnotation] = p.Tag
	if p.Without != "" {
		pod.Annotations[WithoutAnnotation] = p.Without
	}
	spec := &pod.Spec
	if spec.Affinity, err = p.affinity(of); err != nil {
		return nil, err
	}
	for k := range spec.TopologySpreadConstraints {
		c := &spec.TopologySpreadConstraints[k]
		c.LabelSelector, c.MatchLabelKeys = scheduling.Meant(of.Labels, c.LabelSelector, c.MatchLabelKeys, nil), nil
	}
	p.spread(spec)
	total := podresource.PodRequests(of, podresource.PodResourcesOptions{})
	spec.ResourceClaims = nil
	// A sidecar is an init container that goes on running: its image is pulled and its room is needed like that of any other.
	spec.Containers = append(spec.Containers, sidecars(spec.InitContainers)...)
	spec.InitContainers, spec.EphemeralContainers = nil, nil
	volumes(spec)
	for k := range spec.Containers {
		p.wait(&spec.Containers[k])
	}
	p.program(spec)
	makeUp(pod, total)
	spec.NodeName, spec.DeprecatedServiceAccount = "", ""
	p.rest(spec)
	if p.PriorityClass != "" {
		spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = p.PriorityClass, nil, nil
	}
	return pod, nil
}

func sidecar(c corev1.Container) bool {
	return ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
}

func sidecars(all []corev1.Container) (out []corev1.Container) {
	for _, c := range all {
		if sidecar(c) {
			c.RestartPolicy = nil
			out = append(out, c)
		}
	}
	return out
}

func ordinary(all []corev1.Container) []corev1.Container {
	return slices.DeleteFunc(slices.Clone(all), sidecar)
}

// wait lets a container do nothing with everything that it has mounted.
func (p Place) wait(c *corev1.Container) {
	c.Command, c.Args = []string{toolsDir + "/placeholder", "wait"}, nil
	c.LivenessProbe, c.ReadinessProbe, c.StartupProbe, c.Lifecycle = nil, nil, nil, nil
	c.VolumeDevices, c.RestartPolicyRules = nil, nil
	c.Resources.Claims = nil
	c.Stdin, c.StdinOnce, c.TTY, c.TerminationMessagePath = false, false, false, ""
	if p.brings(&p.Pod.Spec) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: tools, MountPath: toolsDir, ReadOnly: true})
	}
}

// volumes puts an empty directory in the place of each claim: one that moves arrives only with the ordinal, and one that
// all ordinals mount may be mounted by no other pod.
func volumes(spec *corev1.PodSpec) {
	for k := range spec.Volumes {
		if v := &spec.Volumes[k]; v.PersistentVolumeClaim != nil {
			v.VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		}
	}
}

// brings reports whether the containers get the waiting program: it is one for Linux.
func (p Place) brings(spec *corev1.PodSpec) bool {
	windows := spec.OS != nil && spec.OS.Name == corev1.Windows || spec.NodeSelector[corev1.LabelOSStable] == string(corev1.Windows)
	return p.Program.Image != "" && !windows
}

// program brings the waiting program into images that have no shell.
func (p Place) program(spec *corev1.PodSpec) {
	if !p.brings(spec) {
		return
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: tools, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	spec.InitContainers = []corev1.Container{{
		Name: tools, Image: p.Program.Image, Command: []string{"/placeholder", "install", toolsDir},
		Resources:       corev1.ResourceRequirements{Requests: within(spec.Containers[0].Resources.Requests), Limits: within(spec.Containers[0].Resources.Limits)},
		VolumeMounts:    []corev1.VolumeMount{{Name: tools, MountPath: toolsDir}},
		SecurityContext: restricted(),
	}}
	if p.Program.needed() {
		asks := *spec.InitContainers[0].DeepCopy()
		asks.Name, asks.Command, asks.VolumeMounts = asking, p.Program.command(len(spec.Containers)), nil
		spec.InitContainers = append(spec.InitContainers, asks)
	}
}

// little is what the program needs.
func little() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
}

// within is what the program asks for: what it needs, of what the first container asks for, and no more than that. So a
// placeholder asks for no more than its pod, and for nothing else.
func within(first corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, needs := range little() {
		if has, asked := first[name]; asked {
			if has.Cmp(needs) < 0 {
				needs = has
			}
			out[name] = needs
		}
	}
	return out
}

// restricted is what the strictest Pod Security Standard demands.
func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: ptr.To[int64](65532), RunAsNonRoot: ptr.To(true), AllowPrivilegeEscalation: new(bool), ReadOnlyRootFilesystem: ptr.To(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// makeUp raises the requests of the first container, and its limits with them, until the placeholder takes the room that
// the pod of the ordinal takes with its init containers.
func makeUp(pod *corev1.Pod, total corev1.ResourceList) {
	first := &pod.Spec.Containers[0].Resources
	has := podresource.PodRequests(pod, podresource.PodResourcesOptions{})
	for name, want := range total {
		missing := want.DeepCopy()
		if missing.Sub(has[name]); missing.Sign() <= 0 {
			continue
		}
		raise := func(list *corev1.ResourceList) {
			if *list == nil {
				*list = corev1.ResourceList{}
			}
			q := (*list)[name]
			q.Add(missing)
			(*list)[name] = q
		}
		raise(&first.Requests)
		if limit, limited := first.Limits[name]; limited && limit.Cmp(first.Requests[name]) < 0 {
			raise(&first.Limits)
		}
	}
}
