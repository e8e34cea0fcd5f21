package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// courtesy is how long the budgets stay open between two ordinals for the drain of a
// node, counted from its last progress. kubectl drain asks every five seconds, and a pod
// needs its time to come back elsewhere.
const courtesy = 30 * time.Second

// yield lets drains go on: inside a step the budgets may allow nothing, and the time
// between two steps is too short for an eviction to hit. So while pods of the set are on
// nodes that are cordoned, the next ordinal waits, with both budgets open and nothing
// in flight. It is a courtesy: what cannot be read does not hold the move up, and a
// node that is cordoned and not drained does so once per ordinal.
func (r *run) yield(ctx context.Context, done plans.Step) {
	patience := time.NewTimer(courtesy)
	defer patience.Stop()
	last := ""
	for {
		why, err := r.drained(ctx, done)
		if err != nil || why == "" {
			return
		}
		if why != last {
			patience.Reset(courtesy)
			last = why
			r.report(Progress{Kind: Waiting, Step: done, Reason: why})
		}
		if r.becalmed(ctx, patience.C) {
			return
		}
	}
}

// becalmed waits for news of what was looked at, and says whether none came in time.
func (r *run) becalmed(ctx context.Context, limit <-chan time.Time) bool {
	for {
		select {
		case <-r.Wake.Bell():
			if r.glance.outdated(r.Wake.take()) {
				return false
			}
		case <-limit:
			return true
		case <-r.Stop:
			return true
		case <-ctx.Done():
			return true
		}
	}
}

// drained says which pods of the set are on cordoned nodes, or "". The pods that leave
// next are not among them: their nodes are rid of them soon.
func (e *Engine) drained(ctx context.Context, done plans.Step) (string, error) {
	if !e.plan.HasVolumes() || e.journal == nil {
		return "", nil // without claims there is no right to see nodes
	}
	next, more := e.plan.Step(e.journal.Leg, done.Seq+1)
	if !more || !next.Moves() {
		return "", nil // it was the last
	}
	e.glance.clear()
	w := world{plan: e.plan, on: e.glance.glancing(e.plan, e.on)}
	var out []string
	for _, side := range []plans.Side{done.From, done.To()} {
		exposed, err := w.onCordoned(ctx, side)
		if err != nil {
			return "", err
		}
		if side == next.From {
			for o := range next.Ordinals.All() {
				delete(exposed, e.plan.Pod(o))
			}
		}
		for pod, node := range exposed {
			out = append(out, fmt.Sprintf("%s (node %s)", pod, node))
		}
	}
	if len(out) == 0 {
		return "", nil
	}
	slices.Sort(out)
	return fmt.Sprintf("nodes are being drained: the budgets stay open for %s, the next ordinal waits up to %s", strings.Join(out, ", "), courtesy), nil
}

// onCordoned gives the pods of a side's set that are on cordoned nodes, and these.
func (w world) onCordoned(ctx context.Context, side plans.Side) (map[string]string, error) {
	cordoned, err := w.cordoned(ctx, side)
	if err != nil || len(cordoned) == 0 {
		return nil, err
	}
	set, err := w.set(ctx, side)
	if err != nil || set == nil {
		return nil, err
	}
	pods, err := w.pods(ctx, side, set)
	return placedOn(pods, cordoned), err
}

// placedOn gives the pods that are on some nodes, and these.
func placedOn(pods map[string]*corev1.Pod, nodes map[string]bool) map[string]string {
	out := map[string]string{}
	for name, pod := range pods {
		if nodes[pod.Spec.NodeName] {
			out[name] = pod.Spec.NodeName
		}
	}
	return out
}

// cordoned are the nodes of a side that take no more pods.
func (w world) cordoned(ctx context.Context, side plans.Side) (map[string]bool, error) {
	var nodes corev1.NodeList
	if err := w.on[side].List(ctx, &nodes, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.unschedulable", "true")}); err != nil {
		return nil, fmt.Errorf("listing the cordoned nodes of the %s: %w", side, err)
	}
	out := map[string]bool{}
	for _, n := range nodes.Items {
		out[n.Name] = true
	}
	return out, nil
}
