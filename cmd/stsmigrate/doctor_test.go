package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// ward are the objects of sets that a doctor looks at.
type ward struct{ objects []client.Object }

// set adds a set at rest, with its pods, and with a volume for each if there is a source. change changes the set.
func (w *ward) set(namespace, name string, pods int32, disk func(*corev1.PersistentVolume), change func(*appsv1.StatefulSet)) {
	began := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	labels := map[string]string{"app": name}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name), Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &pods, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
	}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "example.com/app:1"}}
	if disk != nil {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	}
	if change != nil {
		change(set)
	}
	w.objects = append(w.objects, set)
	for o := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("%s-%d", name, o), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))},
		}}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &began, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: began},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(began.Add(40 * time.Second))},
		}}
		pod.Spec.NodeName = "node-1"
		w.objects = append(w.objects, pod)
		if disk != nil {
			w.objects = append(w.objects, bound(namespace, fmt.Sprintf("data-%s-%d", name, o), disk)...)
		}
	}
}

// bound returns a claim and its volume.
func bound(namespace, name string, disk func(*corev1.PersistentVolume)) []client.Object {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name)}}
	claim.Spec = corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + namespace + "-" + name, AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size}}
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
	pv.Spec = corev1.PersistentVolumeSpec{Capacity: size, AccessModes: modes, ClaimRef: &corev1.ObjectReference{Namespace: namespace, Name: name, UID: claim.UID}}
	pv.Status.Phase = corev1.VolumeBound
	disk(pv)
	return []client.Object{claim, pv}
}

func ofCSI(pv *corev1.PersistentVolume) {
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "vol-" + pv.Name}
}

func ofNode(pv *corev1.PersistentVolume) {
	pv.Spec.Local = &corev1.LocalVolumeSource{Path: "/mnt/" + pv.Name}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}}},
	}}}}
}

func ofPath(pv *corev1.PersistentVolume) {
	pv.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/data"}
}

// hospital has a set of every sort.
func hospital() []client.Object {
	var w ward
	w.set("db", "by-operator", 3, ofCSI, func(s *appsv1.StatefulSet) {
		yes := true
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "db.example.com/v1", Kind: "Postgres", Name: "main", UID: "o", Controller: &yes}}
	})
	w.set("db", "on-disks-of-nodes", 2, ofNode, nil)
	w.set("db", "on-paths", 1, ofPath, nil)
	w.set("shop", "asleep", 0, nil, nil)
	w.set("shop", "leaving", 2, ofCSI, func(s *appsv1.StatefulSet) {
		s.Annotations = map[string]string{plans.StampAnnotation: "leaving-abc/1/0"}
	})
	w.set("shop", "strict", 2, nil, nil)
	none := intstr.FromInt32(0)
	w.objects = append(w.objects, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "strict"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "strict"}},
	}})
	w.set("shop", "web", 3, ofCSI, nil)
	return w.objects
}

// seek serves a hospital with the kinds that a doctor looks at.
func seek(t *testing.T, objects ...client.Object) (*served, string) {
	t.Helper()
	t.Setenv("COLUMNS", "80")
	s, config := serve(t, []string{"home"}, objects...)
	s.serves("poddisruptionbudgets", "policy/v1 PodDisruptionBudget")
	s.serves("horizontalpodautoscalers", "autoscaling/v2 HorizontalPodAutoscaler")
	s.serves("rolebindings", "rbac.authorization.k8s.io/v1 RoleBinding")
	s.serves("roles", "rbac.authorization.k8s.io/v1 Role")
	s.serves("selfsubjectrulesreviews", "authorization.k8s.io/v1 SelfSubjectRulesReview")
	s.serves("selfsubjectaccessreviews", "authorization.k8s.io/v1 SelfSubjectAccessReview")
	return s, config
}

// golden compares an output with a file, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%v: it is not %s (go test ./cmd/stsmigrate -run %s -update):\n%s", err, file, t.Name(), got)
	}
	for _, line := range strings.Split(got, "\n") {
		if len(line) > 80 && !strings.HasPrefix(line, "      kubectl ") && !strings.Contains(line, "stsmigrate ") && !strings.Contains(line, "://") {
			t.Errorf("a line has %d columns: %s", len(line), line)
		}
	}
}

// consult runs the command. The path of the kubeconfig is another one each time.
func consult(t *testing.T, config string, args ...string) outcome {
	t.Helper()
	got := command(t, append(append([]string{"doctor"}, args...), "--kubeconfig", config)...)
	got.out, got.errOut = strings.ReplaceAll(got.out, config, "KUBECONFIG"), strings.ReplaceAll(got.errOut, config, "KUBECONFIG")
	return got
}

func TestADoctorSaysOfEverySetWhetherItCouldMove(t *testing.T) {
	s, config := seek(t, hospital()...)
	s.before = func(r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
		}
	}
	got := consult(t, config, "-A")
	if got.code != exitRefused || got.errOut != "" {
		t.Errorf("it ends with %d: %s", got.code, got.errOut)
	}
	golden(t, "doctor-all.txt", got.out)
	if got := consult(t, config, "-A", "-l", "app in (web, on-paths)"); got.code != exitDone || !strings.HasPrefix(got.out, "2 of 2 sets could move as they are to another namespace, 1 of them within this\ncluster only.\n") {
		t.Errorf("%+v", got)
	}
}

func TestADoctorShowsEveryFindingOfOneSet(t *testing.T) {
	_, config := seek(t, hospital()...)
	for file, c := range map[string]struct {
		args []string
		code int
	}{
		"doctor-one.txt":       {[]string{"shop/web"}, exitDone},
		"doctor-operator.txt":  {[]string{"by-operator", "-n", "db"}, exitRefused},
		"doctor-migrating.txt": {[]string{"leaving", "-n", "shop"}, exitRefused},
		"doctor-local.txt":     {[]string{"db/on-disks-of-nodes"}, exitDone},
		"doctor-none.txt":      {[]string{"shop/sts/asleep"}, exitRefused},
		"doctor-two.txt":       {[]string{"shop/web", "db/on-paths"}, exitDone},
	} {
		got := consult(t, config, c.args...)
		if got.code != c.code || got.errOut != "" {
			t.Errorf("%v ends with %d: %s", c.args, got.code, got.errOut)
		}
		golden(t, file, got.out)
	}
}

// about reports whether a request is about a resource.
func about(r *http.Request, resource string) bool {
	return strings.Contains(r.URL.Path+"/", "/"+resource+"/")
}

// A user sees what there is to see with the rights that he has. What is missing is said once for each right, and nothing
// that was not looked at counts as in order.
func TestADoctorWorksWithWhateverRightsThereAre(t *testing.T) {
	objects := hospital()
	for file, c := range map[string]struct {
		args   []string
		denies func(*http.Request) bool
	}{
		"doctor-no-volumes.txt": {[]string{"-A"}, func(r *http.Request) bool { return about(r, "persistentvolumes") || about(r, "nodes") }},
		"doctor-sets-only.txt": {[]string{"-n", "shop"}, func(r *http.Request) bool {
			return !about(r, "namespaces/shop/statefulsets") && !strings.HasPrefix(r.URL.Path, "/version")
		}},
		"doctor-one-namespace.txt": {[]string{"-A"}, func(r *http.Request) bool {
			return r.URL.Path == "/apis/apps/v1/statefulsets" || about(r, "statefulsetslices") || about(r, "namespaces/db")
		}},
		"doctor-sets-only-one.txt": {[]string{"shop/web"}, func(r *http.Request) bool { return !about(r, "statefulsets") }},
	} {
		s, config := seek(t, objects...)
		s.serves("namespaces", "v1 Namespace")
		for _, n := range []string{"shop", "db"} {
			if err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}); err != nil {
				t.Fatal(err)
			}
		}
		s.denies = c.denies
		got := consult(t, config, c.args...)
		if got.code != exitRefused || got.errOut != "" {
			t.Errorf("%s: it ends with %d: %s", file, got.code, got.errOut)
		}
		golden(t, file, got.out)
	}
}

func TestADoctorWithNothingToSeeSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		denies func(*http.Request) bool
		code   int
		want   string
	}{
		"no sets":                {[]string{"-n", "kube-system"}, nil, exitDone, "There are no sets in namespace kube-system of context home.\n"},
		"none with that label":   {[]string{"-A", "-l", "app=none"}, nil, exitDone, "There are no sets with labels app=none in context home.\n"},
		"no such namespace":      {[]string{"-n", "shpo"}, nil, exitError, "error: namespace shpo does not exist in context home: check --namespace and --context\n"},
		"no such set":            {[]string{"shop/wbe"}, nil, exitError, "error: StatefulSet shop/wbe in home does not exist: check name, --namespace and --context; `stsmigrate doctor -n shop"},
		"no right in a cluster":  {[]string{"-A"}, func(*http.Request) bool { return true }, exitError, "without the right to look at statefulsets.apps there is nothing to see"},
		"no right in namespaces": {[]string{"-A"}, func(r *http.Request) bool { return !strings.HasSuffix(r.URL.Path, "/namespaces") }, exitError, "without the right to look at statefulsets.apps there is nothing to see"},
		"no right in one":        {[]string{"-n", "shop"}, func(*http.Request) bool { return true }, exitError, "without the right to look at statefulsets.apps there is nothing to see"},
		"no right to one":        {[]string{"shop/web"}, func(*http.Request) bool { return true }, exitError, "error: StatefulSet shop/web in home"},
		"names and all":          {[]string{"-A", "web"}, nil, exitError, "error: -A is about all sets"},
		"names and labels":       {[]string{"-l", "a=b", "web"}, nil, exitError, "error: -l selects sets"},
		"no selector":            {[]string{"-l", "a in"}, nil, exitError, "error: -l a in: "},
		"no name":                {[]string{"shop/web/0"}, nil, exitError, `error: "shop/web/0": expected NAME, NAMESPACE/NAME or stss/NAME`},
		"no form":                {[]string{"-o", "table2"}, nil, exitError, "error: -o table2: expected"},
	} {
		s, config := seek(t, hospital()...)
		s.denies = c.denies
		got := consult(t, config, c.args...)
		if got.code != c.code || !strings.Contains(got.errOut, c.want) || strings.Count(got.errOut, "\n") != 1 || got.out != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What the sets of a namespace have in common is listed once, and what a cluster has once for all of them. Nothing is read
// one by one, and every list comes in pages.
func TestADoctorListsWhatManySetsHaveInCommon(t *testing.T) {
	requests := func(namespaces, sets int) int {
		var w ward
		for n := range namespaces {
			for k := range sets {
				w.set(fmt.Sprint("n-", n), fmt.Sprint("web-", k), 2, ofCSI, nil)
			}
		}
		s, config := seek(t, w.objects...)
		var lock sync.Mutex
		asked := map[string]int{}
		s.before = func(r *http.Request) {
			lock.Lock()
			defer lock.Unlock()
			parts := strings.Split(r.URL.Path, "/")
			switch _, list := s.kinds[parts[len(parts)-1]]; {
			case !list && (len(parts) <= 4 || strings.HasSuffix(r.URL.Path, "/api/v1")):
				return // about the kinds of the cluster
			case !list:
				t.Errorf("%s is read by itself", r.URL)
			case r.URL.Query().Get("limit") == "":
				t.Errorf("%s comes in one piece", r.URL)
			}
			asked[r.URL.Path]++
		}
		if got := consult(t, config, "-A"); got.code != exitDone || !strings.HasPrefix(got.out, fmt.Sprintf("%d of %[1]d sets could move", namespaces*sets)) {
			t.Errorf("%+v", got)
		}
		sum := 0
		for path, n := range asked {
			if n > 1 {
				t.Errorf("%s is asked for %d times", path, n)
			}
			sum += n
		}
		return sum
	}
	few, more, many := requests(3, 1), requests(3, 10), requests(6, 10)
	if more != few {
		t.Errorf("%d requests for 3 sets in 3 namespaces, and %d for 30", few, more)
	}
	if each := (many - more) / 3; each > 8 || many-more != each*3 {
		t.Errorf("%d requests for 3 namespaces, and %d for 6", more, many)
	}
}

// A set that is deleted while it is looked at is no set to speak of, unless it was named.
func TestASetThatIsDeletedMeanwhileIsLeftOut(t *testing.T) {
	s, config := seek(t, hospital()...)
	once := sync.Once{}
	s.before = func(r *http.Request) {
		if about(r, "persistentvolumeclaims") || r.URL.Path == "/apis/apps/v1/namespaces/db/statefulsets" {
			once.Do(func() {
				for _, name := range []string{"by-operator", "on-paths"} {
					if err := s.Delete(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "db", Name: name}}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	got := consult(t, config, "-A", "-l", "app in (by-operator, on-paths, on-disks-of-nodes)")
	if got.code != exitDone || !strings.HasPrefix(got.out, "1 of 1 set could move") || got.errOut != "" {
		t.Errorf("%+v", got)
	}
}

// Programs read the same, and kubectl's forms work.
func TestADoctorAnswersProgramsToo(t *testing.T) {
	s, config := seek(t, hospital()...)
	s.denies = func(r *http.Request) bool { return about(r, "nodes") }
	var d struct {
		APIVersion, Kind         string
		Total, Movable, OnlyHere int
		Items                    []struct {
			Namespace, Name, Moves, About, Size string
			Findings                            []struct{ Check, Level string }
			Unasked                             []string
		}
		Unseen []struct {
			Resource string
			Checks   []string
			Sets     int
		}
	}
	got := consult(t, config, "-A", "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &d); err != nil || got.code != exitRefused {
		t.Fatalf("%v: %+v", err, got)
	}
	if said := fmt.Sprint(d.APIVersion, " ", d.Kind, d.Total, d.Movable, d.OnlyHere, len(d.Items), d.Unseen); said != plans.APIVersion+" Diagnosis7 3 2 7 [{nodes [drains] 5}]" {
		t.Error(said)
	}
	for _, i := range d.Items {
		failed := false
		for n, f := range i.Findings {
			failed = failed || f.Level == "FAIL"
			if f.Level == "FAIL" && n > 0 && i.Findings[n-1].Level == "WARN" {
				t.Errorf("%s: a WARN is before a FAIL", i.Name)
			}
		}
		if failed != (i.Moves == "no") {
			t.Errorf("%+v", i)
		}
	}
}

func TestADoctorKnowsTheFormsOfKubectl(t *testing.T) {
	_, config := seek(t, hospital()...)
	if got := consult(t, config, "-n", "db", "-o", "name"); got.out != "statefulset/by-operator\nstatefulset/on-disks-of-nodes\nstatefulset/on-paths\n" {
		t.Errorf("%+v", got)
	}
	if got := consult(t, config, "-n", "db", "-o", "custom-columns=N:.name,M:.moves"); got.out != "N                   M\nby-operator         no\non-disks-of-nodes   here\non-paths            here\n" {
		t.Errorf("%+v", got)
	}
	if got := consult(t, config, "-n", "kube-system", "-o", "json"); !strings.Contains(got.out, `"items": []`) || got.code != exitDone {
		t.Errorf("%+v", got)
	}
}

// With a destination every check of a plan is asked.
func TestADoctorAsksTheDestinationThatIsNamed(t *testing.T) {
	_, config := seek(t, hospital()...)
	got := consult(t, config, "-n", "shop", "--to-namespace", "mall")
	if got.code != exitRefused || !strings.HasPrefix(got.out, "0 of 4 sets could move as they are to namespace mall of context home. 4 could\nnot.\n") || !strings.Contains(got.out, "FAIL  permissions") {
		t.Errorf("%+v", got)
	}
	if got := consult(t, config, "shop/web", "--to-namespace", "mall"); got.code != exitRefused || !strings.Contains(got.out, "StatefulSet shop/web in home could not move as it is") || !strings.Contains(got.out, "permissions") {
		t.Errorf("%+v", got)
	}
}
