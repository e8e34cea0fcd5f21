package expanded

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
)

// runs returns a pod with a container.
func runs(container string) string { return "containers: [{name: web, " + container + "}]" }

const ownNamespace = "valueFrom: {fieldRef: {fieldPath: metadata.namespace}}"

func conf(key, value string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "conf"}, Data: map[string]string{key: value}}
}

func allowed(resource string, verbs ...string) []client.Object {
	return []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r"}, Rules: []rbacv1.PolicyRule{{Resources: []string{resource}, Verbs: verbs}}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "web"}},
		},
	}
}

// An orchestrator has fewer rights than who has approved the plan, and does not refuse what he has seen to be no lock.
func TestAnOrchestratorThatSeesNoLocksLeavesThemToTheApproval(t *testing.T) {
	i := checktest.Estate{
		One: true, Volumes: []string{disk, disk}, Spec: "serviceAccountName: web\n" + runs("env: [{name: ME, "+ownNamespace+"}]"), Here: allowed("leases", "create"), Forbids: "*v1.LeaseList",
	}.Inspected(t)
	i.Orchestrated = func() time.Time { return time.Unix(1, 0) }
	found, err := Locks(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	checktest.ExpectFindings(t, found, "WARN...you may not list leases")
}

func lease(holder string) client.Object {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lock"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
}

func TestMembersThatAgreeInTheirOwnNamespaceAreNotSplitUnasked(t *testing.T) {
	const patroni = "env: [{name: PATRONI_KUBERNETES_NAMESPACE, " + ownNamespace + "}, {name: PATRONI_SCOPE, value: web}]"
	account := func(spec string) string { return "serviceAccountName: web\n" + spec }
	for name, c := range map[string]struct {
		e    checktest.Estate
		want []string
	}{
		"nothing":                       {checktest.Estate{Spec: runs("env: [{name: A, value: b}]")}, nil},
		"Patroni":                       {checktest.Estate{One: true, Spec: runs(patroni)}, []string{"FAIL...spec.containers[web]...it is Patroni...lock of their leader...namespace shop...namespace mall...value: \"shop\", valueFrom: null...create rolebinding"}},
		"Patroni in another cluster":    {checktest.Estate{Spec: runs(patroni)}, []string{"FAIL...Patroni...another cluster...--ignore locks"}},
		"Patroni with its lock kept":    {checktest.Estate{One: true, Spec: runs(patroni), Patch: "spec: {template: {spec: {containers: [{name: web, env: [{name: PATRONI_KUBERNETES_NAMESPACE, value: shop, valueFrom: null}]}]}}}"}, nil},
		"kept in one cluster only":      {checktest.Estate{Spec: runs("env: [{name: PATRONI_KUBERNETES_NAMESPACE, value: shop}]")}, []string{"FAIL...Patroni...another cluster"}},
		"Patroni with etcd":             {checktest.Estate{One: true, Spec: runs("env: [{name: PATRONI_ETCD3_HOSTS, value: etcd}, {name: POD_NAMESPACE, " + ownNamespace + "}]")}, nil},
		"Spilo":                         {checktest.Estate{One: true, Spec: runs("env: [{name: DCS_ENABLE_KUBERNETES_API, value: 'true'}, {name: POD_NAMESPACE, " + ownNamespace + "}]")}, []string{"Patroni (DCS_ENABLE_KUBERNETES_API)"}},
		"Stolon":                        {checktest.Estate{One: true, Spec: runs("command: [stolon-keeper, --store-backend, kubernetes]")}, []string{"Stolon"}},
		"client-go":                     {checktest.Estate{One: true, Spec: runs("args: [--leader-elect]")}, []string{"leader election of client-go (--leader-elect)"}},
		"client-go with a namespace":    {checktest.Estate{One: true, Spec: runs("args: [--leader-elect=true, --leader-elect-resource-namespace=kube-system]")}, nil},
		"client-go by a variable":       {checktest.Estate{One: true, Spec: runs("env: [{name: LEADER_ELECTION_NAMESPACE, " + ownNamespace + "}]")}, []string{"client-go"}},
		"client-go without it":          {checktest.Estate{One: true, Spec: runs("env: [{name: LEADER_ELECT, value: 'false'}]")}, nil},
		"Vault, that labels itself":     {checktest.Estate{One: true, Spec: account(runs("env: [{name: VAULT_K8S_NAMESPACE, " + ownNamespace + "}]")), Here: allowed("pods", "get", "patch")}, nil},
		"KUBE_PING":                     {checktest.Estate{One: true, Spec: runs("env: [{name: JGROUPS_DISCOVERY_PROTOCOL, value: kubernetes.KUBE_PING}, {name: KUBERNETES_NAMESPACE, " + ownNamespace + "}]")}, []string{"JGroups...find one another"}},
		"EMQX":                          {checktest.Estate{One: true, Spec: runs("env: [{name: EMQX_CLUSTER__DISCOVERY_STRATEGY, value: k8s}]")}, []string{"EMQX"}},
		"EMQX by DNS":                   {checktest.Estate{One: true, Spec: runs("env: [{name: EMQX_CLUSTER__DISCOVERY_STRATEGY, value: dns}]")}, nil},
		"Patroni by a ConfigMap":        {checktest.Estate{One: true, Here: []client.Object{conf("PATRONI_KUBERNETES_LABELS", "{a: b}")}, Spec: runs("envFrom: [{configMapRef: {name: conf}}]")}, []string{"Patroni (PATRONI_KUBERNETES_LABELS)"}},
		"Patroni by a file":             {checktest.Estate{One: true, Here: []client.Object{conf("patroni.yml", "scope: web\nkubernetes:\n  labels: {a: b}\n")}, Spec: runs("image: i") + "\nvolumes: [{name: c, configMap: {name: conf}}]"}, []string{"FAIL...ConfigMap/conf: key patroni.yml...Patroni"}},
		"by a file with a namespace":    {checktest.Estate{One: true, Here: []client.Object{conf("patroni.yml", "scope: web\nkubernetes:\n  namespace: locks\n")}, Spec: runs("image: i") + "\nvolumes: [{name: c, configMap: {name: conf}}]"}, nil},
		"an account that writes leases": {checktest.Estate{One: true, Spec: account(runs("env: [{name: ME, " + ownNamespace + "}]")), Here: allowed("leases", "create", "update")}, []string{"WARN...Role shop/r lets its pods write leases...--ignore locks"}},
		"that a member holds":           {checktest.Estate{One: true, Spec: account(runs("image: i")), Here: append(allowed("leases", "create"), lease("web-1_6f1c"))}, []string{"FAIL...write leases...one of them holds lease lock (spec.holderIdentity: web-1_6f1c)"}},
		"that another one holds":        {checktest.Estate{One: true, Spec: account(runs("env: [{name: ME, " + ownNamespace + "}]")), Here: append(allowed("leases", "create"), lease("our-web-1"))}, []string{"WARN...write leases"}},
		"a leader by an annotation":     {checktest.Estate{Spec: account(runs("image: i")), Here: append(allowed("*", "*"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "l", Annotations: map[string]string{"control-plane.alpha.kubernetes.io/leader": "{\"holderIdentity\":\"web-0\"}"}}})}, []string{"FAIL...one of them holds configmap l"}},
		"that nobody may look at":       {checktest.Estate{One: true, Spec: account(runs("env: [{name: ME, " + ownNamespace + "}]")), Here: allowed("leases", "create"), Forbids: "*v1.LeaseList"}, []string{"FAIL...Role shop/r lets its pods write leases...env ME of container web (metadata.namespace)...you may not list leases"}},
		"that does not ask for its own": {checktest.Estate{One: true, Spec: account(runs("image: i")), Here: allowed("configmaps", "*")}, []string{"WARN...write configmaps"}},
		"that only reads":               {checktest.Estate{One: true, Spec: account(runs("env: [{name: ME, " + ownNamespace + "}]")), Here: allowed("endpoints", "get", "list", "watch")}, nil},
		"that has no token":             {checktest.Estate{One: true, Spec: "automountServiceAccountToken: false\n" + account(runs("image: i")), Here: allowed("leases", "*")}, nil},
		"of another account":            {checktest.Estate{One: true, Spec: runs("image: i"), Here: allowed("leases", "*")}, nil},
		"that may not be looked at":     {checktest.Estate{One: true, Spec: account(runs("image: i")), Forbids: "*v1.RoleBindingList"}, []string{"WARN...ServiceAccount web...you may not look at rolebindings"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.e.Volumes = []string{disk, disk}
			c.e.Finds(t, Locks, c.want...)
			if len(c.want) == 0 || strings.HasPrefix(c.want[0], "WARN") {
				return
			}
			c.e.Volumes = c.e.Volumes[:1]
			c.e.Finds(t, Locks) // one ordinal is never on both sides
		})
	}
}
