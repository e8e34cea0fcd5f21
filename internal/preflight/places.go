package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/pods"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// places chooses how the places of the ordinals are taken, unless the user says it. A place that cannot be taken must not
// keep a plan from being made, nor an ordinal from leaving: then none is, and the plan says why.
func places(ctx context.Context, on clusters.Clusters, in build.Inputs, by check.Caller) (plans.Placeholder, error) {
	out := in.Placeholder
	if !out.Open() {
		return out, nil
	}
	in.Placeholder = plans.Placeholder{}
	p, err := build.Plan(in)
	if err != nil {
		return out, err
	}
	i := check.Inspect(p, on)
	i.Now, i.Draft, i.Caller = in, true, by
	set, err := in.DestinationSet()
	if err != nil {
		return out, err
	}
	elsewhere := p.DefaultMode() != plans.Rebind
	for _, no := range []func() (string, error){
		func() (string, error) { return unplaceable(set.Spec.Template.Spec), nil },
		func() (string, error) { return access.PodsUnmade(ctx, i) },
		func() (string, error) {
			if elsewhere { // the room that an ordinal leaves is in the other one
				return "", nil
			}
			return pods.Beside(ctx, i)
		},
	} {
		why, err := no()
		if err != nil {
			return out, fmt.Errorf("choosing how places are taken: %w; or say how they are: --placeholder off, schedule or warm", err)
		}
		if why != "" && len(out.Reach) > 0 {
			return out, fmt.Errorf("no place can be taken, since %s, so that nothing can be asked from there: leave reach out of placeholder, or name the proof (schedule or warm) if that will be different", why)
		}
		if why != "" {
			return plans.Placeholder{Proof: plans.NoProof, Why: why}, nil
		}
	}
	switch changes := moved(in.Set.Spec.Template.Spec, set.Spec.Template.Spec); {
	case elsewhere:
		out.Proof, out.Why = plans.Warm, "it is another cluster"
	case changes != "":
		out.Proof, out.Why = plans.Warm, "the patches change "+changes
	default:
		out.Proof, out.Why = plans.Scheduled, "the nodes are those of before"
	}
	return out, nil
}

// unplaceable returns why no scheduler would place a placeholder, or none is made unasked, or "".
func unplaceable(s corev1.PodSpec) string {
	switch {
	case reachesNode(s):
		return "its pods reach into their node (hostPath, hostPID, hostIPC or privileged), and no other pod that does so is made unasked"
	case s.NodeName != "":
		return "its pods name their node, so that no scheduler places them"
	case len(s.SchedulingGates) > 0:
		return "its pods wait for scheduling gates, which their owner lifts from them alone"
	}
	return ""
}

// reachesNode reports whether a pod could change its node. The policies about the pods of orchestrators refuse the same.
func reachesNode(s corev1.PodSpec) bool {
	return s.HostPID || s.HostIPC ||
		slices.ContainsFunc(s.Volumes, func(v corev1.Volume) bool { return v.HostPath != nil }) ||
		slices.ContainsFunc(slices.Concat(s.InitContainers, s.Containers), func(c corev1.Container) bool {
			return c.SecurityContext != nil && ptr.Deref(c.SecurityContext.Privileged, false)
		})
}

// moved returns what of the pods decides where they run and is changed, or "".
func moved(from, to corev1.PodSpec) string {
	var out []string
	for _, c := range []struct {
		what string
		same bool
	}{
		{"nodeSelector", equality.Semantic.DeepEqual(from.NodeSelector, to.NodeSelector)},
		{"affinity", equality.Semantic.DeepEqual(from.Affinity, to.Affinity)},
		{"tolerations", equality.Semantic.DeepEqual(from.Tolerations, to.Tolerations)},
		{"runtimeClassName", equality.Semantic.DeepEqual(from.RuntimeClassName, to.RuntimeClassName)},
		{"schedulerName", from.SchedulerName == to.SchedulerName},
		{"images", equality.Semantic.DeepEqual(images(from), images(to))},
		{"resources", equality.Semantic.DeepEqual(resources(from), resources(to))},
	} {
		if !c.same {
			out = append(out, c.what)
		}
	}
	return strings.Join(out, ", ")
}

func images(s corev1.PodSpec) (out []string) {
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for _, c := range list {
			out = append(out, c.Image)
		}
	}
	return out
}

func resources(s corev1.PodSpec) (out []corev1.ResourceRequirements) {
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for _, c := range list {
			out = append(out, c.Resources)
		}
	}
	if s.Resources != nil {
		out = append(out, *s.Resources)
	}
	return out
}
