package plans_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/plans/preview"
)

// asking returns a Migration with these gates.
func asking(gates string) []byte {
	return fmt.Appendf(nil, "apiVersion: %s\nkind: Migration\nspec:\n  source: {name: web}\n  gates:\n%s", plans.APIVersion, gates)
}

func TestGatesAreReadStrictly(t *testing.T) {
	const good = "  - {name: drain, when: BeforeShrink, exec: {command: [drain]}, timeout: 2m, interval: 10s}\n"
	m, err := plans.DecodeMigration(asking(good))
	if err != nil || len(m.Spec.Gates) != 1 || m.Spec.Gates[0].Timeout.Duration != 2*time.Minute {
		t.Fatalf("got %+v, %v", m, err)
	}
	job := func(field string) string {
		return "  - {name: j, when: AfterGrow, job: {" + field + "template: {spec: {containers: [{name: j, image: j}]}}}}\n"
	}
	get := func(fields string) string {
		return "  - {name: h, when: AfterGrow, httpGet: {" + fields + "}}\n"
	}
	if _, err := plans.DecodeMigration(asking(get("path: '/a.b/$(POD)/?at=/../x&dir=%2e%2e', port: 80, httpHeaders: [{name: X-Pod, value: $(POD)}]"))); err != nil {
		t.Error(err)
	}
	for gates, want := range map[string]string{
		strings.Replace(good, "timeout", "timeoutSeconds", 1): `unknown field "spec.gates[0].timeoutSeconds"`,
		strings.Replace(good, "drain", "Drain!", 1):           `spec.gates[0].name is "Drain!": expected a DNS label of at most 40 characters`,
		good + good: "gate drain is defined twice, expected a unique name",
		strings.Replace(good, "BeforeShrink", "Before", 1):                              `when is "Before": expected BeforeShrink or AfterGrow`,
		strings.Replace(good, "exec: {command: [drain]}, ", "", 1):                      "it has 0 of exec, httpGet and job: expected exactly one",
		strings.Replace(good, "exec", "httpGet: {path: /, port: 1}, exec", 1):           "it has 2 of exec, httpGet and job",
		strings.Replace(good, "[drain]", "[]", 1):                                       "exec.command is empty",
		strings.Replace(good, "2m", "25h", 1):                                           "timeout is 25h0m0s: expected 1s to 24h0m0s",
		strings.Replace(good, "2m", "-1s", 1):                                           "timeout is -1s",
		strings.Replace(good, "10s", "10ms", 1):                                         "interval is 10ms: expected at least 1s",
		strings.Replace(good, "10s", "1h", 1):                                           "interval is 1h0m0s: expected at least 1s, and at most the timeout",
		strings.Replace(good, "exec", "pod: any, exec", 1):                              `pod is "any": expected AnyOther, or an ordinal`,
		get("path: /, port: 80, host: example.org"):                                     "httpGet.host is set",
		get("path: /, port: 80, protocol: x"):                                           "httpGet.protocol is set",
		strings.Replace(good, "exec", "expression: body.state =, exec", 1):              "gate drain: expression is no condition in CEL over code, text and body: 1:",
		strings.Replace(good, "exec", "expression: size(text), exec", 1):                "its value is of type int, expected true or false",
		strings.Replace(job(""), "job:", "expression: 'true', job:", 1):                 "expression is for exec and httpGet",
		get("path: vars, port: 80"):                                                     `httpGet.path is "vars"`,
		get("path: /, port: 99999"):                                                     `httpGet.port is "99999"`,
		get("path: /, port: '***'"):                                                     `httpGet.port is "***"`,
		get("path: /, port: 80, scheme: FTP"):                                           `httpGet.scheme is "FTP"`,
		get("path: /a/../../secrets, port: 80"):                                         `httpGet.path is "/a/../../secrets": expected one without //, . and ..`,
		get("path: /a/./b, port: 80"):                                                   `httpGet.path is "/a/./b"`,
		get("path: //a, port: 80"):                                                      `httpGet.path is "//a"`,
		get("path: /a/%2e%2E/b, port: 80"):                                              `httpGet.path is "/a/%2e%2E/b"`,
		get("path: /a%2f..%2fb, port: 80"):                                              `httpGet.path is "/a%2f..%2fb"`,
		get("path: /a/%252e%252e/b, port: 80"):                                          `httpGet.path is "/a/%252e%252e/b"`,
		get("path: /a%2, port: 80"):                                                     `httpGet.path is "/a%2"`,
		get("path: /, port: 80, httpHeaders: [{name: AUTHORIZATION, value: Bearer x}]"): "httpGet.httpHeaders has AUTHORIZATION: the API server",
		get("path: /, port: 80, httpHeaders: [{name: a, value: b}, {name: Impersonate-Extra-Scopes, value: x}]"): "httpHeaders has Impersonate-Extra-Scopes",
		get("path: /, port: 80, httpHeaders: [{name: x-remote-user, value: x}]"):                                 "httpHeaders has x-remote-user",
		get("path: /, port: 80, httpHeaders: [{name: Host, value: x}]"):                                          "httpHeaders has Host",
		get("path: /, port: 80, httpHeaders: [{name: connection, value: upgrade}]"):                              "httpHeaders has connection",
		job("activeDeadlineSeconds: 3, "):                                                                        "job.activeDeadlineSeconds must be left out: the timeout of the gate is the Job's",
		job("ttlSecondsAfterFinished: 3, "):                                                                      "job.ttlSecondsAfterFinished must be left out",
		job("suspend: false, "):                                                                                  "job.suspend must be left out",
		job("manualSelector: true, "):                                                                            "job.selector must be left out",
		job("templates: {}, "):                                                                                   `unknown field "spec.gates[0].job.templates"`,
		strings.Replace(job(""), "image: j", "images: j", 1):                                                     `unknown field "spec.gates[0].job.template.spec.containers[0].images"`,
		strings.Replace(job(""), "[{name: j, image: j}]", "[]", 1):                                               "job.template.spec.containers is empty",
		strings.Replace(job(""), "containers", "restartPolicy: Always, containers", 1):                           "restartPolicy is \"Always\": expected Never",
		strings.Replace(job(""), "job:", "interval: 5s, job:", 1):                                                "interval is for exec and httpGet",
		strings.Replace(job(""), "job:", "pod: 1, job:", 1):                                                      "pod is for exec and httpGet",
		strings.Replace(job(""), "job:", "expect: yes-, job:", 1):                                                "expect is for exec and httpGet",
		strings.Replace(good, "[drain]", "["+strings.Repeat("x", 70<<10)+"]", 1):                                 "expected at most 65536, since the plan is kept in a ConfigMap",
	} {
		if _, err := plans.DecodeMigration(asking(gates)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got %v, expected %q", gates, err, want)
		}
	}
}

// gated returns a plan with a gate of each kind.
func gated(t *testing.T) *plans.Plan {
	t.Helper()
	in := planstest.Inputs()
	job := batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: "admin", InitContainers: []corev1.Container{{Name: "i", Image: "i"}}, Containers: []corev1.Container{{Name: "j", Image: "j", Command: []string{"sh", "-c"}, Args: []string{"curl x | sh"}}}}}}
	in.Gates = []plans.Gate{
		{Name: "drain", When: plans.BeforeShrink, Exec: &plans.Exec{Command: []string{"drain", "-x", "a\x1b[2K b"}}},
		{Name: "vars", When: plans.AfterGrow, HTTPGet: &corev1.HTTPGetAction{Path: "/vars", Port: intstr.FromInt32(80)}, Timeout: metav1.Duration{Duration: 2 * time.Second}},
		{Name: "rejoin", When: plans.AfterGrow, Job: &job},
	}
	p, err := build.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	if job.Template.Spec.RestartPolicy != "" {
		t.Error("what the plan was made from was changed")
	}
	return p
}

func TestAPlanSaysAllOfItsGates(t *testing.T) {
	p := gated(t)
	raw, err := plans.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	again, err := plans.DecodePlan(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, again); diff != "" {
		t.Error(diff)
	}
	want := "  gate         drain (BeforeShrink): exec drain in the pod of the ordinal, asked every 5s for up to 5m0s per ordinal\n" +
		"  gate         drain runs \"drain\" \"-x\" \"a\\x1b[2K b\"\n" +
		"  gate         vars (AfterGrow): httpGet /vars in the pod of the ordinal, asked every 2s for up to 2s per ordinal\n" +
		"  gate         rejoin (AfterGrow): Job in the namespace of the ordinal, asked for up to 5m0s per ordinal\n" +
		"  gate         rejoin runs image \"i\" as ServiceAccount \"admin\"\n" +
		"  gate         rejoin runs image \"j\" with \"sh\" \"-c\" \"curl x | sh\" as ServiceAccount \"admin\"\n"
	if text := preview.Render(p, p.FirstLeg()); !strings.Contains(text, want) {
		t.Errorf("got\n%s\nexpected in it\n%s", text, want)
	}
	if g := p.Gates[2]; g.Job.Template.Spec.RestartPolicy != corev1.RestartPolicyNever || g.Interval.Duration != 0 {
		t.Errorf("the Job is not as it has to be: %+v", g)
	}
	if _, err := plans.DecodePlan([]byte(strings.Replace(string(raw), "- drain", "- rm", 1))); err == nil {
		t.Error("a plan whose gate was edited is accepted")
	}
}

func TestAPlanWithGatesHasTwoMoreSteps(t *testing.T) {
	p := planstest.Three()
	p.Gates = []plans.Gate{{Name: "drain", When: plans.BeforeShrink}}
	want := "4/Tighten 4/Quiesce 4/Shrink 4/Vacate 4/Release 4/Reserve 4/Claim 4/Grow 4/Verify 4/Relax"
	if got := walk(p, plans.Leg{Direction: plans.Abort, First: 40, Lowest: 4, End: 5}); !strings.HasPrefix(got, want+" Retire") {
		t.Errorf("got %s, expected %s first", got, want)
	}
	if got := walk(p, p.FirstLeg()); !strings.Contains(got, " "+want+" 3/Tighten 3/Quiesce") {
		t.Errorf("got %s, expected %s in it", got, want)
	}
	for _, op := range []plans.Op{plans.Quiesce, plans.Verify} {
		if op.Boundary() {
			t.Errorf("a pause would take effect before %s, inside a wave", op)
		}
	}
}

func TestVariablesAreExpandedAsInAContainer(t *testing.T) {
	vars := planstest.Three().GateVars(plans.Step{Op: plans.Verify, From: plans.Source}, 4)
	for in, want := range map[string]string{
		"$(POD).$(NAMESPACE)":           "web-4.mall",
		"$(ORDINAL) on the $(SIDE)":     "4 on the destination",
		"$$(POD) costs 5$":              "$(POD) costs 5$",
		"$(date) $POD ${POD} $(POD":     "$(date) $POD ${POD} $(POD",
		"$(etcdctl --name $(POD) | wc)": "$(etcdctl --name web-4 | wc)",
	} {
		if got := plans.Expand(in, vars); got != want {
			t.Errorf("%q gives %q, expected %q", in, got, want)
		}
	}
	if got := planstest.Three().GateVars(plans.Step{Op: plans.Quiesce, From: plans.Source}, 4)[2].Value; got != "shop" {
		t.Errorf("before it leaves the namespace is %q, expected that of the source", got)
	}
}

func TestJobsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{"a", "b"} {
		p := planstest.Three()
		p.ID = id
		for _, gate := range []string{"drain", strings.Repeat("x", 40)} {
			for _, from := range []plans.Side{plans.Source, plans.Destination} {
				for _, o := range []int32{3, 2147483647} {
					name := p.JobName(plans.Gate{Name: gate}, plans.Step{From: from}, o)
					if msgs := validation.IsDNS1123Label(name); msgs != nil || seen[name] {
						t.Errorf("name %s: %v, or there already", name, msgs)
					}
					seen[name] = true
				}
			}
		}
	}
}

// The examples in the documentation can be used unchanged.
func TestTheGatesInTheDocsAreGates(t *testing.T) {
	page, err := os.ReadFile("../docs/gates.md")
	if err != nil {
		t.Fatal(err)
	}
	snippets := strings.Split(string(page), "```yaml\n")[1:]
	if len(snippets) < 5 {
		t.Fatalf("%d snippets, expected one for each application", len(snippets))
	}
	for _, s := range snippets {
		text, _, _ := strings.Cut(s, "```")
		_, list, found := strings.Cut(text, "gates:\n")
		m, err := plans.DecodeMigration(asking(list))
		if err != nil || !found || len(m.Spec.Gates) == 0 {
			t.Errorf("%v in\n%s", err, text)
		}
	}
}
