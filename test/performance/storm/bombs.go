package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/orchestrator/fleet"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

// bomber is a tenant with the shipped Role and nothing else. It writes what becomes large in memory.
const bomber = "bomber"

// The longest contents that an API server takes, or nearly.
const (
	ofConfigMap = 1000 << 10
	ofPlan      = 899 << 10
	ofRequest   = 1200 << 10
)

// elements returns so many bytes of the elements of a list that takes most memory for its length.
func elements(bytes int) string { return strings.Repeat("{},", bytes/3) + "{}" }

// explode has a tenant write its bombs: records that are none, plans and requests with lists without end.
func (s *storm) explode(ctx context.Context) error {
	if s.bombs == 0 {
		return nil
	}
	as, err := s.userOfRole(ctx, bomber, "stsmigrate-user")
	if err != nil {
		return err
	}
	refused, yes := 0, true
	put := func(o client.Object) error {
		err := as.Create(ctx, o)
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err) {
			refused++
			return nil
		}
		return err
	}
	filler := strings.Repeat("x", ofConfigMap)
	for k := range s.bombs {
		name := fmt.Sprintf("%s%s-%d", hostile, bomber, k)
		mark := map[string]string{plans.PlanLabel: name}
		for _, o := range []client.Object{
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}, Data: map[string]string{"a": filler}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name + "-marked", Labels: mark}, Data: map[string]string{"a": filler}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: records.RecordName(name), Labels: mark}, Immutable: &yes, Data: map[string]string{
				"plan.yaml": `{"apiVersion":"stsmigrate.dev/v1alpha1","kind":"Plan","gates":[{"job":{"template":{"spec":{"containers":[` + elements(ofPlan-200) + `]}}}}]}`,
			}},
		} {
			if err := put(o); err != nil {
				return fmt.Errorf("the tenant writes %s: %w", o.GetName(), err)
			}
		}
	}
	for k, field := range []string{"containers", "tolerations", "later"} {
		var list any
		if err := json.Unmarshal([]byte("["+elements(ofRequest)+"]"), &list); err != nil {
			return err
		}
		o := records.NewDeclared(home, fmt.Sprintf("%s%s-request-%d", hostile, bomber, k))
		o.Object["spec"] = map[string]any{
			"source": map[string]any{"namespace": "shop-" + victim, "name": fixture.Name}, "destination": map[string]any{"context": "west"},
			"gates": []any{map[string]any{"name": "a", "when": "AfterGrow", "job": map[string]any{"template": map[string]any{"spec": map[string]any{field: list}}}}},
		}
		if err := put(o); err != nil {
			return fmt.Errorf("the tenant writes %s: %w", o.GetName(), err)
		}
	}
	s.say("a tenant has put %d MiB of bombs before the orchestrators; %d of its writes were refused", s.bombs*(2*ofConfigMap+ofPlan)>>20, refused)
	return nil
}

// userOfRole returns the client of an account that is bound to a Role of the home and to nothing else.
func (s *storm) userOfRole(ctx context.Context, name, role string) (client.Client, error) {
	meta := metav1.ObjectMeta{Namespace: home, Name: name}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: home, Name: name}}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role}},
	} {
		if err := s.east.Create(ctx, o); err != nil {
			return nil, err
		}
	}
	kubeconfig, _, err := fixture.Credentials(ctx, s.east, s.bed.East, home, name)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: clusters.Scheme()})
}

// swamp names a cluster whose answers have no end, its Secret, its context and the requests that name it.
const swamp = "swamp"

// flood adds that cluster, and requests whose plans are made of what it answers.
func (s *storm) flood(ctx context.Context) error {
	if !s.floods {
		return nil
	}
	server := httptest.NewTLSServer(&mire{asked: &s.flooded})
	unlie := s.unlie
	s.unlie = func() { server.CloseClientConnections(); server.Close(); unlie() }
	kubeconfig := clientcmdapi.Config{
		CurrentContext: swamp,
		Contexts:       map[string]*clientcmdapi.Context{swamp: {Cluster: swamp, AuthInfo: swamp}},
		Clusters: map[string]*clientcmdapi.Cluster{swamp: {
			Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{swamp: {Token: canary}},
	}
	raw, err := clientcmd.Write(kubeconfig)
	if err != nil {
		return err
	}
	err = s.east.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: swamp, Labels: map[string]string{fleet.Label: swamp}}, Data: map[string][]byte{"kubeconfig": raw},
	})
	if err != nil {
		return err
	}
	for k := range 4 {
		o := records.NewDeclared(home, fmt.Sprintf("%s%s-%d", hostile, swamp, k))
		o.Object["spec"] = map[string]any{"source": map[string]any{"context": swamp, "namespace": "shop", "name": "web"}, "destination": map[string]any{"context": "west"}}
		if err := s.east.Create(ctx, o); err != nil {
			return err
		}
	}
	s.say("a cluster whose answers have no end is among the others")
	return nil
}

// mire answers as an API server does, but for the end.
type mire struct {
	asked *atomic.Int64
}

// ServeHTTP implements http.Handler.
func (m *mire) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := m.asked.Add(1)
	w.Header().Set("Content-Type", "application/json")
	watch := r.URL.Query().Get("watch") != ""
	switch at := r.URL.Path; {
	case at == "/api" || at == "/apis" || at == "/api/v1" || strings.HasPrefix(at, "/apis/") && strings.Count(at, "/") == 3:
		m.discover(w, at)
	case watch:
		for k := 0; r.Context().Err() == nil; k++ {
			if _, err := fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"pod-%d-%d","namespace":"shop","uid":"%d","resourceVersion":"%d"}}}`+"\n", n, k, k, k+1); err != nil {
				return
			}
		}
	case strings.HasSuffix(at, "/namespaces/kube-system") && n%4 != 0:
		_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"`+swamp+`"}}`)
	case strings.HasSuffix(at, "/web"):
		_, _ = io.WriteString(w, `{"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"web","uid":"a","ownerReferences":[`+elements(8<<20)+`]}}`)
	case strings.HasSuffix(at, "s"):
		_, _ = fmt.Fprintf(w, `{"kind":"List","apiVersion":"v1","metadata":{"continue":"%d","resourceVersion":"1"},"items":[%s]}`, n, elements(1<<20))
	default:
		_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"a","managedFields":[`+elements(8<<20)+`]}}`)
	}
}

// discover says which kinds there are.
func (m *mire) discover(w io.Writer, at string) {
	switch at {
	case "/api":
		_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case "/apis":
		_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`)
	case "/api/v1":
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"namespaces","kind":"Namespace"},{"name":"pods","kind":"Pod","namespaced":true},{"name":"configmaps","kind":"ConfigMap","namespaced":true}]}`)
	default:
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[{"name":"statefulsets","kind":"StatefulSet","namespaced":true}]}`)
	}
}
