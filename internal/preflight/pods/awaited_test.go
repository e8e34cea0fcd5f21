package pods

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func TestWhatWaitsForAClaimOfTheSetIsFound(t *testing.T) {
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	spec := func(claim string) corev1.PodSpec {
		return planstest.Parsed[corev1.PodSpec](t, "volumes: [{name: d, persistentVolumeClaim: {claimName: "+claim+"}}]")
	}
	template := func(claim string) corev1.PodTemplateSpec { return corev1.PodTemplateSpec{Spec: spec(claim)} }
	pod := func(name, claim string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: named("mall", name), Spec: spec(claim), Status: corev1.PodStatus{Phase: phase}}
	}
	ofJob := func(p *corev1.Pod) *corev1.Pod {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "nightly-1", UID: "j", Controller: new(true)}}
		return p
	}
	job := func(namespace string, done bool) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: named(namespace, "nightly-1"), Spec: batchv1.JobSpec{Template: template("data-web-0")}}
		if done {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		}
		return j
	}
	cron := func(namespace, claim string) *batchv1.CronJob {
		c := &batchv1.CronJob{ObjectMeta: named(namespace, "nightly")}
		c.Spec.JobTemplate.Spec.Template = template(claim)
		return c
	}
	for name, c := range map[string]struct {
		here, there []client.Object
		forbids     string
		want        []string
	}{
		"nothing does": {nil, []client.Object{cron("mall", "reports"), pod("x", "reports", corev1.PodPending), cron("elsewhere", "data-web-0")}, "", nil},
		"a pod":        {nil, []client.Object{pod("backup", "data-web-1", corev1.PodPending)}, "", []string{"FAIL ...pod mall/backup: pod backup (Pending) on the destination names claim data-web-1...delete the pod"}},
		"a pod of a Job": {
			nil,
			[]client.Object{ofJob(pod("backup", "data-web-1", corev1.PodPending))},
			"",
			[]string{"FAIL ...pod backup (Pending, of Job nightly-1)...suspend the CronJob that makes Job nightly-1, if there is one, and delete the Job"},
		},
		"a pod that has ended": {nil, []client.Object{pod("backup", "data-web-1", corev1.PodSucceeded)}, "", nil},
		"a CronJob there":      {nil, []client.Object{cron("mall", "data-web-1")}, "", []string{"WARN ...CronJob mall/nightly: its pods mount claim data-web-1 on the destination...suspend it until every ordinal has arrived"}},
		"a CronJob here":       {[]client.Object{cron("shop", "data-web-1")}, nil, "", []string{"WARN ...CronJob shop/nightly: its pods mount claim data-web-1 on the source...suspend it until the end of the plan...an abort waits"}},
		"a Job":                {nil, []client.Object{job("mall", false)}, "", []string{"WARN ...Job mall/nightly-1"}},
		"a Job that is over":   {nil, []client.Object{job("mall", true)}, "", nil},
		"a Deployment":         {nil, []client.Object{&appsv1.Deployment{ObjectMeta: named("mall", "reader"), Spec: appsv1.DeploymentSpec{Template: template("data-web-0")}}}, "", []string{"WARN ...Deployment mall/reader...scale it to 0"}},
		"a DaemonSet":          {nil, []client.Object{&appsv1.DaemonSet{ObjectMeta: named("mall", "reader"), Spec: appsv1.DaemonSetSpec{Template: template("data-web-0")}}}, "", []string{"WARN ...DaemonSet mall/reader...delete it"}},
		"another set":          {nil, []client.Object{&appsv1.StatefulSet{ObjectMeta: named("mall", "reader"), Spec: appsv1.StatefulSetSpec{Template: template("data-web-0")}}}, "", []string{"WARN ...StatefulSet mall/reader"}},
		"the set itself":       {nil, []client.Object{&appsv1.StatefulSet{ObjectMeta: named("mall", "web"), Spec: appsv1.StatefulSetSpec{Template: template("data-web-0")}}}, "", nil},
		"it may not be looked at": {
			nil,
			[]client.Object{cron("mall", "data-web-1")},
			"*v1.CronJobList",
			[]string{"WARN ...namespace shop on the source: you may not list its CronJobs", "WARN ...namespace mall on the destination: you may not list its CronJobs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			const volume = "{csi: {driver: d, volumeHandle: h}}"
			i := checktest.Estate{Volumes: []string{"spec: " + volume, "spec: " + volume}, Here: c.here, There: c.there, Forbids: c.forbids}.Inspected(t)
			found, err := ClaimsAwaited(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
		})
	}
}
