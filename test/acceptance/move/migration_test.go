package move_test

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/today"
	"github.com/stsmigrate/stsmigrate/test/internal/witness"
)

// mode is the kind of a move.
type mode string

const (
	rebind   mode = "rebind"   // two namespaces of one cluster
	reimport mode = "reimport" // two clusters
)

// day is the number of the day. It selects the mode in which a test runs, the other one on the next day; MOVE_DAY
// runs those of another day. With MOVE_ALL every test runs in both modes (`make soak`).
var day = today.Day("MOVE_DAY")

// hashOf spreads the tests over the days.
func hashOf(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int(h.Sum32())
}

// shareOf returns the number in an environment variable: in how many days everything that it selects is played once.
func shareOf(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: expected the number of days in which everything is played once, such as 2", variable, text)
	}
	return n
}

// modesOf returns the modes in which a test runs today.
func modesOf(name string) []mode {
	if os.Getenv("MOVE_ALL") != "" {
		return []mode{rebind, reimport}
	}
	return []mode{[]mode{rebind, reimport}[(hashOf(name)+day)%2]}
}

// sometimes skips a test on the days of others, if MOVE_SHARE=N asks for one of N of them (`.ci/run`).
func sometimes(t *testing.T) {
	t.Helper()
	share := shareOf(t, "MOVE_SHARE", 1)
	if os.Getenv("MOVE_ALL") != "" {
		return
	}
	// The mode changes every day, so the share changes after both.
	if (hashOf(t.Name())/2+day/2)%share != 0 {
		t.Skipf("it is run on another day (MOVE_SHARE=%d); without MOVE_SHARE it is run every day", share)
	}
}

// inBothModes sets up a migration in each mode of today and runs a test on it, in parallel with other tests. The
// simulation runs what these tests show in both modes every time.
func inBothModes(t *testing.T, c options, test func(*migration)) {
	t.Helper()
	sometimes(t)
	t.Parallel()
	for _, m := range modesOf(t.Name()) {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			test(newMigration(t, m, c))
		})
	}
}

// inOneMode sets up a migration in one mode, which n selects. It is for tests of many cases: the simulation runs
// each of them in both modes.
func inOneMode(t *testing.T, n int, c options, test func(*migration)) {
	t.Helper()
	sometimes(t)
	t.Parallel()
	test(newMigration(t, []mode{rebind, reimport}[n%2], c))
}

// end is one side of a move.
type end struct {
	client.Client
	cluster   *cluster.Cluster
	namespace string
	front     string // the kubeconfig through which commands reach it; "" for that of the cluster
}

// config returns the kubeconfig for commands.
func (e *end) config() string { return cmp.Or(e.front, e.cluster.Kubeconfig) }

// migration is a set that runs on the source and a destination to move it to.
type migration struct {
	t                   *testing.T
	bed                 *cluster.Bed
	mode                mode
	source, destination *end
	start, replicas     int32
	planFile            string
	kubeconfig          string // of another account
}

// options is the options of a migration.
type options struct {
	start, replicas int32                     // 0 replicas means 5
	set             func(*appsv1.StatefulSet) // changes the usual set
	budget          *intstr.IntOrString       // maxUnavailable; nil means 30%
	noBudget        bool                      // no PodDisruptionBudget
	empty           func(*appsv1.StatefulSet) // a destination set without ordinals
	objects         func(*migration)          // creates other objects that the set needs
	bed             *cluster.Bed              // nil means that of all tests
	classOf         string                    // the one claim template has the class of this name + namespace
}

var migrations atomic.Int32

// stage creates the namespaces and the set, and waits until the set is ready.
func newMigration(t *testing.T, m mode, c options) *migration {
	t.Helper()
	if c.replicas == 0 {
		c.replicas = 5
	}
	on := cmp.Or(c.bed, bed)
	n := migrations.Add(1)
	s := &migration{t: t, bed: on, mode: m, start: c.start, replicas: c.replicas, planFile: filepath.Join(t.TempDir(), "plan.yaml")}
	s.source = newEnd(t, on.East, fmt.Sprintf("%s-%d", m, n))
	if m == rebind {
		s.destination = newEnd(t, on.East, fmt.Sprintf("%s-%d-new", m, n))
	} else {
		s.destination = newEnd(t, on.West, s.source.namespace)
	}
	t.Cleanup(s.cleanup)
	for _, o := range clusterObjects(s.source.namespace) {
		s.create(s.source, o)
	}
	if c.objects != nil {
		c.objects(s)
	}
	if c.classOf != "" {
		c.set = oneClaim(c.classOf + s.source.namespace)
	}
	if !c.noBudget {
		s.create(s.source, newBudget(s.source.namespace, "web", c.budget))
	}
	set := newSet(s.source.namespace, c.start, c.replicas)
	if c.set != nil {
		c.set(set)
	}
	if c.empty != nil {
		copied := set.DeepCopy()
		copied.Namespace, copied.Spec.Replicas = s.destination.namespace, new(int32)
		c.empty(copied)
		s.create(s.destination, copied)
	}
	s.create(s.source, set)
	s.ready(s.source)
	s.claimsGoWithPods()
	return s
}

// cleanup deletes sets and claims after the test. What stayed would be listed by every command of every later
// test.
func (s *migration) cleanup() {
	for _, on := range []*end{s.source, s.destination} {
		for _, o := range []client.Object{&appsv1.StatefulSet{}, &corev1.PersistentVolumeClaim{}} {
			_ = on.DeleteAllOf(context.Background(), o, client.InNamespace(on.namespace), client.PropagationPolicy(metav1.DeletePropagationBackground))
		}
	}
}

// claimsGoWithPods sets the retention policy under which a move can lose the most: claims are deleted with
// their pods and with the set. Setting it from the start would be safe but slow: the set's controller and the
// volume controller conflict at a new claim, and the latter retries after 15 seconds.
func (s *migration) claimsGoWithPods() {
	s.t.Helper()
	s.change(s.source, &appsv1.StatefulSet{}, "web", `{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete","whenScaled":"Delete"}}}`)
	s.eventually("the claims are owned", func(ctx context.Context) bool {
		var claims corev1.PersistentVolumeClaimList
		err := s.source.List(ctx, &claims, client.InNamespace(s.source.namespace))
		return err == nil && !slices.ContainsFunc(claims.Items, func(c corev1.PersistentVolumeClaim) bool { return len(c.OwnerReferences) == 0 && c.Name != "media" })
	})
	s.ready(s.source)
}

func newEnd(t *testing.T, c *cluster.Cluster, namespace string) *end {
	t.Helper()
	api, err := client.New(c.Config(), client.Options{Scheme: clusters.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	return &end{Client: api, cluster: c, namespace: namespace}
}

// create creates an object as a user does with kubectl.
func (s *migration) create(on *end, o client.Object) {
	s.t.Helper()
	if err := on.Create(s.t.Context(), o, client.FieldOwner("kubectl-create")); err != nil {
		s.t.Fatal(err)
	}
}

// read reads the object of a side that has the name of the set.
func (s *migration) read(on *end, o client.Object) {
	s.t.Helper()
	if err := on.Get(s.t.Context(), on.key("web"), o); err != nil {
		s.t.Fatal(err)
	}
}

// change changes an object as a user does with kubectl: by a merge patch.
func (s *migration) change(on *end, o client.Object, name, patch string) {
	s.t.Helper()
	o.SetNamespace(on.namespace)
	o.SetName(name)
	if err := on.Patch(s.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("kubectl-edit")); err != nil {
		s.t.Fatal(err)
	}
}

func (e *end) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: e.namespace, Name: name}
}

// ready waits until a side has all ordinals and its budget counts them, so that the control plane has nothing
// left to write.
func (s *migration) ready(on *end) {
	s.t.Helper()
	s.eventually("the set is ready", func(ctx context.Context) bool {
		var set appsv1.StatefulSet
		var budgets policyv1.PodDisruptionBudgetList
		if on.Get(ctx, on.key("web"), &set) != nil || on.List(ctx, &budgets, client.InNamespace(on.namespace)) != nil {
			return false
		}
		for _, b := range budgets.Items {
			if b.Status.CurrentHealthy != s.replicas {
				return false
			}
		}
		st := set.Status
		return st.AvailableReplicas == s.replicas && st.Replicas == s.replicas && st.CurrentRevision == st.UpdateRevision && st.ObservedGeneration == set.Generation
	})
}

// eventually waits until a condition is true.
func (s *migration) eventually(what string, is func(context.Context) bool) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), 50*time.Millisecond, 3*time.Minute, true,
		func(ctx context.Context) (bool, error) { return is(ctx), nil })
	if err != nil {
		s.t.Fatalf("not in time: %s\n%s%s", what, s.situation(s.source), s.situation(s.destination))
	}
}

// situation returns the pods, claims and events of a side, for the message of a failed wait.
func (s *migration) situation(on *end) string {
	var b strings.Builder
	var pods corev1.PodList
	var claims corev1.PersistentVolumeClaimList
	var events corev1.EventList
	for _, list := range []client.ObjectList{&pods, &claims, &events} {
		// The context of the test may have expired. This call still has to work.
		if err := on.List(context.WithoutCancel(s.t.Context()), list, client.InNamespace(on.namespace)); err != nil {
			return err.Error() + "\n"
		}
	}
	for _, p := range pods.Items {
		fmt.Fprintf(&b, "%s pod %s: %s, deleted %v, %v\n", on.namespace, p.Name, p.Status.Phase, p.DeletionTimestamp, p.Status.Conditions)
	}
	for _, c := range claims.Items {
		fmt.Fprintf(&b, "%s claim %s: %s\n", on.namespace, c.Name, c.Status.Phase)
	}
	for _, e := range events.Items {
		fmt.Fprintf(&b, "%s %s %s: %s (%d times)\n", e.LastTimestamp.Format(time.TimeOnly), e.InvolvedObject.Name, e.Reason, e.Message, e.Count)
	}
	return b.String()
}

// watched starts the witness of a move with one ordinal per wave.
func (s *migration) watched() *witness.Witness {
	s.t.Helper()
	return s.watchedInWaves(1)
}

// watchedInWaves starts the witness of a move with a window.
func (s *migration) watchedInWaves(window int) *witness.Witness {
	s.t.Helper()
	w, err := witness.Watch(s.t.Context(), "web", window,
		witness.Side{Config: s.source.cluster.Config(), Namespace: s.source.namespace},
		witness.Side{Config: s.destination.cluster.Config(), Namespace: s.destination.namespace})
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

// reach returns the flags that a command about a stored plan needs.
func (s *migration) reach() []string {
	if s.mode == rebind {
		return []string{"--kubeconfig", s.source.config(), "-n", s.destination.namespace}
	}
	return []string{"--kubeconfig", s.source.config(), "--to-kubeconfig", s.destination.config(), "--to-namespace", s.destination.namespace}
}

func (s *migration) planArgs(more ...string) []string {
	args := []string{"plan", "web", "--kubeconfig", s.source.config(), "-n", s.source.namespace, "--to-namespace", s.destination.namespace, "--out", s.planFile}
	if s.mode == reimport {
		args = append(args, "--to-kubeconfig", s.destination.config())
	}
	return append(args, more...)
}

func (s *migration) applyArgs(more ...string) []string {
	args := []string{"apply", s.planFile, "--yes", "--kubeconfig", s.source.config()}
	if s.mode == reimport {
		args = append(args, "--to-kubeconfig", s.destination.config())
	}
	return append(args, more...)
}

// args returns the arguments of a command about the stored plan, such as abort.
func (s *migration) args(verb string, more ...string) []string {
	args := append([]string{verb, "web"}, s.reach()...)
	switch verb {
	case "abort", "finalize", "resume":
		args = append(args, "--yes")
	}
	return append(args, more...)
}

// planned writes the plan file.
func (s *migration) planned(more ...string) {
	s.t.Helper()
	run(s.t, s.planArgs(more...)...).expect(s.t, done, "Nothing has been written")
}

func newSet(namespace string, start, replicas int32) *appsv1.StatefulSet {
	labels := map[string]string{"app": "web"}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: "web",
			Replicas:    &replicas,
			Selector:    &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: "web", TerminationGracePeriodSeconds: ptr.To(int64(1)),
					Containers: []corev1.Container{{
						Name: "web", Image: "web",
						VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "logs", MountPath: "/logs"}},
						EnvFrom: []corev1.EnvFromSource{
							{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}}},
							{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}}},
						},
					}},
				},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{newClaim("data", cluster.SharedClass), newClaim("logs", cluster.SharedClass)},
		},
	}
	if start != 0 {
		set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: start}
	}
	return set
}

func newClaim(name, class string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func newBudget(namespace, name string, most *intstr.IntOrString) *policyv1.PodDisruptionBudget {
	if most == nil {
		share := intstr.FromString("30%")
		most = &share
	}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "web"}},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: most,
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
}

// clusterObjects returns the objects that the pods of the set name.
func clusterObjects(namespace string) []client.Object {
	own := metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: map[string]string{"app": "web"}}
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: own, Data: map[string]string{"mode": "fast"}},
		&corev1.Secret{ObjectMeta: own, StringData: map[string]string{"password": "canary-7f3a"}},
		&corev1.ServiceAccount{ObjectMeta: own},
		&corev1.Service{ObjectMeta: own, Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}},
		}},
	}
}
