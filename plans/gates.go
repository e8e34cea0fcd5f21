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

// When is the point in the move of an ordinal at which a gate stands.
type When string

const (
	// BeforeShrink is before the pod of an ordinal is removed, on the side that has it.
	BeforeShrink When = "BeforeShrink"
	// AfterGrow is after the pod is available on the side that receives it.
	AfterGrow When = "AfterGrow"
)

// AnyOther stands for any available pod of the set that does not move at that moment, on either side.
const AnyOther = "AnyOther"

// Gate is a condition that the application must confirm for every ordinal before its move continues:
// for example, its leader has been moved away, or its data has enough copies again. Exactly one of
// Exec, HTTPGet and Job is set. A gate may be evaluated more than once, so it must be idempotent.
type Gate struct {
	// Name is the name of the gate, a DNS label of at most 40 characters that no other gate of the plan has.
	Name string `json:"name"`
	// When is BeforeShrink, before the pod of an ordinal is removed from its side, or AfterGrow, after the pod is available
	// on the other side.
	When When `json:"when"`
	// Exec is a command in a pod; it passes with exit code 0.
	Exec *Exec `json:"exec,omitempty"`
	// HTTPGet is a request to a pod, as in a probe of Kubernetes; it passes with a status from 200 to 399.
	HTTPGet *corev1.HTTPGetAction `json:"httpGet,omitempty"`
	// Job is the spec of a Job of batch/v1 in the namespace of the ordinal; it passes when the Job is complete.
	Job *batchv1.JobSpec `json:"job,omitempty"`
	// Pod is the pod that is asked: AnyOther for any available pod that does not move at that moment, or a fixed ordinal.
	// Defaults to the pod of the ordinal that moves. Must not be set for a job.
	Pod *intstr.IntOrString `json:"pod,omitempty"`
	// Expect is a text that must occur in the standard output of the command, or in the body of the response. Defaults to
	// no such text. Must not be set for a job.
	Expect string `json:"expect,omitempty"`
	// Expression is a condition in CEL over code, text and body of the answer, such as body.state == "running". Defaults to
	// no condition. Must not be set for a job.
	Expression string `json:"expression,omitempty"`
	// Timeout is how long one ordinal may take to pass before the plan is blocked, from 1s to 24h. Defaults to 5m.
	Timeout metav1.Duration `json:"timeout,omitzero"`
	// Interval is the time between two questions, from 1s to the timeout. Defaults to 5s. Must not be set for a job.
	Interval metav1.Duration `json:"interval,omitzero"`
}

// Exec is a command in a container.
type Exec struct {
	// Command is the program and its arguments. No shell interprets them. $(POD), $(ORDINAL), $(NAMESPACE) and $(SIDE) are
	// replaced by the values of the ordinal.
	Command []string `json:"command"`
	// Container is the container that the command runs in. Defaults to the default container of the pod.
	Container string `json:"container,omitempty"`
}

// The ranges and defaults of gates.
const (
	defaultTimeout  = 5 * time.Minute
	maxTimeout      = 24 * time.Hour
	defaultInterval = 5 * time.Second
	minInterval     = time.Second
	maxGateName     = 40       // leaves room for the ordinal and a hash in the name of a Job
	MaxBytes        = 64 << 10 // of all gates, in the ConfigMap of the plan
)

// GatesAt returns the gates that a step evaluates, in the order of the file.
func (p *Plan) GatesAt(op Op) []Gate {
	var out []Gate
	for _, g := range p.Gates {
		if g.When == op.Gate() {
			out = append(out, g)
		}
	}
	return out
}

// HasGate reports whether any gate satisfies the predicate.
func (p *Plan) HasGate(is func(Gate) bool) bool {
	return slices.ContainsFunc(p.Gates, is)
}

// IsJob reports whether the gate is a Job.
func (g Gate) IsJob() bool { return g.Job != nil }

// StepOfGate returns a step at which a gate is asked about the pods of a side.
func (g Gate) StepOfGate(side Side) Step {
	for _, op := range Ops() {
		if s := (Step{Op: op, From: side}); op.Gate() == g.When && op.Gated() {
			if op.Receives() {
				s.From = side.Other()
			}
			return s
		}
	}
	return Step{From: side}
}

// GateSide returns the side whose pods the gates of a step are about.
func (s Step) GateSide() Side {
	if s.Op.Gate() == BeforeShrink {
		return s.From
	}
	return s.To()
}

// JobName returns the name of a gate's Job for an ordinal: at most 63 characters, and the same for
// every process that may create it. A move and an abort use different names.
func (p *Plan) JobName(g Gate, s Step, ordinal int32) string {
	sum := sha256.Sum256([]byte(p.ID + "/" + string(s.From)))
	return fmt.Sprintf("%s-%d-%s", g.Name, ordinal, hex.EncodeToString(sum[:4]))
}

// GateVars returns the variables that describe the ordinal to a gate: as $(NAME) in a command, a path
// or a header, and in the environment of a Job.
func (p *Plan) GateVars(s Step, ordinal int32) []corev1.EnvVar {
	side := s.GateSide()
	return []corev1.EnvVar{
		{Name: "POD", Value: p.Pod(side, ordinal)},
		{Name: "ORDINAL", Value: strconv.Itoa(int(ordinal))},
		{Name: "NAMESPACE", Value: p.On(side).Namespace},
		{Name: "SIDE", Value: string(side)},
	}
}

// Expand replaces $(NAME) as Kubernetes does in the command of a container: $$ is a dollar sign, and
// an unknown name stays as it is, so that a shell's $(command) needs no escaping.
func Expand(in string, vars []corev1.EnvVar) string {
	pairs := []string{"$$", "$"}
	for _, v := range vars {
		pairs = append(pairs, "$("+v.Name+")", v.Value)
	}
	return strings.NewReplacer(pairs...).Replace(in)
}

// GatesWithDefaults returns a copy of the gates with all defaults set.
func GatesWithDefaults(gates []Gate) []Gate {
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

// Port returns the number of a port of a pod, and false for a name that no container has.
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

// Kind describes in a few words how the gate is evaluated.
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

// Passed lists the gates that have passed since a wave has arrived. It is journaled BEFORE the Job that proves it
// is deleted. What is answered before a wave leaves is not kept.
type Passed struct {
	// Seq is the number of the step.
	Seq int `json:"seq"`
	// Gates are entries of the form GATE/ORDINAL.
	Gates []string `json:"gates,omitempty"`
	// At has the time at which each of the gates has passed. A gate without one is asked again.
	At []metav1.Time `json:"at,omitempty"`
}

// When returns when the gate of that place has passed; zero if that is not known.
func (p *Passed) When(i int) time.Time {
	if i >= len(p.At) {
		return time.Time{}
	}
	return p.At[i].Time
}

// AllSteps is greater than any Seq.
const AllSteps = 1<<31 - 1
