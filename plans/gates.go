package plans

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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

// HasGate says whether any gate satisfies the predicate.
func (p *Plan) HasGate(is func(Gate) bool) bool {
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

// runs says in full what the gate lets run, a line each: a person says yes to that.
func (g Gate) runs() []string {
	var out []string
	if g.Exec != nil {
		out = append(out, quoted(g.Exec.Command))
	}
	if !g.IsJob() {
		return out
	}
	spec := g.Job.Template.Spec
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		line := fmt.Sprintf("image %q", c.Image)
		if command := slices.Concat(c.Command, c.Args); len(command) > 0 {
			line += " with " + quoted(command)
		}
		if spec.ServiceAccountName != "" {
			line += fmt.Sprintf(" as ServiceAccount %q", spec.ServiceAccountName)
		}
		out = append(out, line)
	}
	return out
}

// quoted gives words so that nothing of them is lost, or does anything to a terminal.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strconv.Quote(w)
	}
	return strings.Join(out, " ")
}

// Passed are the gates of one step that are known to have passed. It is journaled
// BEFORE the Job that says so is deleted: a Job never runs twice for a gate that
// has passed.
type Passed struct {
	Seq int `json:"seq"`
	// Gates are entries of the form GATE/ORDINAL.
	Gates []string `json:"gates,omitempty"`
}

// allSteps is more than any Seq.
const allSteps = 1<<31 - 1
