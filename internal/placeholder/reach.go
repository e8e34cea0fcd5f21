package placeholder

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/placeholder/waiting"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

const (
	// asking is the container that asks what must be reached. It runs after the program is brought and before the containers
	// of the ordinal, and is tried again by the kubelet until it ends well.
	asking = "stsmigrate-reach"
	// notReached is the word for what it says, beside those of kubelets.
	notReached = "NotReached"
	// spare is how many containers others may add to a pod: a kubelet keeps the less of each message, the more there are.
	spare = 4
	// maxNamed is how many of those that are not reached are named.
	maxNamed = 3
)

// command returns what the container runs, in a pod of so many others. It has arguments only: no address is read by a shell.
func (p Program) command(containers int) []string {
	limit := min(waiting.MaxMessage, waiting.MaxMessages/(containers+2+spare))
	out := []string{"/" + waiting.Name, "reach", "-limit=" + strconv.Itoa(limit)}
	if p.Reports {
		out = append(out, "-report")
	}
	return append(append(out, "--"), p.Targets...)
}

// unaskable says why nothing can ask what must be reached from a place, and what to do, or returns "".
func (p Place) unaskable() string {
	switch {
	case !p.Program.needed():
	case !p.brings(&p.Pod.Spec):
		return "the program that asks is one for Linux; make a new plan without reach"
	case slices.Contains(p.Program.Reach, plans.Peers) && len(ports(p.Pod)) == 0:
		return fmt.Sprintf("no container of the set names a TCP port; make a new plan with %s:PORT in reach", plans.Peers)
	}
	return ""
}

// Unaskable says why nothing can ask what must be reached from the places of a side, and what to do, or returns "".
func Unaskable(p *plans.Plan, side plans.Side, set *appsv1.StatefulSet) string {
	return of(p, side, set, p.Start).unaskable()
}

// asks fills in what is to be reached from a place now.
func (s Steps) asks(ctx context.Context, m plans.StepContext, set *appsv1.StatefulSet, ordinal int32, p *Place) error {
	if len(p.Program.Reach) == 0 {
		return nil
	}
	var peers []string // each without its port
	if slices.ContainsFunc(p.Program.Reach, func(entry string) bool { _, is := plans.AsksPeers(entry); return is }) {
		var err error
		if peers, err = s.peers(ctx, m, set, ordinal); err != nil {
			return err
		}
	}
	p.Program.Targets = targets(p.Program.Reach, peers, ports(p.Pod))
	var err error
	p.Program.Reports, err = s.selected(ctx, p.Pod.Labels)
	return err
}

// targets returns the addresses that a list stands for, at most as many as are asked: first those that are named.
func targets(reach, peers []string, ports []uint16) (out []string) {
	for _, entry := range reach {
		if _, is := plans.AsksPeers(entry); !is {
			out = append(out, entry)
		}
	}
	for _, entry := range reach {
		port, is := plans.AsksPeers(entry)
		if !is {
			continue
		}
		on := ports
		if port != 0 {
			on = []uint16{port}
		}
		for _, peer := range peers {
			for _, n := range on {
				if to := fmt.Sprintf("%s:%d", peer, n); !slices.Contains(out, to) {
					out = append(out, to)
				}
			}
		}
	}
	return out[:min(len(out), waiting.MaxTargets)]
}

// ports returns the TCP ports that the containers of a pod name.
func ports(pod *corev1.Pod) (out []uint16) {
	for _, c := range slices.Concat(pod.Spec.Containers, sidecars(pod.Spec.InitContainers)) {
		for _, p := range c.Ports {
			if p.Protocol == "" || p.Protocol == corev1.ProtocolTCP {
				out = append(out, uint16(p.ContainerPort)) //nolint:gosec // the API server bounds it
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// peers returns the names of the other ordinals that are ready now, on whatever side. One that is down is not asked: that it
// is down says nothing about the way to it.
func (s Steps) peers(ctx context.Context, m plans.StepContext, set *appsv1.StatefulSet, ordinal int32) (out []string, err error) {
	ready := map[plans.Side]map[string]bool{}
	for _, side := range plans.Sides() {
		var all corev1.PodList
		if err := s.On[side].List(ctx, &all, client.InNamespace(s.Plan.On(side).Namespace)); err != nil {
			return nil, fmt.Errorf("listing the pods of %s: %w", s.Plan.On(side), err)
		}
		ready[side] = map[string]bool{}
		for k := range all.Items {
			ready[side][all.Items[k].Name] = clusters.IsReady(&all.Items[k]) && all.Items[k].DeletionTimestamp == nil
		}
	}
	for o := range s.Plan.Ordinals().All() {
		for _, side := range plans.Sides() {
			if o != ordinal && ready[side][s.Plan.Pod(side, o)] {
				out = append(out, plans.PeerName(s.Plan, m.Step, o, side, set.Spec.ServiceName))
				break
			}
		}
	}
	return out, nil
}

// selected reports whether a NetworkPolicy of either side selects the pods of the set. It sees their labels, which a
// placeholder does not have: what that reaches, or not, is not what the pods do. Policies that may not be read are as none.
func (s Steps) selected(ctx context.Context, of map[string]string) (bool, error) {
	for _, side := range plans.Sides() {
		var all networkingv1.NetworkPolicyList
		err := s.On[side].List(ctx, &all, client.InNamespace(s.Plan.On(side).Namespace))
		if err != nil && !apierrors.IsForbidden(err) {
			return false, fmt.Errorf("listing the NetworkPolicies of %s: %w", s.Plan.On(side), err)
		}
		if len(about(all.Items, of)) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// asksOthers reports whether a placeholder asks for others than it would if it were made now: a peer has gone down, or
// another has come up.
func (s Steps) asksOthers(ctx context.Context, m plans.StepContext, set *appsv1.StatefulSet, ordinal int32, pod *corev1.Pod) (bool, error) {
	now := Place{Pod: build.Pod(set, ordinal), Program: program(s.Plan)}
	if err := s.asks(ctx, m, set, ordinal, &now); err != nil {
		return false, err
	}
	for _, c := range pod.Spec.InitContainers {
		if c.Name == asking {
			at := slices.Index(c.Command, "--")
			return !slices.Equal(c.Command[at+1:], now.Program.Targets) || slices.Contains(c.Command[:at+1], "-report") != now.Program.Reports, nil
		}
	}
	return false, nil
}

// silenced says that another writer has taken out of a placeholder what asks, as a webhook does that lets in some images
// only, or returns "".
func silenced(p *plans.Plan, pod *corev1.Pod) string {
	if !program(p).needed() || asksAround(pod) {
		return ""
	}
	return "has lost the container " + asking + ", which asks what must be reached"
}

// asksAround reports whether a placeholder asks what must be reached.
func asksAround(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == asking })
}

// asked is what the container that asks has said.
type asked struct {
	waiting.Answers

	known  bool   // its message can be read
	open   bool   // it has not ended well
	failed bool   // it has ended otherwise, and is tried again
	ended  string // how, in words of the kubelet
}

// answersOf reads what a placeholder has said of what it reaches, the last time that it was asked.
func answersOf(pod *corev1.Pod) (out asked) {
	if !asksAround(pod) {
		return asked{}
	}
	out.open = pod.Status.Phase != corev1.PodRunning // what runs has passed it
	for _, s := range pod.Status.InitContainerStatuses {
		if s.Name != asking {
			continue
		}
		last := s.State.Terminated
		if out.open = out.open && (last == nil || last.ExitCode != 0); last == nil {
			last = s.LastTerminationState.Terminated
		}
		if last == nil {
			return out
		}
		var err error
		out.Answers, err = waiting.Decode(last.Message)
		out.known, out.failed = err == nil, last.ExitCode != 0
		out.ended = strings.TrimSpace(fmt.Sprintf("%s with exit code %d", last.Reason, last.ExitCode))
	}
	return out
}

// count says how much is reached.
func (a asked) count() string { return fmt.Sprintf("%d of %d", a.Reached, a.Asked) }

// reached says how much is, and what is not; "" if that is not known.
func (a asked) reached() string {
	first, more := a.missed()
	switch {
	case !a.known:
		return ""
	case len(first) == 0:
		return a.count()
	}
	var names []string
	for _, one := range first {
		names = append(names, one.Target)
	}
	return a.count() + ", not " + strings.Join(names, ", ") + more
}

// missed returns the first of those that are not reached, and says how many others there are.
func (a asked) missed() (first []waiting.Answer, more string) {
	for _, one := range a.Each {
		if one.Error != "" && len(first) < maxNamed {
			first = append(first, one)
		}
	}
	if left := a.Asked - a.Reached - len(first); left > 0 {
		more = fmt.Sprintf(", and %d more", left)
	}
	return first, more
}

// lacks says what is not reached from a node. The message may be cut, or the program may not have written one.
func (a asked) lacks(node string) string {
	if !a.known {
		return fmt.Sprintf("from node %s not everything is reached, or nothing could be asked: container %s has ended (%s), and its message cannot be read", node, asking, a.ended)
	}
	return fmt.Sprintf("from node %s these are not reached (%s are): %s", node, a.count(), a.words())
}

// words says what was not reached, in the words of who said no.
func (a asked) words() string {
	first, more := a.missed()
	var out []string
	for _, one := range first {
		at := ""
		if len(one.Addresses) > 0 {
			at = " (" + strings.Join(one.Addresses, " ") + ")"
		}
		out = append(out, fmt.Sprintf("%s%s after %d ms: %s", one.Target, at, one.Milliseconds, one.Error))
	}
	return strings.Join(out, ", ") + more
}
