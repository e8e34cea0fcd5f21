package gates

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// fakePod is a Prober with prepared answers and its own clock.
type fakePod struct {
	answer Answer
	err    error
	hangs  bool // until its context ends
	took   time.Duration
	clock  time.Time
	asked  []Question
}

func (p *fakePod) Now() time.Time { return p.clock }

func (p *fakePod) Ask(ctx context.Context, q Question) (Answer, error) {
	p.asked = append(p.asked, q)
	if p.hangs {
		<-ctx.Done()
		return Answer{}, ctx.Err()
	}
	p.clock = p.clock.Add(p.took)
	return p.answer, p.err
}

// bench is a Keeper with the objects that it reads.
type bench struct {
	*Keeper
	fakePod *fakePod
	client  client.Client
	m       plans.StepContext
	side    string // the namespace of its Jobs
}

func pod(namespace, name string, ready corev1.ConditionStatus) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.Containers = []corev1.Container{{Name: "db", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}, {Name: "agent"}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	return p
}

// bare returns a Keeper at the step that asks the gate for web-2, the last of three.
func bare(t *testing.T, g plans.Gate, objects ...client.Object) *bench {
	t.Helper()
	n := int32(3)
	p, err := build.Plan(build.Inputs{
		Name: "web", ID: "abc", MaxUnavailable: 1, Gates: []plans.Gate{g},
		Set:         &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.StatefulSetSpec{Replicas: &n, Template: corev1.PodTemplateSpec{Spec: pod("", "", "").Spec}}},
		Source:      plans.Ref{Cluster: "one", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "one", Namespace: "mall", Name: "web"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
	b := &bench{Keeper: New(p, map[plans.Side]client.Client{plans.Source: c, plans.Destination: c}), fakePod: &fakePod{clock: time.Unix(1000, 0)}, client: c, side: "shop"}
	b.Prober = b.fakePod
	op := map[plans.When]plans.Op{plans.BeforeShrink: plans.Quiesce, plans.AfterGrow: plans.Verify}[g.When]
	b.m = plans.StepContext{
		Step:  plans.Step{Seq: 7, Op: op, Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source},
		Stamp: plans.Stamp{Plan: p.ID, Epoch: 1, Seq: 7},
	}
	return b
}

// look calls Look, requires a standing, and executes the write that is due.
func (b *bench) look(t *testing.T, want plans.Standing, words ...string) plans.Observation {
	t.Helper()
	s, err := b.Look(t.Context(), b.m)
	if err != nil || s.Standing != want {
		t.Fatalf("got %s (%s), %v; expected %s", s.Standing, s.Reason, err, want)
	}
	for _, w := range words {
		if !strings.Contains(s.Reason, w) {
			t.Errorf("got %q, expected %q in it", s.Reason, w)
		}
	}
	if s.Standing == plans.Before {
		if err := s.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func drain() plans.Gate {
	return plans.Gate{Name: "drain", When: plans.BeforeShrink, Exec: &plans.Exec{Command: []string{"drain", "$(POD)", "$(SIDE)"}}}
}

func TestAGateIsEvaluatedEveryInterval(t *testing.T) {
	g := drain()
	g.Timeout.Duration, g.Interval.Duration = 12*time.Second, 5*time.Second
	b := bare(t, g, pod("shop", "web-2", "True"))
	b.fakePod.answer, b.fakePod.took = Answer{Code: 3, Complaint: "quorum lost", Body: "canary"}, time.Second
	if s := b.look(t, plans.Before); s.Reason != "gate drain of web-2: exec drain in pod web-2 of shop/web" {
		t.Errorf("the first question is told as %q", s.Reason)
	}
	if s := b.look(t, plans.During, "gate drain of web-2: exit code 3: quorum lost; expected exit code 0"); s.Again != 5*time.Second {
		t.Errorf("it is asked again in %s", s.Again)
	}
	b.fakePod.clock = b.fakePod.clock.Add(5 * time.Second)
	if s := b.look(t, plans.Before); s.Reason != "" {
		t.Errorf("asking again is told too: %q", s.Reason)
	}
	b.fakePod.clock = b.fakePod.clock.Add(3 * time.Second) // 10 of 12 seconds have passed
	if s := b.look(t, plans.During); s.Again != 2*time.Second {
		t.Errorf("it is asked again in %s, expected when the time is up", s.Again)
	}
	b.fakePod.clock = b.fakePod.clock.Add(2 * time.Second)
	s := b.look(t, plans.Conflict, "gate drain (BeforeShrink) of web-2: exec drain in pod web-2 of shop/web: exit code 3: quorum lost; expected exit code 0 (asked 2 time(s) in 12s)",
		"`resume` tries again", "`abort` rolls back", "`resume --skip-gates`")
	if strings.Contains(s.Reason, "canary") {
		t.Error("S16: what the command wrote is in the reason")
	}
}

func TestAGateThatHasPassedIsNotAskedAgain(t *testing.T) {
	b := bare(t, drain(), pod("shop", "web-2", "True"))
	b.look(t, plans.Before)
	b.look(t, plans.After, "gates passed: drain/2")
	b.look(t, plans.After)
	if len(b.fakePod.asked) != 1 {
		t.Errorf("asked %d times", len(b.fakePod.asked))
	}
	b.m.Seq = 17 // another step with the same op
	b.look(t, plans.Before)
}

func TestWhatCountsAsAnAnswer(t *testing.T) {
	web := plans.Gate{Name: "vars", When: plans.BeforeShrink, HTTPGet: &corev1.HTTPGetAction{Path: "/vars?pod=$(POD)", Port: intstr.FromString("http")}}
	running := web
	running.Expression = `body.state == "running"`
	expecting := func(g plans.Gate) plans.Gate { g.Expect = "all good"; return g }
	for _, c := range []struct {
		gate   plans.Gate
		answer Answer
		err    error
		want   string
	}{
		{drain(), Answer{}, nil, ""},
		{drain(), Answer{Code: 1}, nil, "exit code 1; expected exit code 0"},
		{drain(), Answer{}, errors.New("container not found"), ": container not found; expected"},
		{drain(), Answer{Complaint: "no such host"}, errors.New("broken"), "broken: no such host"},
		{expecting(drain()), Answer{Body: "it is all good\n"}, nil, ""},
		{expecting(drain()), Answer{Body: "bad"}, nil, `exit code 0, and the expected text is not in the 3 bytes of the answer; expected exit code 0 and "all good"`},
		{web, Answer{Code: 200}, nil, ""},
		{web, Answer{Code: 302}, nil, ""},
		{web, Answer{Code: 404}, nil, "HTTP status 404; expected HTTP status 200 to 399"},
		{web, Answer{Code: 503, Complaint: "no endpoints"}, nil, "HTTP status 503: no endpoints"},
		{expecting(web), Answer{Code: 200, Body: "all good"}, nil, ""},
		{running, Answer{Code: 200, Body: `{"state":"running"}`}, nil, ""},
		{running, Answer{Code: 200, Body: `{"state":"starting"}`}, nil, `HTTP status 200, and the expression is false over the 20 bytes of the answer; expected HTTP status 200 to 399 and body.state == "running"`},
		{running, Answer{Code: 200, Body: "s3cret"}, nil, "over the 6 bytes of the answer, which are not JSON"},
		{running, Answer{Code: 503, Body: `{"state":"running"}`}, nil, "HTTP status 503; expected"},
		{expecting(web), Answer{Code: 200}, nil, "HTTP status 200, and the expected text is not in the 0 bytes of the answer"},
	} {
		b := bare(t, c.gate, pod("shop", "web-2", "True"))
		b.fakePod.answer, b.fakePod.err = c.answer, c.err
		b.look(t, plans.Before)
		if c.want == "" {
			b.look(t, plans.After)
		} else {
			b.look(t, plans.During, c.want)
		}
		if q := b.fakePod.asked[0]; q.Get != nil && (q.Get.Path != "/vars?pod=web-2" || q.Get.Port != intstr.FromInt32(8080)) {
			t.Errorf("the request is %+v", q.Get)
		}
	}
}

func TestAQuestionGoesToThePodThatIsMeant(t *testing.T) {
	other, first := intstr.FromString(plans.AnyOther), intstr.FromInt32(0)
	for name, c := range map[string]struct {
		when    plans.When
		pod     *intstr.IntOrString
		objects []client.Object
		want    string // namespace/pod, or the reason why there is none
	}{
		"before":                  {plans.BeforeShrink, nil, []client.Object{pod("shop", "web-2", "True")}, "shop/web-2"},
		"after":                   {plans.AfterGrow, nil, []client.Object{pod("shop", "web-2", "True"), pod("mall", "web-2", "True")}, "mall/web-2"},
		"one that is not ready":   {plans.BeforeShrink, nil, []client.Object{pod("shop", "web-2", "False")}, "shop/web-2"},
		"one that is not there":   {plans.BeforeShrink, nil, nil, "pod web-2 of shop/web does not exist"},
		"another":                 {plans.AfterGrow, &other, []client.Object{pod("mall", "web-2", "True"), pod("shop", "web-0", "False"), pod("shop", "web-1", "True")}, "shop/web-1"},
		"no other":                {plans.AfterGrow, &other, []client.Object{pod("mall", "web-2", "True")}, "available on either side"},
		"a fixed one":             {plans.BeforeShrink, &first, []client.Object{pod("shop", "web-1", "True"), pod("mall", "web-0", "True")}, "mall/web-0"},
		"a fixed one on its side": {plans.BeforeShrink, &first, []client.Object{pod("shop", "web-0", "True"), pod("mall", "web-0", "True")}, "shop/web-0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := drain()
			g.When, g.Pod = c.when, c.pod
			b := bare(t, g, c.objects...)
			s, err := b.Look(t.Context(), b.m)
			if err != nil {
				t.Fatal(err)
			}
			if s.Standing == plans.During {
				if !strings.Contains(s.Reason, c.want) || s.Again == 0 {
					t.Errorf("got %q, expected %q", s.Reason, c.want)
				}
				b.fakePod.clock = b.fakePod.clock.Add(time.Hour)
				b.look(t, plans.Conflict, c.want)
				return
			}
			if err := s.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			q := b.fakePod.asked[0]
			if got := q.Namespace + "/" + q.Pod; got != c.want || q.Container != "db" || q.Command[1] != "web-2" {
				t.Errorf("asked %+v, expected %s", q, c.want)
			}
		})
	}
}

func TestASlowAnswerIsNotWaitedForLongerThanItsTime(t *testing.T) {
	g := drain()
	g.Timeout.Duration, g.Interval.Duration = time.Second, time.Second
	b := bare(t, g, pod("shop", "web-2", "True"))
	b.fakePod.hangs = true
	b.look(t, plans.Before) // returns
	b.fakePod.clock = b.fakePod.clock.Add(time.Second)
	b.look(t, plans.Conflict, "no answer in 1s; expected exit code 0 (asked 1 time(s) in 1s)")
}

func TestAQuestionThatIsBrokenOffHasNoAnswer(t *testing.T) {
	b := bare(t, drain(), pod("shop", "web-2", "True"))
	b.fakePod.hangs = true
	stop := make(chan struct{})
	close(stop)
	b.Stop = stop
	b.look(t, plans.Before)                        // returns at once
	b.look(t, plans.Before, "gate drain of web-2") // as if it had not been asked
	s, err := b.Look(t.Context(), b.m)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Write(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, expected the end of the context", err)
	}
}

// Who wants to stop while a gate is asked about an ordinal that is up does not wait for the answer. About one that has
// arrived, the answer belongs to the wave that is finished first.
func TestOnlyAQuestionBeforeTheWaveLeavesIsBrokenOffToFinish(t *testing.T) {
	finish := make(chan struct{})
	close(finish)
	before := bare(t, drain(), pod("shop", "web-2", "True"))
	before.Finish, before.fakePod.hangs = finish, true
	before.look(t, plans.Before)                        // returns at once
	before.look(t, plans.Before, "gate drain of web-2") // as if it had not been asked
	gate := drain()
	gate.When, gate.Timeout.Duration, gate.Interval.Duration = plans.AfterGrow, time.Second, time.Second
	after := bare(t, gate, pod("mall", "web-2", "True"))
	after.Finish, after.fakePod.hangs = finish, true
	after.look(t, plans.Before) // returns at the end of its time
	after.fakePod.clock = after.fakePod.clock.Add(time.Second)
	after.look(t, plans.Conflict, "no answer in 1s")
}

func job() plans.Gate {
	spec := batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "j", Image: "j", Env: []corev1.EnvVar{{Name: "HOST", Value: "$(POD)"}}}}}}}
	return plans.Gate{Name: "backup", When: plans.BeforeShrink, Job: &spec, Timeout: metav1.Duration{Duration: 90 * time.Second}}
}

// theJob reads the only Job, or returns nil.
func (b *bench) theJob(t *testing.T) *batchv1.Job {
	t.Helper()
	var list batchv1.JobList
	if err := b.client.List(t.Context(), &list, client.InNamespace(b.side)); err != nil || len(list.Items) > 1 {
		t.Fatalf("%d Jobs, %v", len(list.Items), err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// ends gives the Job a condition, as its controller does.
func (b *bench) ends(t *testing.T, c batchv1.JobConditionType) {
	t.Helper()
	j := b.theJob(t)
	j.Status.Conditions = []batchv1.JobCondition{{Type: c, Status: corev1.ConditionTrue, Reason: "DeadlineExceeded", Message: "Job was active longer than specified deadline"}}
	if err := b.client.Status().Update(t.Context(), j); err != nil {
		t.Fatal(err)
	}
}

func TestAJobIsCreatedSuspended(t *testing.T) {
	b := bare(t, job())
	b.look(t, plans.Before, "source: create Job backup-2-")
	j := b.theJob(t)
	if !*j.Spec.Suspend || *j.Spec.ActiveDeadlineSeconds != 90 || !b.m.Stamp.Mine(j) {
		t.Errorf("the Job is made as %+v", j)
	}
	if env := j.Spec.Template.Spec.Containers[0].Env; len(env) != 5 || env[0] != (corev1.EnvVar{Name: "POD", Value: "web-2"}) || env[4].Name != "HOST" {
		t.Errorf("its environment is %v", env)
	}
	b.look(t, plans.Before, "start Job backup-2-")
	if s := b.look(t, plans.During, "gate backup of web-2: Job backup-2-", "for up to 1m30s"); s.Again <= 0 {
		t.Error("nobody looks again when its controller is gone")
	}
	b.ends(t, batchv1.JobComplete)
	if s := b.look(t, plans.Before, "delete Job backup-2-"); s.Undo.Passed != nil {
		t.Errorf("what the Job says before a wave leaves is kept for another process: %+v", s.Undo)
	}
	b.look(t, plans.After, "gates passed: backup/2")
}

// What a Job says of a wave that has arrived is in the journal, with its time, before the Job is deleted.
func TestAnArrivalIsConfirmedOnce(t *testing.T) {
	g := job()
	g.When = plans.AfterGrow
	b := bare(t, g)
	b.side = "mall"
	b.look(t, plans.Before, "create Job backup-2-")
	b.look(t, plans.Before, "start Job backup-2-")
	b.ends(t, batchv1.JobComplete)
	s := b.look(t, plans.Before, "delete Job backup-2-")
	if p := s.Undo.Passed; p == nil || p.Seq != 7 || len(p.Gates) != 1 || p.Gates[0] != "backup/2" || len(p.At) != 1 || p.At[0].IsZero() {
		t.Fatalf("journaled %+v before the Job is deleted", s.Undo.Passed)
	}
	for name, c := range map[string]struct {
		passed *plans.Passed
		later  time.Duration
		asks   bool
	}{
		"by a process that was replaced": {passed: s.Undo.Passed},
		"an hour ago":                    {passed: s.Undo.Passed, later: hearsay},
		"last night":                     {passed: s.Undo.Passed, later: hearsay + time.Second, asks: true},
		"by a clock that was ahead":      {passed: s.Undo.Passed, later: -time.Minute, asks: true},
		"at no time":                     {passed: &plans.Passed{Seq: 7, Gates: []string{"backup/2"}}, asks: true},
	} {
		next := bare(t, g)
		next.m.Passed = c.passed
		next.fakePod.clock = c.passed.When(0).Add(c.later)
		if next.m.Passed.When(0).IsZero() {
			next.fakePod.clock = time.Unix(1000, 0)
		}
		want := plans.After
		if c.asks {
			want = plans.Before
		}
		t.Run(name, func(t *testing.T) { next.look(t, want) })
	}
}

func TestAFailedJobIsKept(t *testing.T) {
	b := bare(t, job())
	b.look(t, plans.Before)
	b.look(t, plans.Before)
	b.ends(t, batchv1.JobFailed)
	b.look(t, plans.Conflict, "gate backup (BeforeShrink) of web-2: Job backup-2-", "failed (DeadlineExceeded: Job was active longer than specified deadline)", "kubectl logs -n shop job/backup-2-")
	b.look(t, plans.Conflict)
	next := New(b.plan, b.on)
	next.Prober = b.fakePod
	b.Keeper = next
	b.look(t, plans.Before, "which failed earlier, to try again")
	b.look(t, plans.Before, "create Job")
}

func TestAJobThatNobodyEndsIsHeld(t *testing.T) {
	b := bare(t, job())
	b.look(t, plans.Before)
	b.look(t, plans.Before)
	b.look(t, plans.During)
	b.fakePod.clock = b.fakePod.clock.Add(90*time.Second + jobDeadlineGrace)
	b.look(t, plans.Conflict, "0 active and 0 failed pod(s); expected it to be complete (waited 2m30s)")
}

// A Job that another writer deletes each time, or that a finalizer keeps, is given up when its time is over: the budgets
// are tight meanwhile.
func TestAJobThatIsDeletedIsHeld(t *testing.T) {
	b := bare(t, job())
	late := func() { b.fakePod.clock = b.fakePod.clock.Add(90*time.Second + jobDeadlineGrace) }
	b.look(t, plans.Before)
	if err := b.client.Delete(t.Context(), b.theJob(t)); err != nil {
		t.Fatal(err)
	}
	b.look(t, plans.Before, "create Job")
	if err := b.client.Delete(t.Context(), b.theJob(t)); err != nil {
		t.Fatal(err)
	}
	late()
	b.look(t, plans.Conflict, "another writer has deleted Job backup-2-", "created again for 2m30s")

	b = bare(t, job())
	b.look(t, plans.Before)
	kept := b.theJob(t)
	kept.Finalizers = []string{"example.com/archive", metav1.FinalizerDeleteDependents}
	if err := errors.Join(b.client.Update(t.Context(), kept), b.client.Delete(t.Context(), kept)); err != nil {
		t.Fatal(err)
	}
	if s := b.look(t, plans.During, "is being deleted, and the finalizers example.com/archive of other writers keep it"); s.Again <= 0 {
		t.Error("nobody looks again")
	}
	late()
	b.look(t, plans.Conflict, "example.com/archive")
}

func TestAStrangersJobIsLeftAlone(t *testing.T) {
	b := bare(t, job())
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: b.plan.JobName(b.plan.Gates[0], b.m.Step, 2), Labels: map[string]string{Label: "backup"}}}
	if err := b.client.Create(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	b.look(t, plans.Conflict, "is not of this plan; delete it")
	if s, err := b.Clear(t.Context(), b.m); err != nil || s.Standing != plans.After {
		t.Errorf("at the end: %+v, %v", s, err)
	}
	plans.Stamp{Plan: b.plan.ID, Epoch: 2, Seq: 1}.Put(j)
	if err := b.client.Update(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	b.look(t, plans.Conflict, "another process has taken the plan over")
}

func TestAProcessThatCannotAskOnlyLooks(t *testing.T) { // `status` is such a process
	for _, g := range []plans.Gate{drain(), job()} {
		b := bare(t, g, pod("shop", "web-2", "True"))
		b.Prober = nil
		b.look(t, plans.During, "web-2: not all gates (BeforeShrink) have passed yet")
	}
}

func TestWhatAStrangerSaysIsMadeFitForAMessage(t *testing.T) {
	for in, want := range map[string]string{
		"first\nsecond\n\n":      "second",
		"":                       "",
		"\x1b[31mred\x00 \xff":   "[31mred ?",
		strings.Repeat("ä", 400): strings.Repeat("ä", 300) + "...",
	} {
		if got := lastLine(in); got != want {
			t.Errorf("%q gives %q, expected %q", in, got, want)
		}
	}
	var b bounded
	for range 3 {
		if n, err := b.Write([]byte(strings.Repeat("x", most))); n != most || err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := b.Write([]byte("\nthe end")); err != nil || len(b.String()) != 2*most || lastLine(b.String()) != "the end" {
		t.Errorf("%d bytes are kept, %v", len(b.String()), err)
	}
}
