package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// over makes the plan one that has ended, as of now.
func over(t *testing.T, h *Orchestrator, p *plans.Plan) {
	t.Helper()
	err := records.NewStore(h.Live, h.Namespace, p.Name).Change(t.Context(), p, func(j *journal.Journal) error {
		j.StartLeg(p, plans.Finalize)
		j.Epoch, j.Outcome, j.EndedAt = 1, plans.Finalized, &metav1.Time{Time: h.Now()}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.guard(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	now(t, h, p.Name)
}

// now lets an API server that has no generations count one, which the status is about if it is written from here on.
func now(t *testing.T, h *Orchestrator, name string) {
	t.Helper()
	o := records.NewDeclared(h.Namespace, name)
	if err := h.Live.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	o.SetGeneration(o.GetGeneration() + 1)
	if err := h.Live.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func passes(t *testing.T, h *Orchestrator, name string, times int) (r reconcile.Result) {
	t.Helper()
	for range times {
		var err error
		if r, err = h.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: h.Namespace, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// deaf has every live request of an Orchestrator counted.
func deaf(h *Orchestrator) (asked *int) {
	asked = new(int)
	h.Live = interceptor.NewClient(h.Live.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			*asked++
			return c.Get(ctx, key, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, by client.Patch, opts ...client.PatchOption) error {
			*asked++
			return c.Patch(ctx, o, by, opts...)
		},
	})
	return asked
}

// A plan that is over is marked once, by any release. From then on a process remembers nothing of it, asks
// nobody about it, and shows it as before.
func TestAPlanThatIsOverCostsNothing(t *testing.T) {
	h, p := fixture(t)
	h.ending = true
	over(t, h, p)
	passes(t, h, p.Name, 2)
	shown, _, _ := h.Board.Since(0)
	var cm corev1.ConfigMap
	if err := h.Live.Get(t.Context(), client.ObjectKeyFromObject(h.recordOf(p.Name)), &cm); err != nil || cm.Labels[records.EndedLabel] != "Finalized" || len(cm.Finalizers) > 0 || len(cm.Data) == 0 {
		t.Fatalf("%+v, %v", cm.ObjectMeta, err)
	}
	asked := deaf(h)
	if r := passes(t, h, p.Name, 3); r.RequeueAfter != 0 || *asked != 0 || len(h.plans) != 0 || h.recall.bytes != 0 {
		t.Errorf("it is looked at again after %s, %d requests were sent, and %d plans are remembered with %d bytes", r.RequeueAfter, *asked, len(h.plans), h.recall.bytes)
	}
	if n := testutil.CollectAndCount(h.gauges.state) + testutil.CollectAndCount(h.gauges.ordinals) + testutil.CollectAndCount(h.gauges.step); n != 0 {
		t.Errorf("%d series are left of it", n)
	}
	rows, _, _ := h.Board.Since(0)
	rows.Rows[0].Since, shown.Rows[0].Since = nil, nil
	if !reflect.DeepEqual(rows.Rows, shown.Rows) {
		t.Errorf("the page shows %+v, and before %+v", rows.Rows, shown.Rows)
	}
}

// What a user requests after the end is answered in the status, and that is the last thing that happens.
func TestARequestAfterTheEndIsAnswered(t *testing.T) {
	h, p := fixture(t)
	h.ending = true
	over(t, h, p)
	passes(t, h, p.Name, 2)
	declare(t, h.Live, p, func(d *plans.Declaration) { d.Direction = plans.Abort })
	now(t, h, p.Name)
	passes(t, h, p.Name, 2)
	d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
	if err != nil || d.Status.ObservedGeneration != d.Object.GetGeneration() || d.Status.Message == "" {
		t.Errorf("%+v, %v", d.Status, err)
	}
	asked := deaf(h)
	if passes(t, h, p.Name, 1); *asked != 0 {
		t.Errorf("%d requests were sent", *asked)
	}
}

// Its record is deleted when its time has come, and the object that is left costs nothing either.
func TestAClosedPlanIsForgottenInTime(t *testing.T) {
	h, p := fixture(t)
	h.ending, h.ForgetAfter = true, time.Hour
	h.notices = &notices{memory: &h.memory, queued: map[string]queued{p.Name: {}}}
	over(t, h, p)
	if r := passes(t, h, p.Name, 3); r.RequeueAfter != time.Hour || len(h.plans) != 0 {
		t.Errorf("its record is looked at again after %s, and %d plans are remembered", r.RequeueAfter, len(h.plans))
	}
	then := h.Now().Add(time.Hour)
	h.Now = func() time.Time { return then }
	passes(t, h, p.Name, 2)
	if err := h.Live.Get(t.Context(), client.ObjectKeyFromObject(h.recordOf(p.Name)), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("its record is there: %v", err)
	}
	asked := deaf(h)
	if passes(t, h, p.Name, 1); *asked != 0 || len(h.plans) != 0 || len(h.notices.queued) != 0 {
		t.Errorf("%d requests were sent, and %+v and %+v are remembered", *asked, h.plans, h.notices.queued)
	}
}

// A mark alone closes nothing: neither one that a user has set, nor the mark of a plan whose name the next plan has.
func TestAMarkAloneClosesNoPlan(t *testing.T) {
	h, p := fixture(t)
	h.ending = true
	var cm corev1.ConfigMap
	read := func() {
		t.Helper()
		if err := h.Live.Get(t.Context(), client.ObjectKeyFromObject(h.recordOf(p.Name)), &cm); err != nil {
			t.Fatal(err)
		}
	}
	read()
	j := journal.New(p)
	j.Outcome = plans.Finalized
	records.SetEnding(&cm, p, j)
	if err := h.Live.Update(t.Context(), &cm); err != nil {
		t.Fatal(err)
	}
	if passes(t, h, p.Name, 2); len(h.plans) != 1 {
		t.Error("a plan that has not begun is taken for one that is over")
	}
	o := records.NewDeclared(h.Namespace, p.Name)
	if err := h.Live.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if _, closed, err := (ending{h}).closed(t.Context(), p.Name); closed || err != nil {
		t.Errorf("and without its object: %t, %v", closed, err)
	}
	declare(t, h.Live, p, func(*plans.Declaration) {})
	cm.Labels, cm.Annotations = map[string]string{plans.PlanLabel: p.Name}, nil
	cm.UID = "next"
	if err := h.Live.Delete(t.Context(), h.recordOf(p.Name)); err != nil {
		t.Fatal(err)
	}
	cm.ResourceVersion = ""
	if err := h.Live.Create(t.Context(), &cm); err != nil {
		t.Fatal(err)
	}
	h.state(p.Name).known = known{uid: "before", plan: p}
	over(t, h, p)
	j.EndedAt = &metav1.Time{Time: h.Now()}
	if err := h.letGo(t.Context(), p, j); err != nil {
		t.Fatal(err)
	}
	if read(); cm.Labels[records.EndedLabel] != "" || len(cm.Finalizers) == 0 {
		t.Errorf("the next plan of its name is marked, or let go of: %+v", cm.ObjectMeta)
	}
}

// A receiver that does not know yet how the plan has ended is told, by the process that leads.
func TestThePlanIsNotClosedBeforeTheReceiverKnows(t *testing.T) {
	h, p := fixture(t)
	h.ending = true
	over(t, h, p)
	passes(t, h, p.Name, 3)
	h.notices = &notices{memory: &h.memory, queued: map[string]queued{}, leads: true}
	if _, closed, err := (ending{h}).closed(t.Context(), p.Name); closed || err != nil {
		t.Errorf("closed: %t, %v", closed, err)
	}
	o := records.NewDeclared(h.Namespace, p.Name)
	if err := h.Live.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedMap(o.Object, map[string]any{"sequence": int64(4), "change": "finalized", "id": "a"}, "status", "notified")
	if err := h.Live.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if _, closed, err := (ending{h}).closed(t.Context(), p.Name); !closed || err != nil {
		t.Errorf("closed: %t, %v", closed, err)
	}
}

// shelf is what a process has in memory of its namespace.
type shelf struct {
	client.Client
	objects map[string]client.Object
}

func (s shelf) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	have, there := s.objects[fmt.Sprintf("%T/%s", o, key.Name)]
	if !there {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(have.DeepCopyObject()).Elem())
	return nil
}

// put adds an object as it comes from the API server, and leaves of it what is kept.
func (s shelf) put(t *testing.T, o client.Object, slim func(any) (any, error)) {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	fresh := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(raw, fresh); err != nil {
		t.Fatal(err)
	}
	if _, err := slim(fresh); err != nil {
		t.Fatal(err)
	}
	s.objects[fmt.Sprintf("%T/%s", o, o.GetName())] = fresh
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// theEndOf returns the ConfigMaps and the StatefulSetMigration of a plan that has ended, as they are stored.
func theEndOf(t *testing.T, h *Orchestrator, name string) []client.Object {
	t.Helper()
	p := plan(t)
	p.Name, p.ID, p.Hash = name, name+"-abc", ""
	p.Gates = []plans.Gate{{Name: "replicated", When: plans.BeforeShrink, Timeout: metav1.Duration{Duration: time.Minute}, Interval: metav1.Duration{Duration: time.Second}, Exec: &plans.Exec{Command: []string{"sh", "-c", strings.Repeat("check ", 30)}}}}
	var err error
	if p.Hash, err = plans.Fingerprinted(p); err != nil {
		t.Fatal(err)
	}
	j := journal.New(p)
	j.StartLeg(p, plans.Finalize)
	j.Detached, j.Epoch, j.Outcome, j.EndedAt = true, 1, plans.Finalized, &metav1.Time{Time: h.Now()}
	for range 15 {
		j.Timeline.Record(h.Now(), journal.Event{Kind: journal.Requested, By: "anna", What: "what was done to one of the ordinals"})
	}
	d := records.NewDeclared(h.Namespace, name)
	d.SetGeneration(1)
	spec := p.Declared()
	status := shows(frontStatus{}, standing{name: name, declared: &records.Declared{Object: d, Spec: &spec}, plan: p, journal: j, state: plans.StateFinalized}, metav1.NewTime(h.Now()))
	for field, v := range map[string]any{"spec": spec, "status": status} {
		var tree map[string]any
		if raw, err := json.Marshal(v); err != nil || json.Unmarshal(raw, &tree) != nil {
			t.Fatal(err)
		}
		d.Object[field] = tree
	}
	encoded, err := plans.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	cm := &corev1.ConfigMap{ObjectMeta: named(h.Namespace, records.RecordName(name)), Immutable: &yes, Data: map[string]string{"plan.yaml": string(encoded)}}
	records.SetEnding(cm, p, j)
	out := []client.Object{cm, &corev1.ConfigMap{ObjectMeta: named(h.Namespace, records.RecordName(name)+"-journal"), Data: map[string]string{"journal.json": string(raw)}}, d}
	for _, o := range out {
		labels := map[string]string{plans.PlanLabel: name, "app.kubernetes.io/managed-by": "stsmigrate"}
		if had := o.GetLabels()[records.EndedLabel]; had != "" {
			labels[records.EndedLabel] = had
		}
		o.SetLabels(labels)
		o.SetUID(types.UID(name + "-6b0ad6d1-2bb3-4b3b-9a6e"))
		o.SetResourceVersion("123456")
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "stsmigrate", Operation: "Update", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:journal.json":{}},"f:metadata":{"f:labels":{}}}`)}})
	}
	return out
}

// The records of plans that have ended are the only ones whose number grows for as long as a namespace lives.
func TestPlansThatHaveEndedTakeLittleMemory(t *testing.T) {
	const many, most = 2000, 8 << 10
	of := func(how string, slim func(any) (any, error)) int64 {
		h, _ := fixture(t)
		s := shelf{Client: h.Live, objects: map[string]client.Object{}}
		h.ending, h.Cached = true, s
		asked := deaf(h)
		before := inUse()
		for k := range many {
			name := fmt.Sprintf("plan-%04d", k)
			for _, o := range theEndOf(t, h, name) {
				s.put(t, o, slim)
			}
			passes(t, h, name, 1)
		}
		each := (inUse() - before) / many
		t.Logf("%s: %d bytes for each of %d plans that have ended", how, each, many)
		if *asked > 0 {
			t.Errorf("%s: %d requests were sent", how, *asked)
		}
		if rows, _, _ := h.Board.Since(0); len(rows.Rows) != many {
			t.Errorf("%s: the page shows %d plans", how, len(rows.Rows))
		}
		runtime.KeepAlive(h)
		return each
	}
	kept, whole := of("kept", slimmed), of("as they are stored", func(o any) (any, error) { return o, nil })
	if kept > most || kept > whole/2 {
		t.Errorf("%d bytes are kept of each, expected at most %d, and of %d", kept, most, whole)
	}
}

// Plans that wait for their approval are kept as long as there is room, and read again otherwise; those under way are kept.
func TestPlansThatWereReadTakeLittleMemory(t *testing.T) {
	h, p := fixture(t)
	p.Ignored = []string{strings.Repeat("x", mostKnown/4)}
	own := h.state("own")
	own.run = &run{orchestrator: h, plan: p}
	h.recall.learn(h.plans, own, known{uid: "own", plan: p})
	for k := range 10 {
		s := h.state(fmt.Sprint("other-", k))
		h.recall.learn(h.plans, s, known{uid: "a", plan: p})
		if h.recall.bytes > mostKnown || s.known.plan == nil || own.known.plan == nil {
			t.Fatalf("%d bytes are kept, and of this plan %t, and of the one under way %t", h.recall.bytes, s.known.plan != nil, own.known.plan != nil)
		}
	}
	large := *p
	large.Ignored = []string{strings.Repeat("x", mostKnown+1)}
	if h.recall.learn(h.plans, h.state("large"), known{uid: "a", plan: &large}); h.state("large").known.plan != nil || h.recall.bytes > mostKnown {
		t.Errorf("%d bytes are kept", h.recall.bytes)
	}
	for name := range h.plans {
		h.state(name).run = nil
		h.forget(name, false)
	}
	if h.recall.bytes != 0 {
		t.Errorf("%d bytes are counted, and no plan is known", h.recall.bytes)
	}
}

// A record whose label was taken away is not watched any more: the plan goes on all the same.
func TestARecordWithoutItsLabelIsRead(t *testing.T) {
	h, p := fixture(t)
	h.Cached = interceptor.NewClient(h.Live.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, is := o.(*corev1.ConfigMap); is {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
		}
		return c.Get(ctx, key, o, opts...)
	}})
	if got, j, err := h.read(t.Context(), p.Name); err != nil || got == nil || j == nil {
		t.Errorf("plan %v, journal %v, %v", got, j, err)
	}
}
