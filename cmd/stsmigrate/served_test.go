package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// served is an API server over an in-memory client, with the requests that the commands send in these tests.
type served struct {
	client.Client
	kinds map[string]schema.GroupVersionKind // by resource
	// lives, if not nil, is the Lease of an orchestrator. A watch observes its renewal.
	lives *coordinationv1.Lease
	// before, if not nil, is called with each request.
	before func(*http.Request)
	// away, if not nil, reports that a request is answered as by a server that is not available.
	away func(*http.Request) bool
	// denies, if not nil, reports that who asks has no right to.
	denies func(*http.Request) bool
}

// serve returns a cluster that has these objects, and a kubeconfig with one context per name for it.
func serve(t *testing.T, contexts []string, objects ...client.Object) (*served, string) {
	t.Helper()
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid-of-the-cluster"}})
	// The fake client would add an unknown kind to the scheme at its first use, while other requests read the scheme.
	scheme, declared, consented := clusters.Scheme(), records.DeclarationKind(), access.VolumeConsent().GroupVersionKind()
	for _, kind := range []schema.GroupVersionKind{declared, consented} {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	s := &served{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(),
		kinds: map[string]schema.GroupVersionKind{
			"namespaces": corev1.SchemeGroupVersion.WithKind("Namespace"), "configmaps": corev1.SchemeGroupVersion.WithKind("ConfigMap"),
			"secrets": corev1.SchemeGroupVersion.WithKind("Secret"), "pods": corev1.SchemeGroupVersion.WithKind("Pod"), "nodes": corev1.SchemeGroupVersion.WithKind("Node"),
			"persistentvolumeclaims": corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), "persistentvolumes": corev1.SchemeGroupVersion.WithKind("PersistentVolume"),
			"services": corev1.SchemeGroupVersion.WithKind("Service"), "endpointslices": discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
			"statefulsetmigrations": declared, "volumeconsents": consented,
			"statefulsetslices": v1alpha1.Kind(), "controllerrevisions": appsv1.SchemeGroupVersion.WithKind("ControllerRevision"),
			"statefulsets": appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "leases": coordinationv1.SchemeGroupVersion.WithKind("Lease"),
		},
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["it"] = &clientcmdapi.Cluster{Server: server.URL}
	config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: "token-4711"}
	for _, name := range contexts {
		config.Contexts[name] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "me"}
	}
	config.CurrentContext = contexts[0]
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return s, file
}

// ServeHTTP implements http.Handler.
func (s *served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.lives != nil && r.URL.Query().Has("watch") && strings.HasSuffix(r.URL.Path, "/leases") {
		news := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: s.lives.ObjectMeta}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": news})
		return
	}
	if s.before != nil {
		s.before(r)
	}
	var out any
	err := error(apierrors.NewServiceUnavailable("away"))
	if s.away == nil || !s.away(r) {
		out, err = s.toWhomAsks(r)
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		status := apierrors.ReasonForError(err)
		code, details := http.StatusInternalServerError, (*metav1.StatusDetails)(nil)
		var known apierrors.APIStatus
		if errors.As(err, &known) {
			code, details = int(known.Status().Code), known.Status().Details
		}
		w.WriteHeader(code)
		out = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: status, Message: err.Error(), Code: int32(code), Details: details}
	}
	_ = json.NewEncoder(w).Encode(out)
}

// toWhomAsks answers what is about the server and the rights of who asks, and then what is about objects.
func (s *served) toWhomAsks(r *http.Request) (any, error) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	last := path[len(path)-1]
	switch {
	case last == "version":
		return apiversion.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"}, nil
	case strings.HasPrefix(last, "selfsubject"): // who asks has no rights
		o, err := s.Scheme().New(s.kinds[last])
		if err == nil {
			o.GetObjectKind().SetGroupVersionKind(s.kinds[last])
		}
		return o, err
	}
	if asked := s.resource(path); s.denies != nil && asked.Resource != "" && s.denies(r) {
		return nil, apierrors.NewForbidden(asked, "", errors.New("User \"anna\" may not"))
	}
	return s.answer(r)
}

// resource returns what a path is about, or nothing.
func (s *served) resource(path []string) (out schema.GroupResource) {
	if path[0] == "apis" && len(path) > 1 {
		out.Group = path[1]
	}
	for _, part := range path {
		if gvk, known := s.kinds[part]; known && gvk.Group == out.Group {
			out.Resource = part // the last one: a namespace comes before what is in it
		}
	}
	return out
}

func (s *served) answer(r *http.Request) (any, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	switch {
	case parts[0] == "api" && len(parts) <= 2, parts[0] == "apis" && (len(parts) == 1 || len(parts) == 3):
		return s.discovery(parts), nil
	case parts[0] == "apis" && len(parts) > 3:
		group, parts = parts[1], parts[3:]
	case parts[0] == "api":
		parts = parts[2:]
	default:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path)
	}
	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	gvk, known := s.kinds[parts[0]]
	if !known || gvk.Group != group || r.URL.Query().Has("watch") {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: parts[0]}, "")
	}
	if len(parts) == 1 && r.Method == http.MethodGet {
		return s.list(r, gvk, namespace)
	}
	return s.one(r, gvk, client.ObjectKey{Namespace: namespace, Name: strings.Join(parts[1:], "")})
}

func (s *served) list(r *http.Request, gvk schema.GroupVersionKind, namespace string) (any, error) {
	o, err := s.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, err
	}
	selector, err := metav1.ParseToLabelSelector(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	matching, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	list := o.(client.ObjectList)
	err = s.List(r.Context(), list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: matching})
	list.GetObjectKind().SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return list, err
}

func (s *served) one(r *http.Request, gvk schema.GroupVersionKind, key client.ObjectKey) (any, error) {
	o, err := s.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	one := o.(client.Object)
	one.GetObjectKind().SetGroupVersionKind(gvk)
	switch r.Method {
	case http.MethodGet:
		err = s.Get(r.Context(), key, one)
	case http.MethodPatch:
		raw, read := io.ReadAll(r.Body)
		if read != nil {
			return nil, read
		}
		one.SetNamespace(key.Namespace)
		one.SetName(key.Name)
		err = s.Patch(r.Context(), one, client.RawPatch(types.PatchType(r.Header.Get("Content-Type")), raw))
	default:
		raw, read := io.ReadAll(r.Body)
		if read != nil {
			return nil, read
		}
		if u, ok := one.(*unstructured.Unstructured); ok {
			err = u.UnmarshalJSON(raw)
		} else {
			_, _, err = clientscheme.Codecs.UniversalDeserializer().Decode(raw, &gvk, one)
		}
		if err == nil && r.Method == http.MethodPost {
			err = s.Create(r.Context(), one)
		} else if err == nil {
			err = s.Update(r.Context(), one)
		}
	}
	one.GetObjectKind().SetGroupVersionKind(gvk)
	return one, err
}

func (s *served) discovery(path []string) any {
	if len(path) == 1 && path[0] == "api" {
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	}
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	resources := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: strings.Join(path[1:], "/")}
	seen := map[string]bool{"": true}
	for name, gvk := range s.kinds {
		if !seen[gvk.Group] {
			seen[gvk.Group] = true
			version := metav1.GroupVersionForDiscovery{GroupVersion: gvk.GroupVersion().String(), Version: gvk.Version}
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: gvk.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		}
		if gvk.GroupVersion().String() == resources.GroupVersion {
			wide := name == "namespaces" || name == "nodes" || name == "persistentvolumes" || name == "volumeconsents" || strings.HasPrefix(name, "selfsubject")
			resources.APIResources = append(resources.APIResources, metav1.APIResource{Name: name, Kind: gvk.Kind, Namespaced: !wide, Verbs: metav1.Verbs{"get", "list"}})
		}
	}
	if len(path) == 1 {
		return groups
	}
	return resources
}

// outcome is the result of a command.
type outcome struct {
	code        int
	out, errOut string
}

func command(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(append([]string{"stsmigrate"}, args...), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	return outcome{code, out.String(), errOut.String()}
}

// keep stores a plan and its journal, changed by change, in a namespace.
func keep(t *testing.T, on client.Client, namespace string, change func(*journal.Journal)) *plans.Plan {
	t.Helper()
	return keepOf(t, on, namespace, func(*build.Inputs) {}, func(_ *plans.Plan, j *journal.Journal) { change(j) })
}

// keepOf stores a plan, made of inputs that with has changed, and its journal.
func keepOf(t *testing.T, on client.Client, namespace string, with func(*build.Inputs), change func(*plans.Plan, *journal.Journal)) *plans.Plan {
	t.Helper()
	replicas := int32(3)
	in := build.Inputs{
		Name: "web", ID: "abc", MaxUnavailable: 1,
		Source:      plans.Ref{Cluster: "uid-of-the-cluster", Context: "home", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "uid-of-the-cluster", Context: "home", Namespace: "mall", Name: "web"},
		Set:         &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}},
	}
	with(&in)
	p, err := build.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	j := journal.New(p)
	change(p, j)
	if err := records.NewStore(on, namespace, p.Name).Create(t.Context(), p, j); err != nil {
		t.Fatal(err)
	}
	return p
}

// inFile writes a plan as `plan --out` does.
func inFile(t *testing.T, p *plans.Plan) string {
	t.Helper()
	raw, err := plans.Encode(p)
	file := filepath.Join(t.TempDir(), "web.yaml")
	if err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// serves adds a resource, whose kind is given as "group/version Kind".
func (s *served) serves(resource, kind string) {
	version, name, _ := strings.Cut(kind, " ")
	s.kinds[resource] = schema.FromAPIVersionAndKind(version, name)
}

// A user at night learns that the cluster was not reached, rather than that the plan is wrong.
func TestAServerThatIsAwayIsReportedWithWhatToDo(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	away := "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: \"http://127.0.0.1:1\"}}]\ncontexts: [{name: a, context: {cluster: a}}]\n"
	if err := os.WriteFile(config, []byte(away), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	code := run([]string{"stsmigrate", "status", "web", "-n", "mall", "--kubeconfig", config}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	if said := out.String(); code != exitError || !strings.Contains(said, "check that the API server can be reached") || strings.Count(said, "\n") != 1 {
		t.Errorf("it ends with %d and says %q", code, said)
	}
}
