package expansion

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Place is what a pod gets from the namespace and the cluster that it runs in.
type Place struct {
	Namespace string
	// Services are those of the namespace: every container gets variables with their addresses.
	Services []corev1.Service
	// ConfigMaps are the data of those that the pod may name. Of a Secret only the keys are known: no value gets here.
	ConfigMaps map[string]map[string]string
	Secrets    map[string][]string
}

// These stand for what nothing but the node knows, alike on both sides.
const (
	Node = "(spec.nodeName)"
	Host = "(status.hostIP)"
)

// Expand returns the pod with every text as the kubelet expands it: the variables of the containers, commands, arguments,
// the directories of their mounts, the commands of their probes and the files of the downward API. What only a node, or
// a Secret, knows is a word in parentheses.
func Expand(pod *corev1.Pod, at Place) *corev1.Pod {
	out := pod.DeepCopy()
	for _, list := range [][]corev1.Container{out.Spec.InitContainers, out.Spec.Containers} {
		for k := range list {
			at.container(pod, &list[k])
		}
	}
	for k := range out.Spec.Volumes {
		v := &out.Spec.Volumes[k]
		if v.DownwardAPI != nil {
			at.files(pod, v.DownwardAPI.Items)
		}
		if v.Projected == nil {
			continue
		}
		for n := range v.Projected.Sources {
			if d := v.Projected.Sources[n].DownwardAPI; d != nil {
				at.files(pod, d.Items)
			}
		}
	}
	return out
}

// Variables returns what a container of the pod gets as its environment.
func Variables(pod *corev1.Pod, c corev1.Container, at Place) map[string]string {
	all, _ := at.variables(pod, c)
	return all
}

// container expands the texts of one container.
func (at Place) container(pod *corev1.Pod, c *corev1.Container) {
	all, own := at.variables(pod, *c)
	fixed := map[string]string{} // a probe gets the values as they are written, and those of references empty
	for _, e := range c.Env {
		fixed[e.Name] = e.Value
	}
	for k := range c.Env {
		e := &c.Env[k]
		value, defined := own[e.Name]
		if last := lastOf(c.Env, e.Name); last != k || !defined {
			continue
		}
		e.Value, e.ValueFrom = value, nil
	}
	each(c.Command, all)
	each(c.Args, all)
	for k := range c.VolumeMounts {
		c.VolumeMounts[k].SubPathExpr = Filled(c.VolumeMounts[k].SubPathExpr, all)
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p != nil && p.Exec != nil {
			each(p.Exec.Command, fixed)
		}
	}
}

func lastOf(env []corev1.EnvVar, name string) (at int) {
	for k, e := range env {
		if e.Name == name {
			at = k
		}
	}
	return at
}

func each(texts []string, by map[string]string) {
	for k := range texts {
		texts[k] = Filled(texts[k], by)
	}
}

// variables returns the whole environment of a container, and the part that its entries define.
func (at Place) variables(pod *corev1.Pod, c corev1.Container) (all, own map[string]string) {
	links := at.links(pod)
	own = map[string]string{}
	for _, from := range c.EnvFrom {
		switch {
		case from.ConfigMapRef != nil:
			for k, v := range at.ConfigMaps[from.ConfigMapRef.Name] {
				own[from.Prefix+k] = v
			}
		case from.SecretRef != nil:
			for _, k := range at.Secrets[from.SecretRef.Name] {
				own[from.Prefix+k] = secret(from.SecretRef.Name, k)
			}
		}
	}
	for _, e := range c.Env {
		value, defined := e.Value, true
		if value == "" && e.ValueFrom != nil {
			value, defined = at.referred(pod, c, *e.ValueFrom)
		} else {
			value = filled(value, own, links)
		}
		if defined {
			own[e.Name] = value
		}
	}
	all = maps.Clone(links)
	maps.Copy(all, own)
	return all, own
}

// secret stands for the value of a key.
func secret(name, key string) string { return fmt.Sprintf("(Secret %s, key %s)", name, key) }

// referred returns the value to which a variable refers, and whether there is one.
func (at Place) referred(pod *corev1.Pod, c corev1.Container, from corev1.EnvVarSource) (string, bool) {
	switch {
	case from.FieldRef != nil:
		return at.field(pod, from.FieldRef.FieldPath), true
	case from.ResourceFieldRef != nil:
		return amount(pod, c, *from.ResourceFieldRef), true
	case from.ConfigMapKeyRef != nil:
		v, there := at.ConfigMaps[from.ConfigMapKeyRef.Name][from.ConfigMapKeyRef.Key]
		return v, there
	case from.SecretKeyRef != nil:
		r := from.SecretKeyRef
		return secret(r.Name, r.Key), slices.Contains(at.Secrets[r.Name], r.Key)
	}
	return "", false
}

// field returns a field of the downward API.
func (at Place) field(pod *corev1.Pod, path string) string {
	if base, key, ok := strings.Cut(path, "['"); ok {
		key = strings.TrimSuffix(key, "']")
		if base == "metadata.labels" {
			return pod.Labels[key]
		}
		return pod.Annotations[key]
	}
	switch path {
	case "metadata.name":
		return pod.Name
	case "metadata.namespace":
		return at.Namespace
	case "metadata.labels":
		return fmt.Sprint(pod.Labels)
	case "metadata.annotations":
		return fmt.Sprint(pod.Annotations)
	case "spec.serviceAccountName":
		return cmp.Or(pod.Spec.ServiceAccountName, "default")
	case "status.hostIPs":
		return Host
	}
	return "(" + path + ")"
}

// amount returns a request or a limit of a container, in the unit that is asked for.
func amount(pod *corev1.Pod, c corev1.Container, ref corev1.ResourceFieldSelector) string {
	if ref.ContainerName != "" {
		for _, o := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if o.Name == ref.ContainerName {
				c = o
			}
		}
	}
	kind, name, _ := strings.Cut(ref.Resource, ".")
	list := c.Resources.Requests
	if kind == "limits" {
		list = c.Resources.Limits
	}
	q, there := list[corev1.ResourceName(name)]
	if !there {
		return "(" + ref.Resource + " of the node)"
	}
	unit := ref.Divisor
	if unit.IsZero() {
		unit = resource.MustParse("1")
	}
	if name == string(corev1.ResourceCPU) {
		return strconv.FormatInt(ceil(q.MilliValue(), unit.MilliValue()), 10)
	}
	return strconv.FormatInt(ceil(q.Value(), unit.Value()), 10)
}

func ceil(n, by int64) int64 {
	if by <= 0 {
		return n
	}
	return (n + by - 1) / by
}

// files puts the content of the files of the downward API in the place of the fields that they name.
func (at Place) files(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile) {
	for k := range items {
		if r := items[k].FieldRef; r != nil {
			r.FieldPath = at.field(pod, r.FieldPath)
		}
	}
}

// links returns the variables that the Services of the namespace make.
func (at Place) links(pod *corev1.Pod) map[string]string {
	out := map[string]string{"KUBERNETES_SERVICE_HOST": "(the API server)", "KUBERNETES_SERVICE_PORT": "(the port of the API server)"}
	if pod.Spec.EnableServiceLinks != nil && !*pod.Spec.EnableServiceLinks {
		return out
	}
	for _, s := range at.Services {
		if s.Spec.ClusterIP == corev1.ClusterIPNone || s.Spec.Type == corev1.ServiceTypeExternalName {
			continue
		}
		name := Prefix(s.Name)
		address := fmt.Sprintf("(address of Service %s)", s.Name)
		out[name+"_SERVICE_HOST"] = address
		for n, p := range s.Spec.Ports {
			port := strconv.Itoa(int(p.Port))
			if n == 0 {
				out[name+"_SERVICE_PORT"], out[name+"_PORT"] = port, strings.ToLower(string(cmp.Or(p.Protocol, corev1.ProtocolTCP)))+"://"+address+":"+port
			}
			if p.Name != "" {
				out[name+"_SERVICE_PORT_"+Prefix(p.Name)] = port
			}
		}
	}
	return out
}

// Prefix returns the name of a Service as its variables begin.
func Prefix(service string) string {
	return strings.ToUpper(strings.ReplaceAll(service, "-", "_"))
}
