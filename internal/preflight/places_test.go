package preflight

import (
	"context"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

// How places are taken is chosen by what moves, by a word or by none, and none is where none can be. A user who may
// not make pods moves as before, and is told. What the user says is not chosen.
func TestHowPlacesAreTakenIsChosen(t *testing.T) {
	const small, large = "containers: [{name: web, image: web:1}]", "containers: [{name: web, image: web:1, resources: {requests: {cpu: 3}}}]"
	host := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("9")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
	for name, c := range map[string]struct {
		spec, patch string
		one         bool
		said        plans.Placeholder
		may         string // what the user may do: verbs of pods
		want        plans.Proof
		why         string
	}{
		"between clusters":          {spec: small, may: "create delete", want: plans.Warm, why: "it is another cluster"},
		"within one":                {spec: small, one: true, may: "create delete", want: plans.Scheduled, why: "the nodes are those of before"},
		"within one, on others":     {spec: small, one: true, patch: "spec: {template: {spec: {tolerations: [{operator: Exists}], nodeSelector: {}}}}", may: "create delete", want: plans.Warm, why: "the patches change tolerations"},
		"another image":             {spec: small, one: true, patch: "spec: {template: {spec: {containers: [{name: web, image: web:2}]}}}", may: "create delete", want: plans.Warm, why: "the patches change images"},
		"no right to make them":     {spec: small, may: "delete", want: plans.NoProof, why: "who makes this plan may not create pods in namespace shop of the source"},
		"no right to take them off": {spec: small, may: "create", want: plans.NoProof, why: "who makes this plan may not delete pods in namespace shop of the source"},
		"no room beside":            {spec: large, one: true, may: "create delete", want: plans.NoProof, why: "web-0 may find its node only in the room that its ordinal leaves"},
		"a node of their own":       {spec: "nodeName: n0\n" + small, may: "create delete", want: plans.NoProof, why: "its pods name their node"},
		"gates":                     {spec: "schedulingGates: [{name: queue}]\n" + small, may: "create delete", want: plans.NoProof, why: "its pods wait for scheduling gates"},
		"a word":                    {spec: large, one: true, said: plans.Placeholder{Proof: plans.Warm}, want: plans.Warm},
		"a node's directory":        {spec: "volumes: [{name: logs, hostPath: {path: /var/log}}]\n" + small, may: "create delete", want: plans.NoProof, why: "its pods reach into their node"},
		"a node's processes":        {spec: "hostPID: true\n" + small, may: "create delete", want: plans.NoProof, why: "its pods reach into their node"},
		"privileged":                {spec: "containers: [{name: web, image: web:1, securityContext: {privileged: true}}]", may: "create delete", want: plans.NoProof, why: "its pods reach into their node"},
		"off, as a word":            {spec: small, said: plans.Placeholder{Proof: plans.NoProof}, may: "create delete", want: plans.NoProof},
	} {
		t.Run(name, func(t *testing.T) {
			e := checktest.Estate{Volumes: []string{"spec: {nfs: {server: files, path: /a}}"}, Spec: c.spec, Patch: c.patch, One: c.one, Labels: map[string]string{"app": "web"}}
			old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: types.UID("p"), Labels: map[string]string{"app": "web"}}}
			i := e.Inspected(t)
			old.Spec = i.Now.Set.Spec.Template.Spec
			old.Spec.NodeName = "n0"
			old.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "u", Controller: new(true)}}
			for _, o := range []client.Object{host.DeepCopy(), old} {
				if err := i.On[plans.Source].Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			allowed(i, c.may)
			said := []plans.Placeholder{c.said}
			if c.said.Proof == "" {
				said = []plans.Placeholder{{Image: "p:1"}, {Proof: plans.Chosen, Image: "p:1"}}
			}
			for _, said := range said {
				in := i.Now
				in.Placeholder = said
				got, err := places(t.Context(), i.On, in, check.Caller{})
				if err != nil || got.Proof != c.want || !strings.Contains(got.Why, c.why) || (got.Why == "") != (c.why == "") {
					t.Errorf("%q: %+v (%v), expected %q since %q", said.Proof, got, err, c.want, c.why)
				}
				if got.Used() && got.Image != said.Image || !got.Used() && got.Image != "" {
					t.Errorf("the image is %q, and the user said %q", got.Image, said.Image)
				}
			}
		})
	}
}

// allowed lets the user of an inspection do this with pods, and nothing else.
func allowed(i check.Inspection, may string) {
	for _, side := range plans.Sides() {
		i.On[side] = interceptor.NewClient(i.On[side].(client.WithWatch), interceptor.Funcs{
			Create: func(ctx context.Context, on client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if review, is := o.(*authorizationv1.SelfSubjectRulesReview); is {
					review.Status.ResourceRules = []authorizationv1.ResourceRule{{Verbs: strings.Fields(may), APIGroups: []string{""}, Resources: []string{"pods"}}}
					return nil
				}
				return on.Create(ctx, o, opts...)
			},
		})
	}
}
