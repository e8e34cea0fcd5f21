package expanded

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/expansion"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// SamePod warns of what is different about the pods on the destination and not in the plan: what they are told of their
// namespace, what admission adds or leaves out, and what a node has.
func SamePod(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	s, err := look(ctx, i)
	if err != nil {
		return nil, err
	}
	out, err := s.told(i)
	if err != nil {
		return nil, err
	}
	admitted, err := s.admitted(ctx, i)
	return slices.Concat(out, admitted, s.onNodes(i), s.longNames(i)), err
}

// byNode matches a path that has the name of a node in it.
var byNode = regexp.MustCompile(`/\S*` + regexp.QuoteMeta(expansion.Node))

// told finds what the namespace makes of the texts of the pods. Directories are another check's.
func (s sides) told(i check.Inspection) (out []check.Finding, err error) {
	raw := s.arriving()
	from, to := expansion.Bare(expansion.Expand(raw, s.at[plans.Source])), expansion.Bare(expansion.Expand(raw, s.at[plans.Destination]))
	found, err := build.Differences(from, to)
	if err != nil {
		return nil, err
	}
	for _, d := range found {
		if strings.Contains(d.Path, ".volumeMounts") || linked.MatchString(d.After) {
			continue
		}
		f := check.Finding{
			Level: check.Warn, Object: i.Name(plans.Destination) + ": spec.template." + strings.TrimSuffix(d.Path, ".value"),
			Saw: fmt.Sprintf("it is %s on the source and %s on the destination", d.Before, d.After), Want: "a pod that does not depend on its namespace, or one that is to know the new one",
			Remedy: "nothing, if the application is to know where it runs; else write the old text there with --patch",
		}
		if m := ofEnv.FindStringSubmatch(d.Path); m != nil {
			c, _ := containerOf(raw, m[1], m[2])
			n := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == m[3] })
			f.Remedy = "nothing, if the application is to know where it runs; to keep the old value, --patch FILE where FILE has\n" + envPatch(m[1], m[2], c.Env[n], d.Before)
		}
		out = append(out, f)
	}
	texts, err := expansion.Texts(to)
	for _, x := range texts {
		if byNode.MatchString(x.Is) && !strings.Contains(x.Path, ".volumeMounts") {
			out = append(out, check.Finding{
				Level: check.Warn, Object: i.Name(plans.Destination) + ": spec.template." + strings.TrimSuffix(x.Path, ".value"), Saw: "a path has the name of the node in it: " + x.Is,
				Want: "data that an ordinal finds on any node", Remedy: "every ordinal comes to another node: see that it finds there what it had here",
			})
		}
	}
	return out, err
}

var ofEnv = regexp.MustCompile(`^spec\.(containers|initContainers)\[([^\]]+)\]\.env\[([^\]]+)\]`)

// onNodes finds what the pods have on their nodes: it does not move.
func (s sides) onNodes(i check.Inspection) (out []check.Finding) {
	pod := s.arriving()
	for _, v := range pod.Spec.Volumes {
		if v.HostPath == nil {
			continue
		}
		writes := false
		for _, l := range lists(pod) {
			for _, c := range l.of {
				writes = writes || slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name && !m.ReadOnly })
			}
		}
		if writes {
			out = append(out, check.Finding{
				Level: check.Warn, Object: i.Name(plans.Destination) + ": spec.template.spec.volumes[" + v.Name + "]", Saw: fmt.Sprintf("the pods write to %s of their node (hostPath)", v.HostPath.Path),
				Want: "nothing that stays behind on the nodes of the source", Remedy: "see whether an ordinal needs what it has there: it comes to another node, and that directory does not",
			})
		}
	}
	return out
}

// maxFQDN is the longest host name that the kubelet gives a pod: Linux has 64 bytes for it.
const maxFQDN = 64

// longNames refuses pods whose full name would be too long as their host name: the kubelet does not start such a pod.
func (s sides) longNames(i check.Inspection) []check.Finding {
	full := s.arriving().Spec.SetHostnameAsFQDN
	service := s.destined.Spec.ServiceName
	if full == nil || !*full || service == "" {
		return nil
	}
	last := build.Pod(s.destined, i.Plan.End()-1).Name
	name := fmt.Sprintf("%s.%s.%s.svc.cluster.local", last, service, i.Plan.Destination.Namespace)
	if len(name) <= maxFQDN {
		return nil
	}
	return []check.Finding{{
		Object: i.Name(plans.Destination) + ": spec.template.spec.setHostnameAsFQDN", Saw: fmt.Sprintf("%s would be the host name of %s, and has %d bytes", name, last, len(name)),
		Want: fmt.Sprintf("at most %d: the kubelet does not start the pod", maxFQDN), Remedy: "choose a shorter namespace, or take setHostnameAsFQDN off with --patch FILE where FILE has\nspec: {template: {spec: {setHostnameAsFQDN: false}}}",
	}}
}
