package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/internal/gates"
	"github.com/stsmigrate/stsmigrate/plans"
)

// withGates returns a options with every kind of gate.
func withGates(sc options) options {
	job := &batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ask", Image: "ask"}}}}}
	other := intstr.FromString(plans.AnyOther)
	minute := metav1.Duration{Duration: time.Minute}
	tell := func(what string) *plans.Exec { return &plans.Exec{Command: []string{what, "$(POD)", "$(SIDE)"}} }
	sc.Gates = []plans.Gate{
		{Name: "drain", When: plans.BeforeShrink, Exec: tell("drain"), Timeout: minute},
		{Name: "backup", When: plans.BeforeShrink, Job: job, Timeout: minute},
		{Name: "ranges", When: plans.AfterGrow, Exec: tell("ranges"), Pod: &other, Timeout: minute},
		{Name: "health", When: plans.AfterGrow, HTTPGet: &corev1.HTTPGetAction{Path: "/health $(POD) $(SIDE)", Port: intstr.FromInt32(80)}, Expect: "good", Timeout: minute},
		{Name: "rejoin", When: plans.AfterGrow, Job: job, Timeout: minute},
	}
	return sc
}

// application is the application that the gates ask.
type application struct {
	// shy is how often it answers no to a question before it answers yes.
	shy int
	// deaf is a prefix: the application answers no to every question that begins with it, and fails the Jobs
	// of that gate. Empty means none.
	deaf  string
	asked map[string]int // how often, by question
	yes   map[string]int // how often it answered yes, by question
	again bool           // the record of its answers was lost: a Job may run again
	// fickle makes it change its mind: whoever asks a pod again after a yes hears no once.
	fickle bool
	said   map[string]bool       // the last answer, by question
	heard  map[string]consent    // the last yes, by question
	begun  map[types.UID]consent // who has started a Job, and when
	clock  time.Time
}

// consent is a yes of the application: to whom, when, and after how many changes of the world it was asked.
type consent struct {
	to    *process
	at    time.Time
	since int
}

func (a *application) refuses(what string) bool {
	return a.deaf != "" && strings.HasPrefix(what, a.deaf)
}

// prober asks on behalf of one process. A question counts as a write: a process may die at it.
type prober struct{ r *process }

// Now implements gates.Prober. Time passes whenever the clock is read.
func (p prober) Now() time.Time {
	a := &p.r.w.app
	a.clock = a.clock.Add(500 * time.Millisecond)
	return a.clock
}

// Ask implements gates.Prober.
func (p prober) Ask(_ context.Context, q gates.Question) (gates.Answer, error) {
	r, w := p.r, p.r.w
	if !r.alive() {
		return gates.Answer{}, errDead
	}
	n, late := w.writes, r.epoch < w.fenced
	w.writes++
	r.now = key{"Question", q.Namespace, q.Pod}
	var f fault
	if r.at != nil {
		f = r.at(n)
	}
	switch f {
	case crashBefore:
		r.dead = true
		return gates.Answer{}, errDead
	case crashAfter:
		r.dead = true
		_, _ = w.answer(r, q, late) // the process that asked is dead
		return gates.Answer{}, errDead
	case lostAnswer:
		_, _ = w.answer(r, q, late)
		return gates.Answer{}, errDead
	case refused409, refused429, refused500, refused503, setBack, delayed:
		return gates.Answer{Code: 500}, nil
	}
	return w.answer(r, q, late)
}

func (w *world) answer(r *process, q gates.Question, late bool) (gates.Answer, error) {
	what, good := strings.Join(q.Command, " "), gates.Answer{}
	if q.Get != nil {
		what, good = strings.TrimPrefix(q.Get.Path, "/"), gates.Answer{Code: 200, Body: "all is good"}
	}
	pod, ok := get[*corev1.Pod](w.on[q.Side], q.Namespace, q.Pod)
	if !ok || pod.DeletionTimestamp != nil {
		return gates.Answer{}, fmt.Errorf("pod %s not found", q.Pod)
	}
	w.app.asked[what]++
	if w.app.refuses(what) || w.app.asked[what] <= w.app.shy || w.app.fickle && w.app.said[what] {
		w.app.said[what] = false
		return gates.Answer{Code: 1, Complaint: "not now"}, nil
	}
	w.consents(what, late)
	w.app.heard[what] = consent{r, w.app.clock, w.changes}
	return good, nil
}

// consents records a yes. The question must fit that moment: a pod must not be asked to hand over what it has
// released, nor whether it has arrived before it has. A question that is late is that of a process which was overtaken
// after its last look: nothing can keep it from asking, and its answer counts for nothing.
func (w *world) consents(what string, late bool) {
	w.app.yes[what]++
	w.app.said[what] = true
	if late {
		return
	}
	words := strings.Fields(what)
	side, o := plans.Side(words[2]), ordinalOf(words[1])
	if w.gate(words[0]).When == plans.BeforeShrink {
		if !w.slice(side).Has(o) {
			w.fail("gates", "%q is asked when ordinal %d has left the %s", what, o, side)
		}
	} else if !w.slice(side).Has(o) || w.pod(side, o) == nil && !w.foreign { // others delete pods at any moment
		w.fail("gates", "%q is asked when ordinal %d has not come to the %s", what, o, side)
	}
}

func (w *world) gate(name string) plans.Gate {
	return w.plan.Gates[slices.IndexFunc(w.plan.Gates, func(g plans.Gate) bool { return g.Name == name })]
}

// jobController runs Jobs to completion at once. It runs in the Job's own cluster.
func (w *world) jobController(s *store) bool {
	for job := range shuffle(w, all[*batchv1.Job](s)) {
		if job.Spec.Suspend != nil && *job.Spec.Suspend || len(job.Status.Conditions) > 0 {
			continue
		}
		gate, env := job.Labels[gates.Label], job.Spec.Template.Spec.Containers[0].Env
		what := fmt.Sprintf("%s %s %s", gate, env[0].Value, env[3].Value)
		w.app.asked[what]++
		next := clone(job)
		c := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}
		if w.app.refuses(what) {
			w.app.said[what] = false
			c.Type, c.Reason, c.Message = batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit"
		} else {
			w.consents(what, false)
			begun := w.app.begun[job.UID]
			w.app.heard[what] = consent{begun.to, w.app.clock, begun.since}
			if w.gate(gate).When == plans.AfterGrow && w.app.yes[what] > 1 && !w.app.again {
				w.fail("gates", "Job %s runs again after it has passed", job.Name)
			}
		}
		next.Status.Conditions = []batchv1.JobCondition{c}
		s.put(next)
		return true
	}
	return false
}

// heeded checks, whenever a side has lost or gained an ordinal, that the application was asked before. A
// reversed direction needs no consent.
func (w *world) heeded() {
	if w.plan == nil || w.journal.Leg.Direction != plans.Move || w.journal.SkipGates > 0 {
		return
	}
	for o := w.plan.Start; o < w.plan.End(); o++ {
		for _, g := range w.plan.Gates {
			left := g.When == plans.BeforeShrink && !w.slice(plans.Source).Has(o)
			// Every ordinal above one that has left has arrived.
			came := g.When == plans.AfterGrow && o-w.plan.Window >= w.slice(plans.Source).End()
			side := map[plans.When]plans.Side{plans.BeforeShrink: plans.Source, plans.AfterGrow: plans.Destination}[g.When]
			if what := fmt.Sprintf("%s %s %s", g.Name, w.plan.Pod(side, o), side); (left || came) && w.app.yes[what] == 0 {
				w.fail("gates", "ordinal %d went on without %q", o, what)
			}
		}
	}
}
