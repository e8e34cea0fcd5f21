package pods

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// Images reports, for each registry, what is known about pulling from it in another cluster. Only a node can
// prove that it gets an image, hence this check never blocks. Where every node has the images already, it
// reports nothing.
func Images(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if i.Plan.OneCluster() {
		return nil, nil
	}
	template, err := i.Arriving()
	if err != nil {
		return nil, err
	}
	spec := template.Spec
	nodes, err := cached(ctx, i)
	if err != nil {
		return nil, err
	}
	secrets, err := pullSecrets(ctx, i, spec)
	if err != nil {
		return nil, err
	}
	wanted := imagesOf(spec)
	var out []check.Finding
	for _, registry := range slices.Sorted(maps.Keys(wanted)) {
		images := wanted[registry]
		have, anywhere := nodes.have(images)
		if anywhere {
			continue
		}
		out = append(out, check.Finding{
			Level: check.Warn, Object: "registry " + registry, Saw: fmt.Sprintf("the destination is to pull %s; %s; %s", images, entryFor(registry, secrets), have),
			Want: "its nodes to reach the registry and to be let in", Remedy: "try one of the images on a node there, or name another registry with --patch",
		})
	}
	return out, nil
}

// image is an image and its pull policy.
type image struct {
	ref    string
	policy corev1.PullPolicy
}

type images []image

// String lists the images in the words of a finding.
func (list images) String() string {
	var out []string
	for _, i := range list {
		out = append(out, fmt.Sprintf("%s (imagePullPolicy %s)", i.ref, i.policy))
	}
	return strings.Join(out, ", ")
}

// imagesOf lists the images that a pod pulls, by registry.
func imagesOf(spec corev1.PodSpec) map[string]images {
	out := map[string]images{}
	add := func(ref string, policy corev1.PullPolicy) {
		if ref == "" {
			return
		}
		i := image{ref, cmp.Or(policy, corev1.PullIfNotPresent)}
		registry, _ := located(ref)
		if !slices.Contains(out[registry], i) {
			out[registry] = append(out[registry], i)
		}
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		add(c.Image, c.ImagePullPolicy)
	}
	for _, v := range spec.Volumes {
		if v.Image != nil {
			add(v.Image.Reference, v.Image.PullPolicy)
		}
	}
	return out
}

// located splits an image's name into its registry and the rest, and fills in the usual defaults, as nodes do
// when they list their images.
func located(ref string) (registry, rest string) {
	registry, rest = "docker.io", ref
	if first, more, ok := strings.Cut(ref, "/"); ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		registry, rest = first, more
	} else if !ok {
		rest = "library/" + ref
	}
	if last := rest[strings.LastIndex(rest, "/")+1:]; !strings.ContainsAny(last, ":@") {
		rest += ":latest"
	}
	return registry, rest
}

// nodeImages are the images that each node lists; hidden reports that the nodes may not be read.
type nodeImages struct {
	byNode []map[string]bool
	hidden bool
}

func cached(ctx context.Context, i check.Inspection) (s nodeImages, err error) {
	nodes, err := nodes(ctx, i)
	if err != nil { // only a report: the move itself checks what it needs of the nodes
		return nodeImages{hidden: true}, check.IgnoreForbidden(err)
	}
	for _, n := range nodes {
		have := map[string]bool{}
		for _, image := range n.Status.Images {
			for _, name := range image.Names {
				registry, rest := located(name)
				have[registry+"/"+rest] = true
			}
		}
		s.byNode = append(s.byNode, have)
	}
	return s, nil
}

// have returns, in words, how many nodes list all of the images. everywhere reports that all nodes do and
// that none of the images is always pulled. A node lists at most fifty images, so an image that is not listed
// may be there.
func (s nodeImages) have(list images) (words string, everywhere bool) {
	if s.hidden {
		return "its nodes could not be looked at", false
	}
	n, always := 0, false
	for _, have := range s.byNode {
		if !slices.ContainsFunc(list, func(i image) bool { registry, rest := located(i.ref); return !have[registry+"/"+rest] }) {
			n++
		}
	}
	for _, i := range list {
		always = always || i.policy == corev1.PullAlways
	}
	return fmt.Sprintf("%d of %d nodes list them already", n, len(s.byNode)), n == len(s.byNode) && n > 0 && !always
}

// pullSecret is a Secret that the pods pull with, and the registries for which it has an entry.
type pullSecret struct {
	name  string
	hosts []string
}

// pullSecrets reads the pull secrets of the destination's pods, from the template or else from their account.
// It reads them as they will be: a Secret that the plan copies is read on the source.
func pullSecrets(ctx context.Context, i check.Inspection, spec corev1.PodSpec) (out []pullSecret, err error) {
	refs := spec.ImagePullSecrets
	if len(refs) == 0 {
		account, err := eventual(ctx, i, plans.Dependency{Kind: "ServiceAccount", Name: cmp.Or(spec.ServiceAccountName, "default")})
		if check.IgnoreForbidden(err) != nil {
			return nil, err
		}
		if a, ok := account.(*corev1.ServiceAccount); ok {
			refs = a.ImagePullSecrets
		}
	}
	for _, r := range refs {
		o, err := eventual(ctx, i, plans.Dependency{Kind: "Secret", Name: r.Name})
		if check.IgnoreForbidden(err) != nil {
			return nil, err
		}
		if s, ok := o.(*corev1.Secret); ok {
			out = append(out, pullSecret{r.Name, hostsOf(s)})
		}
	}
	return out, nil
}

// eventual reads a dependency as it will be on the destination: the object there, or else the one that the
// plan copies there.
func eventual(ctx context.Context, i check.Inspection, d plans.Dependency) (o client.Object, err error) {
	if o, err = i.Dependency(ctx, plans.Destination, d); err != nil || o != nil {
		return o, err
	}
	for _, planned := range i.Plan.Dependencies {
		if planned.Kind == d.Kind && planned.Name == d.Name && planned.Required == "" {
			return i.Dependency(ctx, plans.Source, d)
		}
	}
	return nil, nil
}

// hostsOf returns the registries for which a pull secret has entries, and nothing of their content.
func hostsOf(s *corev1.Secret) []string {
	var config struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if raw := s.Data[corev1.DockerConfigJsonKey]; weight.Unmarshal(raw, &config) != nil || config.Auths == nil {
		if weight.Unmarshal(s.Data[corev1.DockerConfigKey], &config.Auths) != nil {
			return nil // a node could not read this pull secret either
		}
	}
	var out []string
	for key := range config.Auths {
		key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
		host, _, _ := strings.Cut(key, "/")
		if host == "index.docker.io" || host == "registry-1.docker.io" {
			host = "docker.io"
		}
		out = append(out, host)
	}
	return out
}

func entryFor(registry string, secrets []pullSecret) string {
	if len(secrets) == 0 {
		return "the pods have no pull secret"
	}
	var names []string
	for _, s := range secrets {
		names = append(names, s.name)
		for _, host := range s.hosts {
			// As a node matches: part by part, so that a * stands for one part.
			if ok, err := path.Match(strings.ReplaceAll(host, ".", "/"), strings.ReplaceAll(registry, ".", "/")); ok && err == nil {
				return fmt.Sprintf("pull secret %s has an entry for it", s.name)
			}
		}
	}
	return fmt.Sprintf("none of the pull secrets (%s) has an entry for it", strings.Join(names, ", "))
}
