package move_test

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// unmarked checks that no annotation of a move is left on any object of either namespace, of whatever kind
// the API server has, nor on a volume of theirs.
func (s *migration) unmarked() {
	s.t.Helper()
	for side, on := range map[string]*end{"source": s.source, "destination": s.destination} {
		for _, resource := range s.served(on) {
			s.unmarkedOf(side, on, resource)
		}
	}
	for name, o := range s.objects() {
		s.unmarkedBy(name, o.GetAnnotations())
	}
}

func (s *migration) unmarkedBy(name string, annotations map[string]string) {
	s.t.Helper()
	for key := range annotations {
		if strings.HasPrefix(key, "stsmigrate.dev/") {
			s.t.Errorf("%s still has the annotation %s", name, key)
		}
	}
}

func (s *migration) unmarkedOf(side string, on *end, resource schema.GroupVersionResource) {
	s.t.Helper()
	c, err := metadata.NewForConfig(on.cluster.Config())
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := c.Resource(resource).Namespace(on.namespace).List(s.t.Context(), metav1.ListOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return // the kind was removed meanwhile, or cannot be listed in spite of discovery
	}
	if err != nil {
		s.t.Fatalf("listing %s: %v", resource, err)
	}
	for _, o := range list.Items {
		s.unmarkedBy(side+" "+resource.Resource+"/"+o.Name, o.Annotations)
	}
}

// served returns all namespaced kinds that can be listed.
func (s *migration) served(on *end) []schema.GroupVersionResource {
	s.t.Helper()
	c, err := discovery.NewDiscoveryClientForConfig(on.cluster.Config())
	if err != nil {
		s.t.Fatal(err)
	}
	lists, err := c.ServerPreferredNamespacedResources()
	if err != nil {
		s.t.Fatal(err)
	}
	var out []schema.GroupVersionResource
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && !strings.Contains(r.Name, "/") {
				out = append(out, group.WithResource(r.Name))
			}
		}
	}
	if len(out) < 20 {
		s.t.Fatalf("the API server says that it has %v", out)
	}
	return out
}
