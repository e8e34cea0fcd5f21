package simulation

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/test/internal/witness"
)

// options describes the world that a migration starts in.
type options struct {
	Mode      plans.Mode
	Ordinals  int32
	Start     int32
	D         int32
	Window    int32 // 0 means 1
	Templates []string
	// Budget is the user's PodDisruptionBudget on the source; nil means none.
	Budget *policyv1.PodDisruptionBudgetSpec
	// Existing puts an empty set and a budget on the destination beforehand.
	Existing   bool
	Parallel   bool
	MinReady   int32
	Delete     bool // the source's retention policy is Delete/Delete
	Evictions  int  // how many evictions are requested during the run
	Seed       uint64
	Lag        bool // the watches of engines report changes late
	Dependents bool // the pod template names a ConfigMap, a Secret and a Service
	Gates      []plans.Gate
	Left       []string              // claim templates whose volumes do not move
	Newer      bool                  // the API servers have fields that this program does not know
	Shared     bool                  // the pod template names a claim that all ordinals mount
	Spread     bool                  // each pod has a node of its own
	Slots      int                   // how many pods a node takes; 0 for more than enough
	Placeless  bool                  // the scheduler finds no node for a placeholder, and for every other pod
	Without    []engine.Acceleration // what the engines do without
	Overlaps   bool                  // what is sent beside the engines arrives later, while they look
	Remembers  bool                  // the engines that are explored remember what they have seen
	Places     plans.Proof           // the places of the ordinals are taken before they leave
	Nodes      int                   // how many nodes each cluster has; 0 for more than enough
	Reach      []string              // what must be reached from there
	Unattached bool                  // the driver says that nodes attach no volume, and kubelets report how pods end
}

func threeOrdinals(mode plans.Mode) options {
	return options{Mode: mode, Ordinals: 3, D: 1, Templates: []string{"data"}, Budget: maxUnavailable(intstr.FromInt32(1)), Dependents: true}
}

// inWaves moves four ordinals in waves of two, with two volumes each.
func inWaves(mode plans.Mode) options {
	return options{Mode: mode, Ordinals: 4, D: 2, Window: 2, Templates: []string{"data", "log"}, Budget: maxUnavailable(intstr.FromInt32(2)), Dependents: true}
}

func maxUnavailable(v intstr.IntOrString) *policyv1.PodDisruptionBudgetSpec {
	return &policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &v}
}

// nodes returns the names of the nodes of each cluster.
func (sc options) nodes() []string {
	out := []string{"node-a", "node-b"}
	if sc.Nodes > 0 {
		out = nil
		for i := range sc.Nodes {
			out = append(out, fmt.Sprintf("node-%d", i))
		}
		return out
	}
	for i := range sc.Ordinals + 2 {
		if sc.Spread {
			out = append(out, fmt.Sprintf("node-%d", i))
		}
	}
	return out
}

const (
	setName  = "web"
	planName = "move-web"
	// className is the StorageClass of every volume.
	className = "disks"
	blue      = "blue"  // the namespace of the source
	green     = "green" // the namespace of the destination, and home
	// canary is the value of a Secret, which is to be in no record (S16).
	canary = "canary-of-a-secret"
)

// world is everything there is: the clusters, the disks, and the history that the invariants need.
type world struct {
	options options
	on      map[plans.Side]*store
	stores  []*store
	plan    *plans.Plan
	rights  map[string]rights                     // of the engines' account, by cluster
	printed printed                               // what these rights were given for
	agreed  map[string]*unstructured.Unstructured // each cluster's consent to volumes
	rng     *rand.Rand
	choices *choices // in place of what is drawn by chance; nil: it is drawn
	// What the controllers remember.
	seen      map[types.UID]*appsv1.StatefulSet // the set controller's cache
	aged      map[types.UID]bool                // pods Ready for minReadySeconds
	granted   map[types.UID]bool                // evictions granted
	evictions int
	drains    bool // only pods on nodes that are being drained are evicted
	// The disks behind the volumes: which ordinal's data each holds.
	disks    map[string]disk
	app      application
	crashing []types.UID // pods whose application never becomes ready again
	stuck    string      // the cluster that never detaches a volume
	jammed   string      // the cluster that never attaches one
	unbound  string      // the cluster whose binder does nothing
	// How often a pod's kubelet does not end it yet, or a cluster neither attaches nor detaches; below 0: never.
	lingers map[types.UID]int
	slow    map[string]int
	vouched []string // the nodes that the user has said to be gone
	start   map[string]any
	journal journal.Journal // as last written
	fenced  int64           // the highest epoch whose TakeOver is complete
	writes  int             // by engines
	// sent is what was sent beside the engines and has not arrived. lateness draws when it does.
	sent     []func()
	lateness *rand.Rand
	acts     []act   // those that were not to the journal
	late     []place // created by a stale engine after it was fenced
	kept     map[string]string
	// loosened are the sets whose updateStrategy a user has changed while a wave was away.
	loosened    map[types.UID]bool
	came        map[int32]bool // as arrives tells
	rolls       bool           // templates change: what rolls for them while nothing is in flight is the user's
	foreign     bool           // another writer has interfered: violations of S2, S4 and S7 may be its own
	partitioned bool           // nothing is reached from the places of the ordinals
	racing      bool           // a Secret may be changed between a look at it and the write that follows
	broken      []string       // invariants that did not hold
	trail       []string       // the writes of engines, to read after a failure
	quiet       int64          // the version at which no controller had anything to do
	judge       *witness.Judge
	only        bool // what is broken is left to the judge to find
	checked     bool // the engines run the checks before their waves
	closed      map[plans.Side]shut
	// changes counts the checks of the world. fell and budgeted say with which of them an ordinal last became
	// unavailable, as fallen tells, and a process last wrote a budget. served are the pods that are up.
	changes, fell, budgeted int
	fallen                  seat
	served                  map[seat]types.UID
	stringent               bool // the migration has begun
}

type place struct {
	on  string // the cluster
	key key
}

// act is a write by an engine, and the latest wave in flight at that moment.
type act struct {
	verb, on string // on is the cluster
	key             // of the object
	write    int
	wave     plans.Slice
}

type disk struct {
	claim     string // the name of the claim whose data it holds; "" when empty
	destroyed bool
}

// emptyWorld has no clusters yet.
func emptyWorld(sc options) *world {
	return &world{
		options: sc, rng: rand.New(rand.NewPCG(0, 7)), disks: map[string]disk{},
		app:  application{asked: map[string]int{}, yes: map[string]int{}, said: map[string]bool{}, heard: map[string]consent{}, begun: map[types.UID]consent{}, clock: time.Unix(0, 0)},
		seen: map[types.UID]*appsv1.StatefulSet{}, aged: map[types.UID]bool{}, granted: map[types.UID]bool{},
		lingers: map[types.UID]int{}, slow: map[string]int{}, loosened: map[types.UID]bool{}, came: map[int32]bool{},
	}
}

// newWorld builds the options, lets it come to rest, and stores the plan.
func newWorld(sc options) *world {
	w := emptyWorld(sc)
	first := newStore("one")
	w.stores, w.on = []*store{first}, map[plans.Side]*store{plans.Source: first, plans.Destination: first}
	if sc.Mode == plans.Reimport {
		second := newStore("two")
		w.stores, w.on[plans.Destination] = append(w.stores, second), second
	}
	for _, s := range w.stores {
		for _, name := range []string{"kube-system", blue, green} {
			must(s.Create(context.TODO(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		}
		for _, name := range sc.nodes() {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + name}}
			node.Status.Conditions, node.Status.Allocatable = nodeIsReady(), roomForPods()
			must(s.Create(context.TODO(), node))
		}
	}
	w.furnish()
	w.rest()
	w.label()
	w.storePlan()
	w.rest()
	if sc.Newer {
		w.grow()
	}
	w.start = w.snapshot()
	for _, s := range w.stores {
		clear(s.counts)
	}
	// Every seed starts from the same world.
	w.rng = rand.New(rand.NewPCG(sc.Seed, 7))
	w.evictions, w.stringent = sc.Evictions, true
	w.beJudged()
	return w
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// fork returns an independent copy of the world that continues from here with another seed. Stored objects
// are never changed in place, so that both worlds may hold them.
func (w *world) fork(seed uint64) *world {
	out := *w
	out.options.Seed, out.rng = seed, rand.New(rand.NewPCG(seed, 7))
	out.options.Lag = seed%4 == 2
	out.seen, out.aged, out.granted, out.disks = maps.Clone(w.seen), maps.Clone(w.aged), maps.Clone(w.granted), maps.Clone(w.disks)
	out.lingers, out.slow = maps.Clone(w.lingers), maps.Clone(w.slow)
	out.app.asked, out.app.yes = maps.Clone(w.app.asked), maps.Clone(w.app.yes)
	out.app.said, out.app.heard, out.app.begun = maps.Clone(w.app.said), maps.Clone(w.app.heard), maps.Clone(w.app.begun)
	out.served, out.loosened, out.came = maps.Clone(w.served), maps.Clone(w.loosened), maps.Clone(w.came)
	out.stores, out.on, out.judge = nil, map[plans.Side]*store{}, w.judge.Clone()
	for _, s := range w.stores {
		next := *s
		next.watches = nil // the processes are those of the other world
		next.objects, next.counts, next.order, next.future = maps.Clone(s.objects), maps.Clone(s.counts), slices.Clone(s.order), maps.Clone(s.future)
		out.stores = append(out.stores, &next)
		for side, on := range w.on {
			if on == s {
				out.on[side] = &next
			}
		}
	}
	out.sent, out.lateness = nil, rand.New(rand.NewPCG(seed, 192))
	out.trail = slices.Clone(w.trail)
	out.crashing = slices.Clone(w.crashing)
	out.late, out.acts, out.broken = slices.Clone(w.late), slices.Clone(w.acts), slices.Clone(w.broken)
	out.listen()
	return &out
}

// furnish creates what the user has: the set, its budget and its dependencies.
func (w *world) furnish() {
	ctx, source, destination := context.TODO(), w.on[plans.Source], w.on[plans.Destination]
	if w.options.Dependents {
		meta := metav1.ObjectMeta{Namespace: blue, Name: setName}
		must(source.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"color": "blue"}}))
		must(source.Create(ctx, &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"key": []byte(canary)}}))
		must(source.Create(ctx, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}))
	}
	if w.options.Shared {
		w.furnishMedia()
	}
	for _, s := range w.stores {
		if w.options.Unattached {
			never := false
			must(s.Create(ctx, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "sim"}, Spec: storagev1.CSIDriverSpec{AttachRequired: &never}}))
		}
	}
	must(source.Create(ctx, w.set(blue, w.options.Start, w.options.Ordinals)))
	if w.options.Budget != nil {
		must(source.Create(ctx, w.budget(blue)))
	}
	if w.options.Existing {
		set := w.set(green, 0, 0)
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		}
		must(destination.Create(ctx, set))
		if w.options.Budget != nil {
			must(destination.Create(ctx, w.budget(green)))
		}
	}
}

func (w *world) budget(namespace string) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-budget", Labels: map[string]string{"team": "shop"}}, Spec: *w.options.Budget}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": setName}}
	return b
}

func (w *world) set(namespace string, start, replicas int32) *appsv1.StatefulSet {
	app := map[string]string{"app": setName}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: setName, Labels: app}}
	set.Spec = appsv1.StatefulSetSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: app}, MinReadySeconds: w.options.MinReady,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}}},
	}
	if start > 0 {
		set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: start}
	}
	if w.options.Parallel {
		set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	}
	if w.options.Delete {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		}
	}
	for _, t := range w.options.Templates {
		class := className
		set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: t, Labels: app}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class},
		})
	}
	if w.options.Shared {
		set.Spec.Template.Spec.Volumes = append(set.Spec.Template.Spec.Volumes, corev1.Volume{Name: media, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: media},
		}})
	}
	if w.options.Dependents {
		ref := corev1.LocalObjectReference{Name: setName}
		set.Spec.ServiceName = setName
		set.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref}}, {SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref}},
		}
	}
	return set
}

// label writes data on the disks: whatever was provisioned so far is the user's.
func (w *world) label() {
	for _, pv := range all[*corev1.PersistentVolume](w.on[plans.Source]) {
		w.disks[diskOf(pv)] = disk{claim: pv.Spec.ClaimRef.Name}
	}
}

func diskOf(pv *corev1.PersistentVolume) string {
	if pv.Spec.NFS != nil {
		return pv.Spec.NFS.Path
	}
	return pv.Spec.CSI.VolumeHandle
}

// media is the claim, and its volume, that all ordinals of a options mount.
const media = "media"

func (w *world) furnishMedia() {
	class := ""
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: blue, Name: media}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: media}}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	pv.Spec.NFS = &corev1.NFSVolumeSource{Server: "files", Path: "/media"}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: blue, Name: media}
	must(w.on[plans.Source].Create(context.TODO(), pv))
	must(w.on[plans.Source].Create(context.TODO(), claim))
}

// left reports whether a claim belongs to a template whose volumes do not move.
func (w *world) left(claim string) bool {
	return slices.ContainsFunc(w.options.Left, func(t string) bool { return strings.HasPrefix(claim, t+"-") })
}

func (w *world) ref(side plans.Side) plans.Ref {
	s := w.on[side]
	system, _ := get[*corev1.Namespace](s, "", "kube-system")
	r := plans.Ref{Cluster: system.UID, Context: s.name, Namespace: blue, Name: setName}
	if side == plans.Destination {
		r.Namespace = green
	}
	return r
}

func (w *world) storePlan() {
	in := build.Inputs{Name: planName, ID: "1", Source: w.ref(plans.Source), Destination: w.ref(plans.Destination), MaxUnavailable: w.options.D, Window: w.options.Window, Gates: w.options.Gates, Empty: w.options.Left, Placeholder: w.options.placeholder()}
	if w.options.Shared {
		in.Shared = []plans.SharedVolume{{Claim: media, Volume: media, Handle: "nfs^files:/media"}}
	}
	in.Set, _ = get[*appsv1.StatefulSet](w.on[plans.Source], blue, setName)
	in.SourceBudget, _ = get[*policyv1.PodDisruptionBudget](w.on[plans.Source], blue, "web-budget")
	if w.options.Newer { // a list that contains our own change
		in.Patches = []plans.Patch{{Patch: "spec: {template: {spec: {containers: [{name: web, image: mirror/web}]}}}"}}
	}
	if w.options.Existing {
		in.Existing, _ = get[*appsv1.StatefulSet](w.on[plans.Destination], green, setName)
		in.DestinationBudget, _ = get[*policyv1.PodDisruptionBudget](w.on[plans.Destination], green, "web-budget")
	}
	p, err := build.Plan(in)
	must(err)
	must(records.NewStore(w.on[plans.Destination], green, planName).Create(context.TODO(), p, journal.New(p)))
	w.plan, w.journal = p, *journal.New(p)
	w.grant()
}

// actor is one controller, or the evictor, of one cluster. act makes one change, and reports whether there was one.
type actor struct {
	name string
	act  func(*store) bool
	on   *store
}

func (w *world) actors() []actor {
	var out []actor
	for _, s := range w.stores {
		out = append(out,
			actor{"sets", w.setController, s}, actor{"scheduler", w.scheduler, s}, actor{"kubelet", w.kubelet, s}, actor{"attacher", w.attacher, s},
			actor{"binder", w.binder, s}, actor{"provisioner", w.provisioner, s}, actor{"protection", w.protection, s}, actor{"collector", w.collector, s},
			actor{"budgets", w.budgetController, s}, actor{"evictor", w.evictor, s},
		)
		if len(w.options.Gates) > 0 {
			out = append(out, actor{"jobs", w.jobController, s})
		}
	}
	return out
}

// tick lets one controller, or the evictor, make one change. It returns false when none has anything to do.
func (w *world) tick() bool {
	if w.version() == w.quiet {
		return false
	}
	actors := w.actors()
	for _, i := range w.rng.Perm(len(actors)) {
		if actors[i].act(actors[i].on) {
			w.check()
			return true
		}
	}
	w.quiet = w.version()
	return false
}

// version changes with every change of any cluster.
func (w *world) version() (n int64) {
	for _, s := range w.stores {
		n += s.version
	}
	return n
}

// rest lets the world come to rest. It panics if that does not happen.
func (w *world) rest() {
	for range 5000 {
		if !w.tick() {
			return
		}
	}
	panic("the world never comes to rest")
}

func (w *world) fail(id, format string, args ...any) {
	if !w.only {
		w.note(id, fmt.Sprintf(format, args...))
	}
}

// note adds what was broken.
func (w *world) note(id, what string) {
	if w.stringent && len(w.broken) < 5 {
		w.broken = append(w.broken, id+": "+what)
	}
}
