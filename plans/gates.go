package plans

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// When says where in the move of an ordinal a gate stands.
type When string

const (
	// BeforeShrink is before the pod of an ordinal goes, on the side that has it.
	BeforeShrink When = "BeforeShrink"
	// AfterGrow is once the pod is available on the side that takes it over.
	AfterGrow When = "AfterGrow"
)

// AnyOther is what stands for any available pod of the set that does not
// move at that moment, on either side.
const AnyOther = "AnyOther"

// Gate is something that the application has to say yes to, for every ordinal,
// before its move goes on: its leader has been moved away, its data has enough
// copies again. Exactly one of Exec, HTTPGet and Job is set. It may be asked
// more than once, so asking it twice has to do what asking it once does.
type Gate struct {
	Name string `json:"name"`
	When When   `json:"when"`
	// Exec is a command in a pod; it passes with exit code 0.
	Exec *Exec `json:"exec,omitempty"`
	// HTTPGet is a request to a pod, as of a probe; it passes with a status from
	// 200 to 399.
	HTTPGet *corev1.HTTPGetAction `json:"httpGet,omitempty"`
	// Job is the spec of a Job in the namespace of the ordinal; it passes when that
	// is complete.
	Job *batchv1.JobSpec `json:"job,omitempty"`
	// Pod is the pod that is asked: unset for the one of the ordinal, AnyOther, or
	// a fixed ordinal. A Job has none.
	Pod *intstr.IntOrString `json:"pod,omitempty"`
	// Expect, if not empty, has to be somewhere in the standard output of the
	// command or in the body of the response.
	Expect string `json:"expect,omitempty"`
	// Timeout is how long one ordinal may take to pass before the plan is held.
	Timeout metav1.Duration `json:"timeout,omitzero"`
	// Interval is how long it waits before it asks again. A Job is watched instead.
	Interval metav1.Duration `json:"interval,omitzero"`
}

// Exec is a command in a container.
type Exec struct {
	Command []string `json:"command"`
	// Container is empty for the default one of the pod.
	Container string `json:"container,omitempty"`
}

// The ranges and defaults of gates.
const (
	defaultTimeout  = 5 * time.Minute
	maxTimeout      = 24 * time.Hour
	defaultInterval = 5 * time.Second
	minInterval     = time.Second
	maxGateName     = 40       // the name of a Job has room for the ordinal and a hash beside it
	maxBytes        = 64 << 10 // of all gates, in the ConfigMap of the plan
)

// GatesAt returns the gates that a step asks, in the order of the file.
func (p *Plan) GatesAt(op Op) []Gate {
	when := map[Op]When{Quiesce: BeforeShrink, Verify: AfterGrow}[op]
	var out []Gate
	for _, g := range p.Gates {
		if g.When == when {
			out = append(out, g)
		}
	}
	return out
}

// Asks says whether any gate satisfies the predicate.
func (p *Plan) Asks(is func(Gate) bool) bool {
	return slices.ContainsFunc(p.Gates, is)
}

// IsJob says whether the gate is a Job.
func (g Gate) IsJob() bool { return g.Job != nil }

// GateSide is the side whose pods the gates of a step are about.
func (s Step) GateSide() Side {
	if s.Op == Quiesce {
		return s.From
	}
	return s.To()
}

// Gated says whether the step asks gates: it waits as long as they say.
func (o Op) Gated() bool { return o == Quiesce || o == Verify }

// JobName is the name of a gate's Job for an ordinal: at most 63 characters, and
// the same for every process that may make it. The way back has its own.
func (p *Plan) JobName(g Gate, s Step, ordinal int32) string {
	sum := sha256.Sum256([]byte(p.ID + "/" + string(s.From)))
	return fmt.Sprintf("%s-%d-%s", g.Name, ordinal, hex.EncodeToString(sum[:4]))
}

// GateVars are what a gate is told about the ordinal it is asked for: in $(NAME)
// of a command, a path or a header, and in the environment of a Job.
func (p *Plan) GateVars(s Step, ordinal int32) []corev1.EnvVar {
	side := s.GateSide()
	return []corev1.EnvVar{
		{Name: "POD", Value: p.Pod(ordinal)},
		{Name: "ORDINAL", Value: strconv.Itoa(int(ordinal))},
		{Name: "NAMESPACE", Value: p.On(side).Namespace},
		{Name: "SIDE", Value: string(side)},
	}
}

// Expand replaces $(NAME) as Kubernetes does in the command of a container: $$ is a
// dollar sign, and what is not one of the variables stays as it is, so that a
// shell's $(command) needs no care.
func Expand(in string, vars []corev1.EnvVar) string {
	pairs := []string{"$$", "$"}
	for _, v := range vars {
		pairs = append(pairs, "$("+v.Name+")", v.Value)
	}
	return strings.NewReplacer(pairs...).Replace(in)
}

// fill gives a copy of the gates in which nothing is left to be guessed.
func fill(gates []Gate) []Gate {
	var out []Gate
	for _, g := range gates {
		if g.Timeout.Duration == 0 {
			g.Timeout.Duration = defaultTimeout
		}
		if g.Interval.Duration == 0 && !g.IsJob() {
			g.Interval.Duration = min(defaultInterval, g.Timeout.Duration)
		}
		if g.HTTPGet != nil {
			g.HTTPGet = g.HTTPGet.DeepCopy()
			if g.HTTPGet.Scheme == "" {
				g.HTTPGet.Scheme = corev1.URISchemeHTTP
			}
		}
		if g.IsJob() {
			g.Job = g.Job.DeepCopy()
			if g.Job.Template.Spec.RestartPolicy == "" {
				g.Job.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
			}
		}
		out = append(out, g)
	}
	return out
}

// refuseGates gives the first mistake in the gates of a Migration, in one sentence.
func refuseGates(gates []Gate) error {
	seen := map[string]bool{}
	for i, g := range gates {
		if msgs := validation.IsDNS1123Label(g.Name); len(msgs) > 0 || len(g.Name) > maxGateName {
			return fmt.Errorf("spec.gates[%d].name is %q: expected a DNS label of at most %d characters", i, g.Name, maxGateName)
		}
		if seen[g.Name] {
			return fmt.Errorf("gate %s is there twice: a gate is known by its name", g.Name)
		}
		seen[g.Name] = true
		for _, refuse := range []func() string{g.refuse, g.refuseTimes, g.refuseExec, g.refuseHTTP, g.refuseJob} {
			if why := refuse(); why != "" {
				return fmt.Errorf("gate %s: %s", g.Name, why)
			}
		}
	}
	raw, err := json.Marshal(gates)
	if err == nil && len(raw) > maxBytes {
		return fmt.Errorf("the gates take %d bytes: expected at most %d, since the plan is kept in a ConfigMap", len(raw), maxBytes)
	}
	return err
}

func (g Gate) refuse() string {
	kinds := 0
	for _, set := range []bool{g.Exec != nil, g.HTTPGet != nil, g.Job != nil} {
		if set {
			kinds++
		}
	}
	switch {
	case g.When != BeforeShrink && g.When != AfterGrow:
		return fmt.Sprintf("when is %q: expected %s or %s", g.When, BeforeShrink, AfterGrow)
	case kinds != 1:
		return fmt.Sprintf("it has %d of exec, httpGet and job: expected exactly one", kinds)
	case g.IsJob() && g.Pod != nil:
		return "pod is for exec and httpGet: a Job runs in a pod of its own"
	case g.IsJob() && g.Expect != "":
		return "expect is for exec and httpGet: a Job passes when it is complete"
	case g.Pod != nil && g.Pod.Type == intstr.String && g.Pod.StrVal != AnyOther:
		return fmt.Sprintf("pod is %q: expected %s, or an ordinal; leave it out for the pod of the ordinal that moves", g.Pod.StrVal, AnyOther)
	}
	return ""
}

func (g Gate) refuseTimes() string {
	timeout, interval := g.Timeout.Duration, g.Interval.Duration
	switch {
	case timeout < 0 || timeout > maxTimeout || timeout > 0 && timeout < time.Second:
		return fmt.Sprintf("timeout is %s: expected 1s to %s", timeout, maxTimeout)
	case g.IsJob() && interval != 0:
		return "interval is for exec and httpGet: a Job is watched"
	case interval != 0 && (interval < minInterval || interval > max(timeout, defaultTimeout)):
		return fmt.Sprintf("interval is %s: expected at least %s, and at most the timeout", interval, minInterval)
	}
	return ""
}

func (g Gate) refuseExec() string {
	if g.Exec != nil && (len(g.Exec.Command) == 0 || g.Exec.Command[0] == "") {
		return "exec.command is empty: expected a program and its arguments"
	}
	return ""
}

func (g Gate) refuseHTTP() string {
	h := g.HTTPGet
	switch {
	case h == nil:
	case h.Host != "":
		return "httpGet.host is set: the request goes to a pod, through the API server; say which with pod"
	case h.Protocol != nil:
		return "httpGet.protocol is set: the API server chooses it"
	case !strings.HasPrefix(h.Path, "/"):
		return fmt.Sprintf("httpGet.path is %q: expected one that begins with /", h.Path)
	case h.Port.Type == intstr.Int && validation.IsValidPortNum(h.Port.IntValue()) != nil,
		h.Port.Type == intstr.String && validation.IsValidPortName(h.Port.StrVal) != nil:
		return fmt.Sprintf("httpGet.port is %q: expected 1 to 65535, or the name of a container's port", h.Port.String())
	case h.Scheme != "" && h.Scheme != corev1.URISchemeHTTP && h.Scheme != corev1.URISchemeHTTPS:
		return fmt.Sprintf("httpGet.scheme is %q: expected HTTP or HTTPS", h.Scheme)
	}
	return ""
}

func (g Gate) refuseJob() string {
	j := g.Job
	if j == nil {
		return ""
	}
	for _, f := range []struct {
		set  bool
		name string
		why  string
	}{
		{j.ActiveDeadlineSeconds != nil, "activeDeadlineSeconds", "the timeout of the gate is the Job's"},
		{j.TTLSecondsAfterFinished != nil, "ttlSecondsAfterFinished", "the Job is deleted once it has been seen to pass"},
		{j.Suspend != nil, "suspend", "the Job is started when it is due"},
		{j.Selector != nil || j.ManualSelector != nil, "selector", "the Job selects its own pods"},
	} {
		if f.set {
			return fmt.Sprintf("job.%s must be left out: %s", f.name, f.why)
		}
	}
	pod := j.Template.Spec
	switch {
	case len(pod.Containers) == 0:
		return "job.template.spec.containers is empty: expected what stands under spec of a Job"
	case pod.RestartPolicy != "" && pod.RestartPolicy != corev1.RestartPolicyNever && pod.RestartPolicy != corev1.RestartPolicyOnFailure:
		return fmt.Sprintf("job.template.spec.restartPolicy is %q: expected Never (the default) or OnFailure", pod.RestartPolicy)
	}
	return ""
}

// refuseFor gives the first gate that the set could never answer; where says which of
// the two it is.
func refuseFor(gates []Gate, set *appsv1.StatefulSet, where string) error {
	for _, g := range gates {
		if g.Exec != nil && g.Exec.Container != "" && !hasContainer(set, g.Exec.Container) {
			return fmt.Errorf("gate %s: the pods of the set have no container %q%s", g.Name, g.Exec.Container, where)
		}
		if g.HTTPGet != nil {
			if _, known := Port(g.HTTPGet.Port, set.Spec.Template.Spec); !known {
				return fmt.Errorf("gate %s: no container of the set has a port named %q%s", g.Name, g.HTTPGet.Port.StrVal, where)
			}
		}
	}
	return nil
}

func hasContainer(set *appsv1.StatefulSet, name string) bool {
	pod := set.Spec.Template.Spec
	return slices.ContainsFunc(slices.Concat(pod.Containers, pod.InitContainers), func(c corev1.Container) bool { return c.Name == name })
}

// Port is the number of a port of a pod, and false for a name that no container has.
func Port(port intstr.IntOrString, pod corev1.PodSpec) (number int32, known bool) {
	if port.Type == intstr.Int {
		return port.IntVal, true
	}
	for _, c := range slices.Concat(pod.Containers, pod.InitContainers) {
		for _, p := range c.Ports {
			if p.Name == port.StrVal {
				return p.ContainerPort, true
			}
		}
	}
	return 0, false
}

// Kind says in a few words how the gate is asked.
func (g Gate) Kind() string {
	switch {
	case g.IsJob():
		return "Job"
	case g.HTTPGet != nil:
		return "httpGet " + g.HTTPGet.Path
	default:
		return "exec " + g.Exec.Command[0]
	}
}

// words is a gate in one line.
func (g Gate) words() string {
	in := "the pod of the ordinal"
	switch {
	case g.IsJob():
		in = "the namespace of the ordinal"
	case g.Pod != nil && g.Pod.Type == intstr.Int:
		in = fmt.Sprintf("the pod of ordinal %d", g.Pod.IntVal)
	case g.Pod != nil:
		in = "any other pod of the set"
	}
	often := ""
	if !g.IsJob() {
		often = fmt.Sprintf(" every %s", g.Interval.Duration)
	}
	return fmt.Sprintf("%s (%s): %s in %s, asked%s for up to %s per ordinal", g.Name, g.When, g.Kind(), in, often, g.Timeout.Duration)
}

// Passed are the gates of one step that are known to have passed. It is journaled
// BEFORE the Job that says so is deleted: a Job never runs twice for a gate that
// has passed.
type Passed struct {
	Seq int `json:"seq"`
	// Gates are entries of the form GATE/ORDINAL.
	Gates []string `json:"gates,omitempty"`
}

// Skip records the wish of a person to go on without gates: of a Move without those
// of the step under way or the next one that has any, of a Return without all.
func (j *Journal) Skip(p *Plan) error {
	if len(p.Gates) == 0 || j.Leg.Course == Clean {
		return fmt.Errorf("--skip-gates: plan %s asks no gates", p.Name)
	}
	if j.Leg.Course == Return {
		j.SkipGates = everyStep
		return nil
	}
	for seq := j.Done + 1; ; seq++ {
		s, more := p.Step(j.Leg, seq)
		if !more {
			return fmt.Errorf("--skip-gates: plan %s has no gate left to ask", p.Name)
		}
		if len(p.GatesAt(s.Op)) > 0 {
			j.SkipGates = seq
			return nil
		}
	}
}

// everyStep is more than any Seq.
const everyStep = 1<<31 - 1

// Skipped says in words which gates are not asked, or were not, or "".
func (j *Journal) Skipped(p *Plan) string {
	s, more := p.Step(j.Leg, j.SkipGates)
	switch {
	case j.SkipGates == 0:
		return ""
	case !more:
		return "not asked on the way back (--skip-gates)"
	default:
		return fmt.Sprintf("not asked at %s %s (--skip-gates)", p.Pods(s.Ordinals), s.Op)
	}
}
