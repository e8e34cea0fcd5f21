package scheduling

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	podresource "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
)

// Pod is what a scheduler has to know of a pod. Of a pod that has a node it keeps little, so that all pods of a cluster
// fit into memory.
type Pod struct {
	Namespace, Name string
	Labels          labels.Set
	// Node is where it runs, or, of a pod that arrives, the only node that it may have.
	Node string
	// Going reports that it is being deleted: topology spread does not count it any more.
	Going    bool
	Priority int32
	// Disks are the volumes that are attached for it.
	Disks []Disk
	takes takes
	rules rules
}

// Disk is a volume that is attached to the node of its pod.
type Disk struct{ Driver, Handle string }

// takes is what a pod takes of a node.
type takes struct {
	requests amounts
	ports    []hostPort
}

// amounts are resources as the scheduler counts them: CPU in thousandths, everything else in units.
type amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) amounts {
	out := amounts{}
	for name, q := range list {
		if out[name] = q.Value(); name == corev1.ResourceCPU {
			out[name] = q.MilliValue()
		}
	}
	return out
}

// hostPort is a port of the node that a container listens on.
type hostPort struct {
	ip       string
	protocol corev1.Protocol
	port     int32
}

const everyAddress = "0.0.0.0"

func (p hostPort) conflicts(other hostPort) bool {
	return p.port == other.port && p.protocol == other.protocol && (p.ip == other.ip || p.ip == everyAddress || other.ip == everyAddress)
}

// rules are what a pod asks of other pods.
type rules struct {
	affinity, apart []term
	spread          []spread
}

// term is a required term of pod affinity or anti-affinity. The namespace of its own pod counts where it names none.
type term struct {
	key        string
	pods       labels.Selector
	namespaces map[string]bool
	selected   labels.Selector // which namespaces too, by their labels
}

// spread is a topology spread constraint that keeps a pod from a node.
type spread struct {
	key                 string
	pods                labels.Selector
	maxSkew, minDomains int
	honors
}

// PodOf returns what a scheduler has to know of a pod that runs, or is to come.
func PodOf(p *corev1.Pod) (Pod, error) {
	out := Pod{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels, Node: p.Spec.NodeName, Going: p.DeletionTimestamp != nil, Priority: ptr.Deref(p.Spec.Priority, 0)}
	out.takes.requests = amountsOf(podresource.PodRequests(p, podresource.PodResourcesOptions{UseStatusResources: len(p.Status.ContainerStatuses) > 0}))
	out.takes.requests[corev1.ResourcePods] = 1
	out.takes.ports = hostPorts(p.Spec)
	var err error
	if out.rules, err = rulesOf(p); err != nil {
		return Pod{}, fmt.Errorf("pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return out, nil
}

// hostPorts returns the ports of the node that a pod takes. In the network of the node these are all of its ports.
func hostPorts(spec corev1.PodSpec) (out []hostPort) {
	containers := spec.Containers
	for _, c := range spec.InitContainers {
		if ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			containers = append(containers[:len(containers):len(containers)], c)
		}
	}
	for _, c := range containers {
		for _, p := range c.Ports {
			port := p.HostPort
			if spec.HostNetwork {
				port = p.ContainerPort
			}
			if port > 0 {
				h := hostPort{ip: p.HostIP, protocol: p.Protocol, port: port}
				if h.ip == "" {
					h.ip = everyAddress
				}
				if h.protocol == "" {
					h.protocol = corev1.ProtocolTCP
				}
				out = append(out, h)
			}
		}
	}
	return out
}

func rulesOf(p *corev1.Pod) (out rules, err error) {
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		if out.affinity, err = termsOf(p, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution); err != nil {
			return out, err
		}
	}
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		if out.apart, err = termsOf(p, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution); err != nil {
			return out, err
		}
	}
	if p.Spec.NodeName != "" {
		return out, nil // spread counts for a pod that is to be placed alone
	}
	for _, c := range p.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		pods, err := selects(p.Labels, c.LabelSelector, c.MatchLabelKeys, nil)
		if err != nil {
			return out, err
		}
		out.spread = append(out.spread, spread{
			key: c.TopologyKey, pods: pods, maxSkew: int(c.MaxSkew), minDomains: int(ptr.Deref(c.MinDomains, 1)),
			honors: honorsOf(c),
		})
	}
	return out, nil
}

func termsOf(p *corev1.Pod, terms []corev1.PodAffinityTerm) (out []term, err error) {
	for _, t := range terms {
		of, err := termOf(p, t)
		if err != nil {
			return nil, err
		}
		out = append(out, of)
	}
	return out, nil
}

func termOf(p *corev1.Pod, of corev1.PodAffinityTerm) (t term, err error) {
	t = term{key: of.TopologyKey, namespaces: map[string]bool{}}
	if t.pods, err = selects(p.Labels, of.LabelSelector, of.MatchLabelKeys, of.MismatchLabelKeys); err != nil {
		return t, err
	}
	if t.selected, err = metav1.LabelSelectorAsSelector(of.NamespaceSelector); err != nil {
		return t, err
	}
	for _, name := range of.Namespaces {
		t.namespaces[name] = true
	}
	if len(of.Namespaces) == 0 && of.NamespaceSelector == nil {
		t.namespaces[p.Namespace] = true
	}
	return t, nil
}

// selects returns the selector of a rule as it is meant in a pod with these labels.
func selects(own map[string]string, of *metav1.LabelSelector, match, mismatch []string) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(Meant(own, of, match, mismatch))
}

// Meant returns the selector of a rule with what the own labels of its pod add. An API server adds the same to a pod that
// is created, and nothing to a template.
func Meant(own map[string]string, of *metav1.LabelSelector, match, mismatch []string) *metav1.LabelSelector {
	if of == nil {
		return nil
	}
	of = of.DeepCopy()
	add := func(keys []string, op metav1.LabelSelectorOperator) {
		for _, key := range keys {
			if value, there := own[key]; there {
				of.MatchExpressions = append(of.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: []string{value}})
			}
		}
	}
	add(match, metav1.LabelSelectorOpIn)
	add(mismatch, metav1.LabelSelectorOpNotIn)
	return of
}

// Ports returns the ports of the node that the pod takes.
func (p *Pod) Ports() (out []int32) {
	for _, h := range p.takes.ports {
		out = append(out, h.port)
	}
	return out
}

// Elsewhere reports whether a rule of the pod is about pods of another namespace than its own.
func (p *Pod) Elsewhere() bool {
	return slices.ContainsFunc(p.terms(), func(t term) bool {
		labelled, _ := t.selected.Requirements()
		return t.selected.Empty() || len(labelled) > 0 || len(t.namespaces) != 1 || !t.namespaces[p.Namespace]
	})
}

// SelectsNamespaces reports whether a rule of the pod means namespaces by their labels.
func (p *Pod) SelectsNamespaces() bool {
	return slices.ContainsFunc(p.terms(), func(t term) bool {
		labelled, _ := t.selected.Requirements()
		return len(labelled) > 0
	})
}

func (p *Pod) terms() []term { return slices.Concat(p.rules.affinity, p.rules.apart) }
