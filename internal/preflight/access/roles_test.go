package access

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// gated is a plan between two clusters and two namespaces, with gates of every kind and bridged names.
func gated(ordinals int32) *plans.Plan {
	return &plans.Plan{
		Name: "web", ID: "abc", Start: 0, Count: ordinals, Claims: []plans.ClaimMove{{Template: "data", Mode: plans.Reimport}},
		Source: plans.Ref{Cluster: "a", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: "b", Namespace: "mall", Name: "web"},
		Budget: plans.Budget{Source: "web-pdb", Destination: "web-pdb"},
		Names:  plans.Names{Mode: plans.Bridge, Service: "web-peers"},
		Gates: []plans.Gate{
			{Name: "leave", When: plans.BeforeShrink, Exec: &plans.Exec{Command: []string{"leave"}}},
			{Name: "come", When: plans.AfterGrow, HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(8080), Scheme: corev1.URISchemeHTTP}},
			{Name: "backup", When: plans.BeforeShrink, Job: &batchv1.JobSpec{}},
			{Name: "rejoin", When: plans.AfterGrow, Job: &batchv1.JobSpec{}},
		},
	}
}

// A Role names every object whose name is known together with the plan: without names it would cover all
// traffic, all Jobs and all pods of a namespace.
func TestRolesNameWhatIsKnownBeforehand(t *testing.T) {
	p := gated(2)
	slicesOfIt := []string{"stsmigrate-abc-ipv4-0", "stsmigrate-abc-ipv6-0"}
	job := func(gate int, when plans.Side, o int32) string {
		return p.JobName(p.Gates[gate], plans.Step{From: when}, o)
	}
	jobs := func(side plans.Side) []string {
		out := []string{job(2, side, 0), job(2, side, 1), job(3, side.Other(), 0), job(3, side.Other(), 1)}
		slices.Sort(out)
		return out
	}
	for _, side := range plans.Sides() {
		want := map[string][]string{ // by resource and verb
			"pods/exec create": {"web-0", "web-1"}, "pods/proxy get": {"http:web-0:8080", "http:web-1:8080"},
			"jobs patch": jobs(side), "jobs delete": jobs(side),
			"endpointslices update": slicesOfIt, "endpointslices delete": slicesOfIt, "services delete": {"web-peers"},
		}
		seen := map[string]bool{}
		for _, o := range Roles(p, side, types.NamespacedName{Namespace: "stsmigrate", Name: "orchestrator"}, nil) {
			for _, r := range rulesOf(o) {
				for _, verb := range r.Verbs {
					what := r.Resources[0] + " " + verb
					if names, named := want[what]; named && !slices.Equal(r.ResourceNames, names) {
						t.Errorf("%s: %s of %v, expected %v", side, what, r.ResourceNames, names)
					}
					seen[what] = true
				}
			}
		}
		for what := range want {
			if !seen[what] {
				t.Errorf("%s: nobody may %s", side, what)
			}
		}
	}
	exported := gated(1)
	exported.Names.Mode = plans.MCS
	for _, r := range Rights(exported, plans.Source) {
		if r.Resource == "serviceexports" && !slices.Equal(r.Names, []string{"web-peers"}) {
			t.Errorf("serviceexports of %v", r.Names)
		}
	}
	byName := gated(1)
	byName.Gates[1].HTTPGet.Port = intstr.FromString("http")
	for _, r := range Rights(byName, plans.Source) {
		if r.Resource == "pods/proxy" && r.Names != nil {
			t.Errorf("the number of a port that has a name is the pod's, and the Role says %v", r.Names)
		}
	}
}

// A plan writes what it copies. Of what must exist already, and of the source's own objects, it only reads.
func TestOnlyWhatIsCopiedMayBeWritten(t *testing.T) {
	p := gated(1)
	for _, order := range [][]plans.Dependency{
		{{Kind: "Secret", Name: "app"}, {Kind: "Secret", Name: "web-tls", Required: "Certificate web"}, {Kind: "Secret", Name: "pull"}},
		{{Kind: "Secret", Name: "web-tls", Required: "Certificate web"}, {Kind: "Secret", Name: "app"}, {Kind: "Secret", Name: "pull"}},
	} {
		p.Dependencies = order
		for side, written := range map[plans.Side][]string{plans.Source: nil, plans.Destination: {"app", "pull"}} {
			got := map[string][]string{}
			for _, o := range Roles(p, side, types.NamespacedName{Namespace: "stsmigrate", Name: "orchestrator"}, nil) {
				for _, r := range rulesOf(o) {
					for _, verb := range r.Verbs {
						if r.Resources[0] == "secrets" {
							got[verb] = append(got[verb], r.ResourceNames...)
						}
					}
				}
			}
			slices.Sort(got["get"])
			if !slices.Equal(got["get"], []string{"app", "pull", "web-tls"}) || !slices.Equal(got["patch"], written) || !slices.Equal(got["delete"], written) {
				t.Errorf("%s: get %v, patch %v, delete %v; expected to write %v only", side, got["get"], got["patch"], got["delete"], written)
			}
		}
	}
}

// A plan of many ordinals has as many slices as the Keeper makes.
// Without the names of its volumes, nobody may change any volume: a rule without names is about all of them.
func TestRolesWithoutVolumesChangeNone(t *testing.T) {
	p := gated(2)
	p.Source.Cluster, p.Claims = "another", []plans.ClaimMove{{Template: "ghost", Mode: plans.Reimport}}
	for _, o := range UserRoles(p, plans.Destination, []string{"anna"}, nil, nil) {
		role, ok := o.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, "persistentvolumes") && len(rule.ResourceNames) == 0 && (slices.Contains(rule.Verbs, "patch") || slices.Contains(rule.Verbs, "delete") || !slices.Contains(rule.Verbs, "get")) {
				t.Errorf("%+v", rule)
			}
		}
	}
}

func TestRolesNameEverySlice(t *testing.T) {
	for _, r := range Rights(gated(201), plans.Source) {
		if r.Resource == "endpointslices" && (len(r.Names) != 6 || !slices.Contains(r.Names, "stsmigrate-abc-ipv6-2")) {
			t.Errorf("slices %v", r.Names)
		}
	}
}

// Roles that are printed again remove no right: in mid-move, with one ordinal in flight, and after the end.
func TestTheVolumesOfAPlanAreKnownAtAnyTime(t *testing.T) {
	p := gated(4)
	volume := func(o int, stamped bool) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pv-", o)}}
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: fmt.Sprint("vol-", o)}
		if stamped {
			plans.Stamp{Plan: p.ID}.Put(pv)
		}
		return pv
	}
	claim := func(namespace string, o int) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("data-web-", o)}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: fmt.Sprint("pv-", o)}}
	}
	other := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-of-others"}}
	plans.Stamp{Plan: "xyz"}.Put(other)
	stranger := claim("shop", 7)
	cluster := func(objects ...client.Object) client.Client {
		return fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(append(objects, other.DeepCopy(), stranger.DeepCopy())...).Build()
	}
	flight := journal.New(p)
	flight.Flight = &plans.Flight{Volumes: []plans.Volume{{Name: "pv-2"}}}
	var all []Disk
	for o := range 4 {
		all = append(all, Disk{fmt.Sprint("pv-", o), fmt.Sprint("disk.example.com^vol-", o)})
	}
	unseen := slices.Clone(all)
	unseen[2].Handle = ""
	for name, c := range map[string]struct {
		on   clusters.Clusters
		j    *journal.Journal
		want []Disk
	}{
		"before": {clusters.Clusters{
			plans.Source:      cluster(volume(0, false), volume(1, false), volume(2, false), volume(3, false), claim("shop", 0), claim("shop", 1), claim("shop", 2), claim("shop", 3)),
			plans.Destination: cluster(),
		}, nil, all},
		"two have moved": {clusters.Clusters{
			plans.Source:      cluster(volume(0, true), volume(1, true), claim("shop", 0), claim("shop", 1)),
			plans.Destination: cluster(volume(2, true), volume(3, true), claim("mall", 2), claim("mall", 3)),
		}, nil, all},
		"one is in flight": {clusters.Clusters{
			plans.Source:      cluster(volume(0, true), volume(1, true), volume(2, true), claim("shop", 0), claim("shop", 1)),
			plans.Destination: cluster(volume(3, true), claim("mall", 3)),
		}, nil, all},
		"one is in the journal alone": {clusters.Clusters{
			plans.Source:      cluster(volume(0, true), volume(1, true), claim("shop", 0), claim("shop", 1)),
			plans.Destination: cluster(volume(3, true), claim("mall", 3)),
		}, flight, unseen},
		"the marks are off": {clusters.Clusters{
			plans.Source:      cluster(),
			plans.Destination: cluster(volume(0, false), volume(1, false), volume(2, false), volume(3, false), claim("mall", 0), claim("mall", 1), claim("mall", 2), claim("mall", 3)),
		}, nil, all},
		"the source alone": {clusters.Clusters{
			plans.Source: cluster(volume(0, true), volume(1, true), volume(2, true), volume(3, true), claim("shop", 0)),
		}, nil, all},
	} {
		got, err := Disks(t.Context(), p, c.on, c.j)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; expected %v", name, got, err, c.want)
		}
	}
}

// A user who carries a plan out with commands keeps its record too, and reads no consent.
func TestUsersGetTheRightsOfTheirCommands(t *testing.T) {
	p := gated(2)
	for _, side := range plans.Sides() {
		has := map[string]bool{}
		for _, o := range UserRoles(p, side, []string{"anna"}, []string{"admins"}, []string{"pv-1"}) {
			for _, r := range rulesOf(o) {
				has[r.Resources[0]] = has[r.Resources[0]] || !slices.Contains(r.ResourceNames, ConsentMap)
			}
			var subjects []rbacv1.Subject
			switch o := o.(type) {
			case *rbacv1.RoleBinding:
				subjects = o.Subjects
			case *rbacv1.ClusterRoleBinding:
				subjects = o.Subjects
			default:
				continue
			}
			if len(subjects) != 2 || subjects[0] != (rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "anna"}) || subjects[1].Kind != "Group" || subjects[1].Name != "admins" {
				t.Errorf("%s is for %+v", o.GetName(), subjects)
			}
		}
		if home := side == plans.Destination; has["leases"] != home || !has["statefulsets"] {
			t.Errorf("%s: rights to %v", side, has)
		}
	}
}
