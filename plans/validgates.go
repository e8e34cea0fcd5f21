package plans

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stsmigrate/stsmigrate/internal/expressions"
)

// refuseGates returns the first mistake in the gates of a Migration, in one sentence.
func refuseGates(gates []Gate) error {
	seen := map[string]bool{}
	for i, g := range gates {
		if msgs := validation.IsDNS1123Label(g.Name); len(msgs) > 0 || len(g.Name) > maxGateName {
			return fmt.Errorf("spec.gates[%d].name is %q: expected a DNS label of at most %d characters", i, g.Name, maxGateName)
		}
		if seen[g.Name] {
			return fmt.Errorf("gate %s is defined twice, expected a unique name", g.Name)
		}
		seen[g.Name] = true
		for _, refuse := range []func() string{g.refuse, g.refuseExpression, g.refuseTimes, g.refuseExec, g.refuseHTTP, g.refuseJob} {
			if why := refuse(); why != "" {
				return fmt.Errorf("gate %s: %s", g.Name, why)
			}
		}
	}
	raw, err := json.Marshal(gates)
	if err == nil && len(raw) > MaxBytes {
		return fmt.Errorf("the gates take %d bytes: expected at most %d, since the plan is kept in a ConfigMap", len(raw), MaxBytes)
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
	case g.IsJob() && g.Expression != "":
		return "expression is for exec and httpGet: a Job passes when it is complete"
	case g.Pod != nil && g.Pod.Type == intstr.String && g.Pod.StrVal != AnyOther:
		return fmt.Sprintf("pod is %q: expected %s, or an ordinal; leave it out for the pod of the ordinal that moves", g.Pod.StrVal, AnyOther)
	}
	return ""
}

func (g Gate) refuseExpression() string {
	if g.Expression == "" {
		return ""
	}
	if _, err := expressions.Compile(g.Expression); err != nil {
		return fmt.Sprintf("expression is no condition in CEL over code, text and body: %s", err)
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
	if h == nil {
		return ""
	}
	switch {
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
	case wanders(h.Path):
		return fmt.Sprintf("httpGet.path is %q: expected one without //, . and .., as it is appended to the pod's own path at the API server", h.Path)
	}
	for _, header := range h.HTTPHeaders {
		if forTheAPIServer(header.Name) {
			return fmt.Sprintf("httpGet.httpHeaders has %s: the API server, through which the request goes, would take it for its own; ask with exec or a Job if the application needs it", header.Name)
		}
	}
	return ""
}

// wanders reports whether a path leads to another place than it shows, however often it is decoded on
// its way.
func wanders(whole string) bool {
	at, _, _ := strings.Cut(whole, "?")
	for {
		if clean := path.Clean(at); clean != at && clean+"/" != at {
			return true
		}
		next, err := url.PathUnescape(at)
		if err != nil || next == at {
			return err != nil
		}
		at = next
	}
}

// forTheAPIServer reports whether a header identifies the caller to an API server, or concerns the
// connection to it.
func forTheAPIServer(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return slices.Contains([]string{"authorization", "host", "connection"}, name) || strings.HasPrefix(name, "impersonate-") || strings.HasPrefix(name, "x-remote-")
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
