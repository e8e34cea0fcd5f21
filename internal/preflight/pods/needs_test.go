package pods

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// fixture is two clusters with a set on the source, of which only the spec of the pods matters.
type fixture struct {
	spec    string
	patch   string
	here    []client.Object // in shop, or without a namespace
	there   []client.Object // in mall, or without a namespace
	forbids string          // a resource that may not be read
}

func (th fixture) inspected(t *testing.T) (check.Inspection, []plans.Dependency) {
	t.Helper()
	replicas := int32(3)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}}
	set.Spec.Template.Spec = planstest.Parsed[corev1.PodSpec](t, th.spec)
	in := build.Inputs{
		Name: "web", ID: "abc", MaxUnavailable: 1, Set: set,
		Source:      plans.Ref{Cluster: "one", Context: "east", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "two", Context: "west", Namespace: "mall", Name: "web"},
	}
	if th.patch != "" {
		in.Patches = []plans.Patch{{Patch: th.patch}}
	}
	on := clusters.Clusters{plans.Source: th.cluster("shop", th.here), plans.Destination: th.cluster("mall", th.there)}
	var err error
	if in.Dependencies, err = Needs(t.Context(), on, in); err != nil {
		t.Fatal(err)
	}
	p, err := build.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	i := check.Inspect(p, on)
	i.Now = in
	return i, p.Dependencies
}

func (th fixture) cluster(namespace string, objects []client.Object) client.Client {
	b := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
		p, _ := o.(*corev1.Pod)
		return []string{p.Spec.NodeName}
	})
	for _, o := range objects {
		o, _ := o.DeepCopyObject().(client.Object)
		switch o.(type) {
		case *schedulingv1.PriorityClass, *rbacv1.ClusterRoleBinding, *corev1.Node:
		default:
			if o.GetNamespace() == "" {
				o.SetNamespace(namespace)
			}
		}
		b.WithObjects(o)
	}
	no := apierrors.NewForbidden(schema.GroupResource{Resource: th.forbids}, "", nil)
	return b.WithInterceptorFuncs(interceptor.Funcs{
		Create: checktest.Powerless,
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, secret := o.(*corev1.Secret); secret && th.forbids == "secrets" {
				return no
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, bindings := list.(*rbacv1.RoleBindingList); bindings && th.forbids == "rolebindings" {
				return no
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
}

func secretNamed(name, canary string, change ...func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"key": []byte(canary)}}
	for _, c := range change {
		c(s)
	}
	return s
}

func issued(s *corev1.Secret) {
	s.Annotations = map[string]string{"cert-manager.io/certificate-name": "web"}
}

func token(s *corev1.Secret) {
	s.Type, s.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: "web"}
}

func account(pull, mount string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		ObjectMeta:       metav1.ObjectMeta{Name: "web"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: pull}}, Secrets: []corev1.ObjectReference{{Name: mount}, {Name: "web-token"}},
	}
}

func defaults(pull string) *corev1.ServiceAccount {
	a := account(pull, "")
	a.Name = "default"
	return a
}

const (
	takesSecret = "{containers: [{name: web, envFrom: [{secretRef: {name: s}}]}]}"
	byIssuer    = "made by Certificate web of cert-manager"
)

func TestNeedsTellsWhatIsCopiedFromWhatIsRequired(t *testing.T) {
	tests := map[string]struct {
		fixture
		want []plans.Dependency
	}{
		"a person's": {fixture{spec: takesSecret, here: []client.Object{secretNamed("s", "1")}}, []plans.Dependency{{Kind: "Secret", Name: "s"}}},
		"issued":     {fixture{spec: takesSecret, here: []client.Object{secretNamed("s", "1", issued)}}, []plans.Dependency{{Kind: "Secret", Name: "s", Required: byIssuer}}},
		"absent":     {fixture{spec: takesSecret}, []plans.Dependency{{Kind: "Secret", Name: "s"}}},
		"of a patch only": {
			fixture{spec: takesSecret, patch: "spec: {template: {spec: {imagePullSecrets: [{name: west}]}}}"},
			[]plans.Dependency{{Kind: "Secret", Name: "s"}, {Kind: "Secret", Name: "west", Required: "named by a patch, and not there on the source"}},
		},
		"of a patch, and on the source": {
			fixture{spec: takesSecret, patch: "spec: {template: {spec: {imagePullSecrets: [{name: west}]}}}", here: []client.Object{secretNamed("west", "1")}},
			[]plans.Dependency{{Kind: "Secret", Name: "s"}, {Kind: "Secret", Name: "west"}},
		},
		"taken away by a patch": {fixture{spec: takesSecret, patch: "spec: {template: {spec: {containers: [{name: web, envFrom: null}]}}}"}, nil},
		"of the account": {
			fixture{spec: "{serviceAccountName: web, containers: [{name: web}]}", here: []client.Object{account("pull", "mount"), secretNamed("pull", "1"), secretNamed("mount", "2"), secretNamed("web-token", "3", token)}},
			[]plans.Dependency{{Kind: "Secret", Name: "mount"}, {Kind: "Secret", Name: "pull"}, {Kind: "ServiceAccount", Name: "web"}},
		},
		"of an account whose Secrets nobody may see": {
			fixture{spec: "{serviceAccountName: web, containers: [{name: web}]}", here: []client.Object{account("pull", "mount")}, forbids: "secrets"},
			[]plans.Dependency{{Kind: "Secret", Name: "mount"}, {Kind: "Secret", Name: "pull"}, {Kind: "Secret", Name: "web-token"}, {Kind: "ServiceAccount", Name: "web"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, got := tt.inspected(t)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

type findingTest struct {
	fixture
	want string // words of the one finding, FAIL or WARN first; "" for no finding
}

func (tt findingTest) finds(t *testing.T, run func(context.Context, check.Inspection) ([]check.Finding, error)) {
	t.Helper()
	i, _ := tt.inspected(t)
	got, err := run(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range got {
		severity := "FAIL "
		if f.Level == check.Warn {
			severity = "WARN "
		}
		lines = append(lines, severity+f.String())
	}
	text := strings.Join(lines, "\n")
	if strings.Contains(text, "canary") {
		t.Errorf("a Secret's value is in a finding: %s", text)
	}
	for _, words := range strings.Split(tt.want, "...") {
		if !strings.Contains(text, words) {
			t.Errorf("%q is not in: %s", words, text)
		}
	}
	if tt.want == "" && len(got) > 0 || tt.want != "" && len(got) != 1 {
		t.Errorf("%d findings: %s", len(got), text)
	}
}

func TestDependenciesAreThereOrCanBeCopied(t *testing.T) {
	here := func(change ...func(*corev1.Secret)) []client.Object {
		return []client.Object{secretNamed("s", "canary-1", change...)}
	}
	there := func(change ...func(*corev1.Secret)) []client.Object {
		return []client.Object{secretNamed("s", "canary-2", change...)}
	}
	poorer := func(s *corev1.Secret) { s.Data = map[string][]byte{"other": []byte("canary-3")} }
	for name, tt := range map[string]findingTest{
		"it is copied":              {fixture{spec: takesSecret, here: here()}, ""},
		"it is the same":            {fixture{spec: takesSecret, here: here(), there: here()}, ""},
		"it differs":                {fixture{spec: takesSecret, here: here(), there: there()}, "FAIL ...Secret/s in namespace mall...its content differs"},
		"it is there only":          {fixture{spec: takesSecret, there: there()}, ""},
		"it is nowhere":             {fixture{spec: takesSecret}, "WARN ...Secret/s...on neither side"},
		"it is optional":            {fixture{spec: strings.Replace(takesSecret, "name: s", "name: s, optional: true", 1)}, ""},
		"it is a token":             {fixture{spec: takesSecret, here: here(token)}, "FAIL ...service account token...use a projected token"},
		"it is issued, not there":   {fixture{spec: takesSecret, here: here(issued)}, "FAIL ...Secret/s in namespace mall: it does not exist...not copied...have it made there as here, by Certificate web of cert-manager"},
		"it is issued, and differs": {fixture{spec: takesSecret, here: here(issued), there: there()}, ""},
		"it is issued, with less":   {fixture{spec: takesSecret, here: here(issued), there: there(poorer)}, "WARN ...it lacks the keys key"},
		"a patch names it, absent":  {fixture{spec: "{containers: [{name: web}]}", patch: "spec: {template: {spec: {imagePullSecrets: [{name: west}]}}}"}, "FAIL ...Secret/west in namespace mall: it does not exist...named by a patch...make it there"},
		"a pull secret of the default account": {
			fixture{spec: "{containers: [{name: web}]}", here: []client.Object{defaults("pull")}, there: []client.Object{defaults("other")}},
			"WARN ...ServiceAccount default in namespace mall: it lacks the pull secrets pull that",
		},
		"a pull secret of the pods themselves": {fixture{spec: "{imagePullSecrets: [{name: s}], containers: [{name: web}]}", here: append(here(), defaults("pull")), there: []client.Object{defaults("other")}}, ""},
	} {
		t.Run(name, func(t *testing.T) { tt.finds(t, Dependencies) })
	}
}

// A pod that arrives waits for what was deleted there meanwhile, with its ordinal down (S17).
func TestNoOrdinalLeavesForASideThatLacksWhatItsPodsName(t *testing.T) {
	here := []client.Object{secretNamed("s", "canary-1")}
	issuedHere := []client.Object{secretNamed("s", "canary-1", issued)}
	plain := "{containers: [{name: web}]}"
	for name, tt := range map[string]struct {
		fixture
		from plans.Side
		want string
	}{
		"a move":                            {fixture{spec: takesSecret, here: here, there: here}, plans.Source, ""},
		"a move, and it is gone":            {fixture{spec: takesSecret, here: here}, plans.Source, "FAIL ...Secret/s in namespace mall on the destination: it does not exist any more...recreate it there, as it is on the source"},
		"a move, and another content":       {fixture{spec: takesSecret, here: here, there: []client.Object{secretNamed("s", "canary-2")}}, plans.Source, ""},
		"a move, and it never was":          {fixture{spec: takesSecret}, plans.Source, ""},
		"a move, and it is optional":        {fixture{spec: strings.Replace(takesSecret, "name: s", "name: s, optional: true", 1), here: here}, plans.Source, ""},
		"a move, and it was issued":         {fixture{spec: takesSecret, here: issuedHere}, plans.Source, "FAIL ...Secret/s in namespace mall on the destination: it does not exist any more"},
		"an abort":                          {fixture{spec: takesSecret, here: here, there: here}, plans.Destination, ""},
		"an abort, and it is gone":          {fixture{spec: takesSecret, there: here}, plans.Destination, "FAIL ...Secret/s in namespace shop on the source: it does not exist any more...recreate it there, as it is on the destination"},
		"an abort, and a patch alone named": {fixture{spec: plain, patch: "spec: {template: {spec: {imagePullSecrets: [{name: s}]}}}", there: here}, plans.Destination, ""},
	} {
		t.Run(name, func(t *testing.T) {
			findingTest{tt.fixture, tt.want}.finds(t, func(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
				i.Midway, i.From = true, tt.from
				return Dependencies(ctx, i)
			})
		})
	}
}

func TestAPlanDoesNotCopyWhatIsMadeByNow(t *testing.T) {
	i, _ := fixture{spec: takesSecret, here: []client.Object{secretNamed("s", "canary", issued)}}.inspected(t)
	i.Plan.Dependencies = []plans.Dependency{{Kind: "Secret", Name: "s"}} // as it was when the plan was made
	got, err := Dependencies(t.Context(), i)
	if err != nil || len(got) != 1 || got[0].Level == check.Warn || !strings.Contains(got[0].String(), "make a new plan") {
		t.Errorf("%v and %v, expected that a new plan is asked for", got, err)
	}
}

func TestRightsThatDoNotComeAlongAreReported(t *testing.T) {
	role := func(kind, name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	of := func(namespace, name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "somebody"}, {Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	}
	local := func(subjects []rbacv1.Subject) client.Object {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reads"}, Subjects: subjects, RoleRef: role("Role", "reader")}
	}
	wide := func(subjects []rbacv1.Subject) client.Object {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "views"}, Subjects: subjects, RoleRef: role("ClusterRole", "view")}
	}
	in := func(namespace string, o client.Object) client.Object {
		o.SetNamespace(namespace)
		return o
	}
	web := "{serviceAccountName: web, containers: [{name: web}]}"
	for name, tt := range map[string]findingTest{
		"none":                 {fixture{spec: web}, ""},
		"of another account":   {fixture{spec: web, here: []client.Object{local(of("shop", "db")), wide(of("mall", "web"))}}, ""},
		"a role":               {fixture{spec: web, here: []client.Object{local(of("shop", "web"))}}, "WARN ...RoleBinding reads on the source...Role reader...kubectl... -n mall create rolebinding reads --role=reader --serviceaccount=mall:web"},
		"of another namespace": {fixture{spec: web, here: []client.Object{in("data", local(of("shop", "web")))}}, "WARN ...RoleBinding data/reads on the source...-n data create rolebinding reads-mall --role=reader --serviceaccount=mall:web"},
		"there in another one": {fixture{spec: web, here: []client.Object{in("data", local(of("shop", "web")))}, there: []client.Object{in("data", local(of("mall", "web")))}}, ""},
		"there in a wrong one": {fixture{spec: web, here: []client.Object{in("data", local(of("shop", "web")))}, there: []client.Object{in("mall", local(of("mall", "web")))}}, "WARN ...data/reads"},
		"a cluster role":       {fixture{spec: web, here: []client.Object{wide(of("shop", "web"))}}, "WARN ...kubectl... create clusterrolebinding views-mall --clusterrole=view --serviceaccount=mall:web"},
		"there too":            {fixture{spec: web, here: []client.Object{local(of("", "web"))}, there: []client.Object{local(of("mall", "web"))}}, ""},
		"there, another role":  {fixture{spec: web, here: []client.Object{local(of("shop", "web"))}, there: []client.Object{wide(of("mall", "web"))}}, "WARN ...Role reader"},
		"there for another":    {fixture{spec: web, here: []client.Object{local(of("shop", "web"))}, there: []client.Object{local(of("shop", "web"))}}, "WARN ..."},
		"of the namespace":     {fixture{spec: web, here: []client.Object{local([]rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:shop"}})}}, "WARN ..."},
		"the default account":  {fixture{spec: "{containers: [{name: web}]}", here: []client.Object{local(of("shop", "default"))}}, "WARN ...--serviceaccount=mall:default"},
		"nobody may look":      {fixture{spec: web, here: []client.Object{local(of("shop", "web"))}, forbids: "rolebindings"}, "WARN ...you may not look at rolebindings"},
	} {
		t.Run(name, func(t *testing.T) { tt.finds(t, Rbac) })
	}
}

func TestClassesAreOnTheDestination(t *testing.T) {
	class := func(value int32) client.Object {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: value}
	}
	high := "{priorityClassName: high, containers: [{name: web}]}"
	for name, tt := range map[string]findingTest{
		"none is named":    {fixture{spec: "{containers: [{name: web}]}"}, ""},
		"there":            {fixture{spec: high, here: []client.Object{class(7)}, there: []client.Object{class(7)}}, ""},
		"absent":           {fixture{spec: high, here: []client.Object{class(7)}}, "FAIL ...PriorityClass high: it does not exist on the destination (on the source: value 7)"},
		"other value":      {fixture{spec: high, here: []client.Object{class(7)}, there: []client.Object{class(8)}}, "WARN ...value 7 on the source and value 8 on the destination"},
		"another by patch": {fixture{spec: high, patch: "spec: {template: {spec: {priorityClassName: low}}}", here: []client.Object{class(7)}}, "FAIL ...PriorityClass low"},
		"a runtime":        {fixture{spec: "{runtimeClassName: kata, containers: [{name: web}]}"}, "FAIL ...RuntimeClass kata"},
		"a trust bundle":   {fixture{spec: "{containers: [{name: web}], volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {name: roots, path: p}}]}}]}"}, "FAIL ...ClusterTrustBundle roots"},
		"an optional one":  {fixture{spec: "{containers: [{name: web}], volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {name: roots, path: p, optional: true}}]}}]}"}, ""},
		"a device":         {fixture{spec: "{containers: [{name: web}], resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]}"}, "FAIL ...ResourceClaimTemplate gpus...not copied"},
		"a certain device": {fixture{spec: "{containers: [{name: web}], resourceClaims: [{name: gpu, resourceClaimName: gpu-1}]}"}, "FAIL ...ResourceClaim gpu-1"},
	} {
		t.Run(name, func(t *testing.T) { tt.finds(t, Classes) })
	}
}

func TestThePodOfADryRunIsLikeThoseOfTheController(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web"}}
	set.Spec.ServiceName = "web"
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	set.Spec.Template.Spec = planstest.Parsed[corev1.PodSpec](t, "{serviceAccountName: web, containers: [{name: web}], volumes: [{name: data, emptyDir: {}}, {name: tmp, emptyDir: {}}]}")
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	got := build.Pod(set, 4)
	want := planstest.Parsed[corev1.Pod](t, `
metadata: {namespace: mall, name: web-4, labels: {app: web, statefulset.kubernetes.io/pod-name: web-4, apps.kubernetes.io/pod-index: "4"}}
spec:
  hostname: web-4
  subdomain: web
  serviceAccountName: web
  containers: [{name: web}]
  volumes: [{name: tmp, emptyDir: {}}, {name: data, persistentVolumeClaim: {claimName: data-web-4}}]
`)
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(set.Spec.Template.Spec.Volumes) != 2 || len(set.Spec.Template.Labels) != 1 {
		t.Error("the set itself was changed")
	}
}
