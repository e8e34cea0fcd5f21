package simulation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// fault is what happens to one write of an engine.
type fault string

const (
	crashBefore fault = "crash before the write"
	crashAfter  fault = "crash after the write"
	lostAnswer  fault = "answer lost"
	refused409  fault = "refused with 409"
	refused429  fault = "refused with 429"
	refused500  fault = "refused with 500"
	refused503  fault = "refused with 503"
	setBack     fault = "accepted, and set back at once"
	delayed     fault = "arrives later" // only the exploration delivers it
)

func faults() []fault {
	return []fault{crashBefore, crashAfter, lostAnswer, refused409, refused429, refused500, refused503}
}

var (
	errDead     = errors.New("the process is dead")
	errReplaced = errors.New("another process has taken over")
)

// process is one process: its clients and its latest activity.
type process struct {
	w     *world
	epoch int64
	dead  bool
	// takingOver is set while the engine takes over and fences.
	takingOver bool
	// turns reports that its Move turns a plan that is being aborted or finalized.
	turns bool
	// word is what the user vouches for with the command of this process.
	word plans.Assurance
	// user, if set, is who runs this process.
	user string
	// clock, if set, is the clock of this process.
	clock func() time.Time
	// pause lets other processes act before a call proceeds; false ends the process.
	pause func() bool
	// at returns the fault of the n-th write of the world; nil means none. now is the object that is being
	// written.
	at     func(n int) fault
	now    key
	stores map[plans.Side]*conn
	// pending is the write that arrives later.
	pending *request
	// untold are the changes that its watches have not reported yet.
	untold []report
	// away reports whether a cluster does not respond now; nil means that all respond.
	away func(*store) bool
	// says, if set, returns what an API server answers instead of serving a request, or nil.
	says func(*store) error
	// besides reports that what is being sent is sent beside its engine.
	besides bool
}

// request is a write that has been sent, and has not arrived.
type request struct {
	cluster, verb string
	object        client.Object
	send          sender
}

// conn is the client of one process for one cluster.
type conn struct {
	*store
	r *process
}

func (w *world) process() *process {
	r := &process{w: w, stores: map[plans.Side]*conn{}}
	w.grant() // the user may apply the Roles again at any time
	for side, s := range w.on {
		r.stores[side] = &conn{s, r}
	}
	return r
}

func (r *process) engine(ctx context.Context) (*engine.Engine, error) {
	home := records.NewStore(r.stores[plans.Destination], green, planName)
	p, err := home.Plan(ctx)
	if err != nil {
		return nil, err
	}
	on := clusters.Clusters{}
	for side, c := range r.stores {
		on[side] = c
	}
	if r.word.SourceGone {
		on = on.Gone()
	}
	e := engine.New(p, home, on)
	e.Assurance, e.Now = r.word, r.clock
	e.Without(r.w.options.Without...)
	if node := r.word.NodeGone; node != "" {
		r.w.vouched = append(slices.Clone(r.w.vouched), node)
	}
	if r.w.checked {
		r.asks(e)
	}
	e.Gates.Prober = prober{r}
	if r.w.options.Seed%2 == 0 { // the others read everything live, so that other processes act between any two reads
		r.watch(e)
	}
	return e, nil
}

// watch makes an engine keep what it reads, and tells it of every change. A read takes a millisecond.
func (r *process) watch(e *engine.Engine) {
	reads, told := 0, &telling{now: map[clusters.ObjectKey]client.Object{}, before: map[clusters.ObjectKey][]client.Object{}}
	if r.w.options.Lag {
		told.any = rand.New(rand.NewPCG(r.w.options.Seed, 229)).IntN
	}
	e.Recent.Keep(func() time.Time {
		reads++
		return time.UnixMilli(int64(reads))
	}, told)
	e.Beside = r.beside
	for _, side := range plans.Sides() {
		if side == plans.Destination && r.w.options.Mode != plans.Reimport {
			continue // one cluster
		}
		s := r.w.on[side]
		named := func(k key) clusters.ObjectKey {
			return clusters.ObjectKey{Cluster: side, Kind: k.kind, Namespace: k.namespace, Name: k.name}
		}
		for k, o := range s.objects {
			told.now[named(k)] = o
		}
		s.watches = append(s.watches, func(k key, c clusters.Change) {
			now := s.objects[k]
			tell := func() {
				told.see(named(k), now, c.Gone)
				e.Recent.Changed(named(k), c)
			}
			if r.w.options.Lag {
				r.untold = append(r.untold, report{k, tell})
				return
			}
			tell()
		})
	}
}

// telling are the objects as watches have last reported them. With any, they may be as they were reported before, or
// not there: a store that lags, goes back, and skips.
type telling struct {
	now    map[clusters.ObjectKey]client.Object
	before map[clusters.ObjectKey][]client.Object
	any    func(int) int
}

func (o *telling) see(t clusters.ObjectKey, is client.Object, gone bool) {
	if was := o.now[t]; was != nil {
		o.before[t] = append(o.before[t], was)
	}
	if delete(o.now, t); !gone {
		o.now[t] = is
	}
}

// Covers implements clusters.Watching.
func (*telling) Covers(clusters.ObjectKey) bool { return true }

// Absent implements clusters.Watching.
func (o *telling) Absent(t clusters.ObjectKey) bool { return o.now[t] == nil }

// Stored implements clusters.Watching.
func (o *telling) Stored(t clusters.ObjectKey) client.Object {
	if o.any == nil {
		return o.now[t]
	}
	switch k := o.any(6); {
	case k == 0:
		return nil
	case k <= 2 && len(o.before[t]) > 0:
		return o.before[t][o.any(len(o.before[t]))]
	}
	return o.now[t]
}

// Wants implements clusters.Watching.
func (*telling) Wants(clusters.ObjectKey, client.Object) {}

func (c *conn) Get(ctx context.Context, k client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if err := c.r.unanswered(c.store); err != nil {
		return err
	}
	if err := c.may("get", key{kindOf(into), k.Namespace, k.Name}); err != nil {
		return err
	}
	return c.store.Get(ctx, k, into, opts...)
}

func (c *conn) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if err := c.r.unanswered(c.store); err != nil {
		return err
	}
	var o client.ListOptions
	o.ApplyOptions(opts)
	if err := c.may("list", key{strings.TrimSuffix(kindOf(into), "List"), o.Namespace, ""}); err != nil {
		return err
	}
	return c.store.List(ctx, into, opts...)
}

func (c *conn) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	var asked client.CreateOptions
	if asked.ApplyOptions(opts); len(asked.DryRun) > 0 {
		if err := cmp.Or(c.r.unanswered(c.store), c.may("create", keyOf(o))); err != nil {
			return err
		}
		return c.trial().Create(c.by(ctx), o, opts...)
	}
	return c.write("create", o, func(s *store, o client.Object) error { return s.Create(c.by(ctx), o, opts...) })
}

func (c *conn) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	if _, ours := o.(*corev1.ConfigMap); !ours || o.GetLabels()[plans.PlanLabel] == "" {
		c.r.w.fail("S8", "update of %s, which drops what is not known of it: patch it", keyOf(o))
	}
	if o.GetResourceVersion() == "" {
		c.r.w.fail("S8", "update of %s without a resourceVersion", keyOf(o))
	}
	return c.write("update", o, func(s *store, o client.Object) error { return s.Update(c.by(ctx), o, opts...) })
}

func (c *conn) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	raw, err := patch.Data(o)
	if err != nil {
		return err
	}
	var bound struct {
		Metadata struct{ UID, ResourceVersion string }
	}
	if must(json.Unmarshal(raw, &bound)); bound.Metadata.UID == "" || bound.Metadata.ResourceVersion == "" {
		c.r.w.fail("S8", "patch of %s without a UID and a resourceVersion", keyOf(o))
	}
	return c.write("patch", o, func(s *store, o client.Object) error {
		return s.Patch(c.by(ctx), o, client.RawPatch(patch.Type(), raw), opts...)
	})
}

func (c *conn) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	var d client.DeleteOptions
	d.ApplyOptions(opts)
	if len(d.DryRun) > 0 {
		if err := cmp.Or(c.r.unanswered(c.store), c.may("delete", keyOf(o))); err != nil {
			return err
		}
		return c.trial().Delete(c.by(ctx), o, opts...)
	}
	if d.Preconditions == nil || d.Preconditions.UID == nil || d.Preconditions.ResourceVersion == nil {
		c.r.w.fail("S8", "deletion of %s without preconditions", keyOf(o))
	}
	return c.write("delete", o, func(s *store, o client.Object) error { return s.Delete(c.by(ctx), o, opts...) })
}

// write sends a write if the account has the right to it.
func (c *conn) write(verb string, o client.Object, send sender) error {
	if err := c.may(verb, keyOf(o)); err != nil {
		return err
	}
	return c.r.write(c.store, verb, o, send)
}

func (r *process) alive() bool {
	if !r.dead && r.pause != nil && !r.pause() {
		r.dead = true
	}
	return !r.dead
}

// unanswered returns the reason why a request fails, or nil.
func (r *process) unanswered(s *store) error {
	switch {
	case !r.alive():
		return errDead
	case r.away != nil && r.away(s):
		return apierrors.NewServiceUnavailable("the API server of cluster " + s.name + " is away")
	case r.says != nil:
		return r.says(s)
	}
	return nil
}

// sender sends one write of an object to a cluster.
type sender func(*store, client.Object) error

// write lets a write proceed, or applies the fault to it.
func (r *process) write(s *store, verb string, o client.Object, send sender) error {
	apply := func() error { return send(s, o) }
	if err := r.unanswered(s); err != nil {
		return err
	}
	n := r.w.writes
	r.w.writes++
	var f fault
	r.now = keyOf(o)
	if r.at != nil {
		f = r.at(n)
	}
	k := keyOf(o)
	switch f {
	case crashBefore:
		r.dead = true
		return errDead
	case delayed:
		r.pending = &request{cluster: s.name, verb: verb, object: clone(o), send: send}
		r.dead = true
		return errDead
	case crashAfter:
		r.dead = true
		_ = r.apply(s, verb, o, apply) // the dead process gets no response
		return errDead
	case lostAnswer:
		_ = r.apply(s, verb, o, apply) // the response is lost
		return apierrors.NewTimeoutError("request timed out", 0)
	case setBack:
		return s.Get(context.Background(), client.ObjectKeyFromObject(o), o)
	case refused409:
		return conflict(k, "somebody was faster")
	case refused429:
		return apierrors.NewTooManyRequests("too many requests", 1)
	case refused500:
		return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
	case refused503:
		return apierrors.NewServiceUnavailable("the API server is shutting down")
	}
	return r.apply(s, verb, o, apply)
}

// apply checks the invariants that only the write itself shows: S6, S9 and S10.
func (r *process) apply(s *store, verb string, o client.Object, apply func() error) error {
	w, k := r.w, keyOf(o)
	if k.kind == "Pod" && verb == "delete" {
		w.endsOneTooMany(s, k)
	}
	if why := w.ownGround(s, k); why != "" && verb != "patch" {
		defer func(before int64) {
			if s.version != before {
				w.fail("S6", "%s of %s: %s", verb, k, why)
			}
		}(s.version)
	}
	before := s.version
	side, slice := w.shrinks(s, o)
	err := apply()
	if err == nil {
		r.accepted(s, verb, o, side, slice)
	}
	if err != nil && !w.foreign {
		r.refused(verb, k, err)
	}
	w.trail = append(w.trail, fmt.Sprintf("epoch %d, step %d: %s of %s %s: %v", r.epoch, w.journal.Done+1, verb, s.name, k, err))
	if s.version == before {
		return err
	}
	if cm, ok := o.(*corev1.ConfigMap); ok && recordOf(o) {
		r.recorded(cm)
	} else {
		r.inOrder(s, verb, o)
		var wave plans.Slice
		if w.journal.Flight != nil {
			wave = w.journal.Flight.Ordinals
		}
		w.acts = append(w.acts, act{verb, s.name, k, w.writes - 1, wave})
	}
	w.check()
	return err
}

// refused judges a refusal where nobody else writes.
func (r *process) refused(verb string, k key, err error) {
	if apierrors.IsForbidden(err) {
		r.w.fail("L1", "%s of %s is refused by what we install ourselves: %v", verb, k, err)
	}
	if r.besides {
		r.w.fail("L3", "%s of %s, which was sent beside the engine, is refused: it was sent twice: %v", verb, k, err)
	}
}

// accepted checks what a write that an API server took does to the ordinals and to their claims.
func (r *process) accepted(s *store, verb string, o client.Object, side plans.Side, before plans.Slice) {
	w := r.w
	if set, ok := o.(*appsv1.StatefulSet); ok && side != "" && r.pause == nil {
		w.disrupts(r, before, plans.SliceOf(set), side)
		w.suits(r, before, plans.SliceOf(set), side)
		w.consented(r, before, plans.SliceOf(set), side)
	}
	if _, claim := o.(*corev1.PersistentVolumeClaim); side != "" || claim && verb == "create" {
		r.alone(s, o, before)
	}
	r.givesWay(s, verb, o, before)
	w.sends(r, o)
}

// recorded takes notice of a journal that was written. The stored timeline decides nothing.
func (r *process) recorded(cm *corev1.ConfigMap) {
	for name, text := range cm.Data {
		if strings.Contains(text, canary) {
			r.w.fail("S16", "the value of a Secret is in %s of ConfigMap %s", name, cm.Name)
		}
	}
	if strings.HasSuffix(cm.Name, "-timeline") {
		return
	}
	r.w.journal = journal.Journal{} // absent fields must not keep old values
	must(json.Unmarshal([]byte(cm.Data["journal.json"]), &r.w.journal))
	r.epoch = r.w.journal.Epoch
}

// shrinks returns the side whose set is written, and the set's range before the write. It returns "" for
// another object.
func (w *world) shrinks(s *store, o client.Object) (plans.Side, plans.Slice) {
	for side, on := range w.on {
		if set, ok := get[*appsv1.StatefulSet](s, o.GetNamespace(), o.GetName()); ok && kindOf(o) == "StatefulSet" && on == s && w.namespace(side) == o.GetNamespace() {
			return side, plans.SliceOf(set)
		}
	}
	return "", plans.Slice{}
}

// inOrder is S9, no write of an earlier epoch after the fence, and S10, the intent is durable BEFORE the
// write.
func (r *process) inOrder(s *store, verb string, o client.Object) {
	w, k := r.w, keyOf(o)
	if stored := s.objects[k]; stored != nil {
		o = stored // the answer may have been read in another form
	}
	if r.epoch < w.fenced {
		// The copies of dependencies are not guarded: every process of a leg writes the same to them.
		copied := k.kind == "ConfigMap" || k.kind == "Secret" || k.kind == "Service"
		// Neither are the objects of an ordinal that is settled, nor the revisions, which lose our mark at the end: the
		// plan cannot turn back any more, the process that has it has to send the same write, and only one of the two
		// finds the object as it was.
		// Nor are the pods outside the ranges: ownGround judges their deletion.
		step, _, more := w.journal.Next(w.plan)
		settled := k.kind == "Pod" || more && step.Op.Closes() && slices.Contains([]string{"PersistentVolumeClaim", "PersistentVolume", "ControllerRevision"}, k.kind)
		if verb != "create" && !copied && !settled {
			w.fail("S9", "%s of %s by epoch %d after epoch %d had fenced", verb, k, r.epoch, w.fenced)
		}
		w.late = append(w.late, place{s.name, k})
		return
	}
	if stamp, early := w.early(verb, o); early && !r.takingOver && r.epoch == w.journal.Epoch {
		w.fail("S10", "%s of %s before it was journaled (step %d, begun %d, done %d)", verb, k, stamp.Seq, w.journal.Begun, w.journal.Done)
	}
}

// early reports whether a write comes before its intent.
func (w *world) early(verb string, o client.Object) (plans.Stamp, bool) {
	stamp, marked := plans.Stamped(o)
	ahead := marked && verb != "delete" && stamp.Seq > w.journal.Begun
	return stamp, ahead || w.journal.Begun <= w.journal.Done && !w.prepares(o)
}

// prepares reports whether an object is a claim or a volume of the wave that the journal says is prepared.
func (w *world) prepares(o client.Object) bool {
	ordinal := int32(-1)
	switch o := o.(type) {
	case *corev1.PersistentVolumeClaim:
		ordinal = ordinalOf(o.Name)
	case *corev1.PersistentVolume:
		ordinal = ordinalOf(o.Spec.ClaimRef.Name)
	}
	if pod, is := o.(*corev1.Pod); is && pod.Labels[plans.PlaceholderLabel] != "" {
		return true // nothing of it is in the journal
	}
	return w.journal.Prepared != nil && w.journal.Prepared.Has(ordinal)
}

// ownGround is S6: a claim is created or deleted only while its ordinal is outside the side's range and its
// pod is gone; a pod is deleted only while its ordinal is outside both ranges. It returns the violation, or "".
func (w *world) ownGround(s *store, k key) string {
	if k.kind != "Pod" && k.kind != "PersistentVolumeClaim" {
		return ""
	}
	for _, side := range plans.Sides() {
		if w.on[side] != s || w.namespace(side) != k.namespace {
			continue
		}
		switch o := ordinalOf(k.name); {
		case k.kind == "Pod" && (w.slice(plans.Source).Has(o) || w.slice(plans.Destination).Has(o)):
			return fmt.Sprintf("ordinal %d is in a range", o)
		case k.kind != "Pod" && (w.slice(side).Has(o) || w.pod(side, o) != nil):
			return fmt.Sprintf("ordinal %d is in use on the %s", o, side)
		}
	}
	return ""
}

// takeOver takes the plan over as a process does at its start, with up to five attempts.
func (r *process) takeOver(ctx context.Context, direction plans.Direction) (*engine.Engine, error) {
	var err error
	for range 5 {
		var e *engine.Engine
		if e, err = r.engine(ctx); err != nil {
			if r.dead {
				return nil, errDead
			}
			continue
		}
		r.takingOver = true
		err = e.Accept(ctx, plans.Command{Direction: direction, Turns: r.turns, Assurance: r.word}, nil)
		r.takingOver = false
		switch {
		case r.dead:
			return nil, errDead
		case err == nil:
			r.w.fenced = max(r.w.fenced, r.epoch)
			return e, nil
		}
	}
	return nil, err
}

// end is the end of a run.
type end struct {
	kind    engine.Kind
	outcome plans.Outcome
	reason  string
}

func (e end) String() string { return fmt.Sprintf("%s %s%s", e.kind, e.outcome, e.reason) }

// run drives one process until it finishes, is blocked, dies, or waits while nothing changes any more. stop may
// end it earlier.
func (r *process) run(ctx context.Context, direction plans.Direction, stop func(engine.Progress) bool) (end, error) {
	e, err := r.takeOver(ctx, direction)
	if err != nil {
		return end{}, err
	}
	patience := 0
	for range 10_000 {
		r.tell()
		p, err := e.Advance(ctx)
		if r.over(p, stop != nil && stop(p)) {
			return end{kind: p.Kind, outcome: p.Outcome, reason: p.Reason}, r.fate(p)
		}
		if p.Kind == engine.Waiting && r.pause != nil && !r.pause() { // it may have read nothing
			r.dead = true
			return end{}, errDead
		}
		r.makeWay(ctx, e, p)
		wrote := err == nil && (p.Kind == engine.Wrote || p.Kind == engine.Advanced)
		if r.w.others(r, p.Kind) || wrote {
			patience = 0
		}
		if patience++; patience > 20 && (r.pause == nil || patience > 1000) {
			r.w.heldUp()
			return end{kind: p.Kind, reason: p.Reason}, err
		}
	}
	return end{}, errors.New("the run never ends")
}

// report is what a watch has not told yet of an object.
type report struct {
	of   key
	tell func()
}

// behind reports whether the watches of the process have not told all about its sets yet.
func (r *process) behind() bool {
	return slices.ContainsFunc(r.untold, func(one report) bool { return one.of.kind == "StatefulSet" })
}

// knows reports whether a process can know the state of an ordinal: others change nothing, or its watches have told all
// about the pods of the ordinal.
func (r *process) knows(o int32) bool {
	return !r.w.foreign || !slices.ContainsFunc(r.untold, func(one report) bool { return one.of.kind == "Pod" && ordinalOf(one.of.name) == o })
}

// tell reports some of the changes that the watches have not reported yet, in their order.
func (r *process) tell() {
	r.w.arrive()
	if len(r.untold) == 0 {
		return
	}
	n := r.w.rng.IntN(len(r.untold) + 1)
	for _, one := range r.untold[:n] {
		one.tell()
	}
	r.untold = slices.Delete(r.untold, 0, n)
}

// makeWay does what a process does between two waves: it lets evictions proceed, for as long as that changes
// anything.
func (r *process) makeWay(ctx context.Context, e *engine.Engine, p engine.Progress) {
	arrived := p.Kind == engine.Advanced && p.Step.Op == plans.Relax
	if !arrived && (p.Kind != engine.Waiting || p.Step.Op != plans.Tighten) {
		return
	}
	for range 20 {
		before := r.w.version()
		now, err := e.Drains.MakeWay(ctx)
		if err != nil || now == "" {
			return
		}
		if !r.w.others(r, engine.Waiting) && r.w.version() == before {
			return
		}
	}
}

// over reports whether the process has ended.
func (r *process) over(p engine.Progress, enough bool) bool {
	if p.Kind == engine.Blocked && r.fate(p) == nil && !r.w.foreign && r.w.app.deaf == "" {
		r.w.fail("S12", "blocked, and nobody has interfered: %s", p.Reason)
	}
	return enough || p.Kind == engine.Finished || p.Kind == engine.Paused || r.fate(p) != nil
}

// fate returns the reason why a process cannot continue, or nil.
func (r *process) fate(p engine.Progress) error {
	switch {
	case r.dead:
		return errDead
	case p.Kind == engine.Blocked && r.epoch != r.w.journal.Epoch:
		return errReplaced
	}
	return nil
}

// others lets the controllers act: a little after a write, more during a wait. If several processes run at
// once, the processes decides that instead.
func (w *world) others(r *process, kind engine.Kind) bool {
	if r.pause != nil {
		return false
	}
	n := w.rng.IntN(3)
	if kind == engine.Waiting || kind == engine.Blocked {
		n += 3
	}
	moved := false
	for range n {
		moved = w.tick() || moved
	}
	return moved
}
