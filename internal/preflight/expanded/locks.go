package expanded

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/expansion"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// agreement is a way in which the members of a set agree through the API of Kubernetes, in a namespace.
type agreement struct {
	name, what string
	// sign matches NAME=VALUE of a variable, or an argument. place is the variable or the argument that names the
	// namespace; without it the members use their own.
	sign, place *regexp.Regexp
	// file matches the text of a ConfigMap with its configuration.
	file *regexp.Regexp
}

const (
	elects = "its members keep the lock of their leader"
	finds  = "its members find one another"
)

// agreements lists those that are known.
func agreements() []agreement {
	re := regexp.MustCompile
	return []agreement{
		{"Patroni", elects, re(`^(PATRONI_KUBERNETES_\w+=|DCS_ENABLE_KUBERNETES_API=(?i:true|1))`), re(`^(PATRONI_KUBERNETES_NAMESPACE|POD_NAMESPACE)=(.+)$`), re(`(?ms)^scope:.*^kubernetes:|^kubernetes:.*^scope:`)},
		{"Stolon", elects, re(`^(ST\w+_STORE_BACKEND=kubernetes|--store-backend=kubernetes)$`), re(`^(POD_NAMESPACE|ST\w+_KUBE_NAMESPACE)=(.+)$`), nil},
		{"leader election of client-go", elects, re(`^(LEADER_ELECTION\w*=|LEADER_ELECT=(?i:true|1)|--?(enable-)?leader-elect(ion)?(-\S+)?(=.*)?$)`), re(`^(LEADER_ELECTION_NAMESPACE|--?leader-elect(?:ion)?(?:-resource)?-namespace)=(.+)$`), nil},
		{"Apache Pekko or Akka", finds, re(`(akka|pekko)\S*discovery\S*kubernetes-api|^(AKKA|PEKKO)_CLUSTER_BOOTSTRAP\w*=`), nil, re(`(akka|pekko)[^\n]*discovery[^\n]*kubernetes-api|discovery-method *= *"?kubernetes-api`)},
		{"Hazelcast", finds, re(`^HZ_NETWORK_JOIN_KUBERNETES_ENABLED=(?i:true)|hazelcast\S*kubernetes\S*(enabled=true|namespace)`), re(`^(HZ_NETWORK_JOIN_KUBERNETES_NAMESPACE)=(.+)$`), re(`(?s)hazelcast.*kubernetes:\s+enabled: *true`)},
		{"JGroups (KUBE_PING)", finds, re(`KUBE_PING|^KUBERNETES_LABELS=`), re(`^((?:OPENSHIFT_KUBE_PING|KUBERNETES)_NAMESPACE)=(.+)$`), re(`KUBE_PING`)},
		{"EMQX", finds, re(`^EMQX_CLUSTER__(DISCOVERY(_STRATEGY)?=k8s|K8S__\w+=)`), re(`^(EMQX_CLUSTER__K8S__NAMESPACE)=(.+)$`), re(`discovery_strategy *= *"?k8s`)},
	}
}

// Locks refuses a set of several ordinals whose members agree through the API of their own namespace: those that have
// arrived see nothing of what the others have agreed on there, elect a leader of their own, or form a second cluster.
func Locks(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if i.Plan.Count < 2 {
		return nil, nil // it is never on both sides at once
	}
	s, err := look(ctx, i)
	if err != nil {
		return nil, err
	}
	members := map[plans.Side]*corev1.Pod{}
	for _, side := range plans.Sides() {
		members[side] = expansion.Expand(s.arriving(), s.at[side])
	}
	var out []check.Finding
	for _, l := range lists(members[plans.Destination]) {
		for _, c := range l.of {
			was, _ := containerOf(members[plans.Source], l.field, c.Name)
			raw, _ := containerOf(s.arriving(), l.field, c.Name)
			m := member{l.field, c, said(was, expansion.Variables(s.arriving(), raw, s.at[plans.Source])), said(c, expansion.Variables(s.arriving(), raw, s.at[plans.Destination]))}
			for _, a := range agreements() {
				if f, splits := a.split(i, m); splits {
					out = append(out, f)
				}
			}
		}
	}
	out = append(out, s.inFiles(i)...)
	if len(out) > 0 {
		return out, nil
	}
	return s.byRole(ctx, i)
}

// member is a container, and what it is told on the two sides.
type member struct {
	field   string
	is      corev1.Container
	was, to []string
}

// said is what a container is told, as NAME=VALUE of its variables, and its command and arguments. An argument with its
// value in the next word is one.
func said(c corev1.Container, vars map[string]string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, name+"="+vars[name])
	}
	words := slices.Concat(c.Command, c.Args)
	for n, w := range words {
		out = append(out, strings.Fields(w)...)
		if n+1 < len(words) && strings.HasPrefix(w, "-") && !strings.Contains(w, "=") && !strings.HasPrefix(words[n+1], "-") {
			out = append(out, w+"="+words[n+1])
		}
	}
	return out
}

// split reports whether the members of a set agree in different places on the two sides.
func (a agreement) split(i check.Inspection, m member) (check.Finding, bool) {
	is := m.is
	n := slices.IndexFunc(m.to, a.sign.MatchString)
	if n < 0 {
		return check.Finding{}, false
	}
	from, to := a.in(m.was, i.Plan.Source.Namespace), a.in(m.to, i.Plan.Destination.Namespace)
	if joined(i) && from == to {
		return check.Finding{}, false
	}
	sign, _, _ := strings.Cut(m.to[n], "=")
	f := a.apart(i, fmt.Sprintf("%s: spec.template.spec.%s[%s]", i.Name(plans.Destination), m.field, is.Name), sign, from, to)
	n = slices.IndexFunc(is.Env, func(e corev1.EnvVar) bool { return a.place != nil && a.place.MatchString(e.Name+"=x") })
	if joined(i) && n >= 0 {
		e := is.Env[n]
		e.ValueFrom = &corev1.EnvVarSource{} // it is expanded, and what it was does not matter
		f.Remedy = stay(i, envPatch(m.field, is.Name, e, from))
	}
	return f, true
}

// inFiles finds the agreements that a ConfigMap of the pods configures.
func (s sides) inFiles(i check.Inspection) (out []check.Finding) {
	for _, d := range i.Plan.Dependencies {
		c, ok := s.objects[plans.Destination][named(d)].(*corev1.ConfigMap)
		if !ok {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(c.Data)) {
			for _, a := range agreements() {
				text := c.Data[key]
				if a.file == nil || !a.file.MatchString(text) {
					continue
				}
				if m := ofFile.FindStringSubmatch(text); m != nil && joined(i) {
					continue // one place, which it names
				}
				out = append(out, a.apart(i, fmt.Sprintf("%s: key %s", d, key), d.Name+"/"+key, i.Plan.Source.Namespace, i.Plan.Destination.Namespace))
			}
		}
	}
	return out
}

var ofFile = regexp.MustCompile(`(?m)^\s+(?:pod-)?namespace\s*[:=]\s*"?[a-z0-9]`)

// apart is the finding about members that agree in two places.
func (a agreement) apart(i check.Inspection, object, sign, from, to string) check.Finding {
	return check.Finding{
		Object: object,
		Saw:    fmt.Sprintf("it is %s (%s): %s through objects of namespace %s, and those that arrive look in namespace %s of %s", a.name, sign, a.what, from, to, cluster(i)),
		Want:   "one place for all members, or members that arrive without one another's leader or cluster start their own: two leaders write",
		Remedy: "move it only if the application itself keeps them together (a lock outside of the API, such as etcd or Consul; a replication that one cluster's leader leads), then --ignore locks",
	}
}

// in returns the namespace in which the members agree.
func (a agreement) in(said []string, own string) string {
	if a.place == nil {
		return own
	}
	for _, s := range said {
		if m := a.place.FindStringSubmatch(s); m != nil {
			return m[2]
		}
	}
	return own
}

func cluster(i check.Inspection) string {
	if joined(i) {
		return "the same cluster"
	}
	return "another cluster"
}

// stay is the remedy that leaves the agreement where it is, for the members of both namespaces.
func stay(i check.Inspection, patch string) string {
	from, to := i.Plan.Source, i.Plan.Destination
	account := cmp.Or(i.Now.Set.Spec.Template.Spec.ServiceAccountName, "default")
	return "leave the lock where it is until the move is over: name the old namespace with --patch FILE, where FILE has the first line, and let the account of the destination write there; only where the application lets none but the members of one place lead, --ignore locks\n" +
		patch + "\n" + fmt.Sprintf("%s -n %s create rolebinding %s-%s --role=ROLE --serviceaccount=%s:%s   # ROLE: that of the account here", i.Kubectl(plans.Source), from.Namespace, account, to.Namespace, to.Namespace, account)
}

// byRole finds members that may write leases, endpoints or configmaps of their namespace. One of them that holds such an object
// now is a lock. Where none does, or that may not be seen, it may be something else that they keep there.
func (s sides) byRole(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	pod := s.arriving()
	if no := pod.Spec.AutomountServiceAccountToken; no != nil && !*no {
		return nil, nil
	}
	account := cmp.Or(pod.Spec.ServiceAccountName, "default")
	may, role, err := lockable(ctx, i, account)
	if err != nil {
		return check.Unseen(err, "the Roles of ServiceAccount "+account+" on the source", "rolebindings and roles")
	}
	if len(may) == 0 {
		return nil, nil
	}
	f := check.Finding{
		Object: i.Name(plans.Destination), Want: "one place for all members: a lock of one side is not seen on the other, and both could have a leader",
		Saw:    fmt.Sprintf("Role %s/%s lets its pods write %s in their own namespace, and the two sides have one each", i.Plan.Source.Namespace, role, strings.Join(may, ", ")),
		Remedy: "find out whether the members keep a lock of a leader or a list of members there; if not, or if the application keeps two sides together, --ignore locks",
		Level:  check.Warn,
	}
	lock, unseen, err := held(ctx, i, may)
	switch {
	case err != nil:
		return nil, err
	case lock != "":
		f.Level = check.Fail
		f.Saw += ", and one of them holds " + lock
	case len(unseen) > 0:
		if at := s.namespaced(); at != "" && i.Orchestrated == nil { // the user who has approved the plan may have seen more
			f.Level = check.Fail
			f.Saw += fmt.Sprintf(", which they get as %s (metadata.namespace)", at)
		}
		f.Saw += fmt.Sprintf(" (you may not list %s, so that a lock would not be seen)", strings.Join(unseen, ", "))
	}
	return []check.Finding{f}, nil
}

// namespaced returns a variable by which the pods know their own namespace, or "".
func (s sides) namespaced() string {
	for _, l := range lists(s.arriving()) {
		for _, c := range l.of {
			for _, e := range c.Env {
				if r := e.ValueFrom; r != nil && r.FieldRef != nil && r.FieldRef.FieldPath == "metadata.namespace" {
					return fmt.Sprintf("env %s of container %s", e.Name, c.Name)
				}
			}
		}
	}
	return ""
}

// lockable returns what of the kinds that locks are made of an account may write in the source's namespace, and by which
// Role.
func lockable(ctx context.Context, i check.Inspection, account string) (may []string, role string, err error) {
	namespace := i.Plan.Source.Namespace
	var bindings rbacv1.RoleBindingList
	if err := i.On[plans.Source].List(ctx, &bindings, client.InNamespace(namespace)); err != nil {
		return nil, "", err
	}
	kinds := map[string]bool{}
	for _, b := range bindings.Items {
		if !slices.ContainsFunc(b.Subjects, func(o rbacv1.Subject) bool {
			return o.Kind == rbacv1.ServiceAccountKind && o.Name == account && cmp.Or(o.Namespace, namespace) == namespace
		}) {
			continue
		}
		rules, err := rulesOf(ctx, i, b.RoleRef)
		if client.IgnoreNotFound(err) != nil {
			return nil, "", err
		}
		for _, r := range rules {
			writes := slices.ContainsFunc(r.Verbs, func(v string) bool { return slices.Contains([]string{"create", "update", "patch", "*"}, v) })
			for _, k := range []string{"leases", "endpoints", "configmaps"} {
				if writes && (slices.Contains(r.Resources, k) || slices.Contains(r.Resources, "*")) {
					kinds[k], role = true, b.RoleRef.Name
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(kinds)), role, nil
}

func rulesOf(ctx context.Context, i check.Inspection, ref rbacv1.RoleRef) ([]rbacv1.PolicyRule, error) {
	if ref.Kind == "ClusterRole" {
		var role rbacv1.ClusterRole
		err := i.On[plans.Source].Get(ctx, client.ObjectKey{Name: ref.Name}, &role)
		return role.Rules, err
	}
	var role rbacv1.Role
	err := i.On[plans.Source].Get(ctx, client.ObjectKey{Namespace: i.Plan.Source.Namespace, Name: ref.Name}, &role)
	return role.Rules, err
}
