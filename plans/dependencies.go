package plans

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Dependencies lists the ConfigMaps, Secrets, ServiceAccounts and the governing
// Service that the set names, sorted and without repetition. What the control
// plane makes in every namespace by itself is left out.
func Dependencies(set *appsv1.StatefulSet) []Dependency {
	seen := map[Dependency]bool{}
	add := func(kind, name string) {
		if name != "" {
			seen[Dependency{Kind: kind, Name: name}] = true
		}
	}
	add("Service", set.Spec.ServiceName)
	spec := set.Spec.Template.Spec
	add("ServiceAccount", spec.ServiceAccountName)
	for _, s := range spec.ImagePullSecrets {
		add("Secret", s.Name)
	}
	for _, v := range spec.Volumes {
		ofVolume(v.VolumeSource, add)
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		ofContainer(c, add)
	}
	delete(seen, Dependency{Kind: "ServiceAccount", Name: "default"})
	delete(seen, Dependency{Kind: "ConfigMap", Name: "kube-root-ca.crt"})
	var out []Dependency
	for d := range seen {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Dependency) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func ofVolume(v corev1.VolumeSource, add func(kind, name string)) {
	if v.ConfigMap != nil {
		add("ConfigMap", v.ConfigMap.Name)
	}
	if v.Secret != nil {
		add("Secret", v.Secret.SecretName)
	}
	if v.CSI != nil && v.CSI.NodePublishSecretRef != nil {
		add("Secret", v.CSI.NodePublishSecretRef.Name)
	}
	if v.Projected == nil {
		return
	}
	for _, p := range v.Projected.Sources {
		if p.ConfigMap != nil {
			add("ConfigMap", p.ConfigMap.Name)
		}
		if p.Secret != nil {
			add("Secret", p.Secret.Name)
		}
	}
}

func ofContainer(c corev1.Container, add func(kind, name string)) {
	for _, e := range c.EnvFrom {
		if e.ConfigMapRef != nil {
			add("ConfigMap", e.ConfigMapRef.Name)
		}
		if e.SecretRef != nil {
			add("Secret", e.SecretRef.Name)
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			add("ConfigMap", r.Name)
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			add("Secret", r.Name)
		}
	}
}
