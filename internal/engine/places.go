package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/placeholder"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// This file reports the places that are taken for ordinals. No safety rule depends on it.

// placed notes the places of a wave that leaves. The write of its step has them in the journal.
func (e *memory) placed(step plans.Step, places []plans.Placed) {
	if e.Now == nil || slices.Equal(e.journal.Timeline.Placed, places) {
		return
	}
	e.note(step, func(j *journal.Journal) { j.Timeline.Placed = places })
}

// Came is how the places of a wave were taken that has arrived.
type Came struct {
	// Placed has its places.
	Placed []plans.Placed
	// Elsewhere says which of its pods are on another node than their placeholders were, or is "".
	Elsewhere string
}

// came returns how the places of a wave were taken that has arrived; nil if none was.
func (e *memory) came(step plans.Step, observed plans.Observation) *Came {
	if !step.Op.Enters() || len(e.journal.Timeline.Placed) == 0 {
		return nil
	}
	out, elsewhere := &Came{Placed: e.journal.Timeline.Placed}, []string(nil)
	for o := range step.Ordinals.All() {
		took, has := e.journal.Timeline.Place(o).Node, observed.Nodes[o]
		if took != "" && has != "" && took != has {
			elsewhere = append(elsewhere, fmt.Sprintf("%s is on %s, and its place was taken on %s", e.plan.Pod(step.To(), o), has, took))
		}
	}
	out.Elsewhere = strings.Join(elsewhere, ", ")
	return out
}

// Places is what is known of the places of the ordinals that leave next.
type Places struct {
	Proof    plans.Proof `json:"proof"`              // Proof is what placeholders prove: off, schedule or warm.
	Unproven []string    `json:"unproven,omitempty"` // Unproven is what they do not prove of the pods, and why.
	Taken    []PlaceView `json:"taken,omitempty"`    // Taken has the placeholders that there are now.
	Message  string      `json:"message"`            // Message says all of that in one line.
}

// PlaceView shows the placeholder of an ordinal.
type PlaceView struct {
	Ordinal int32       `json:"ordinal"`           // Ordinal is the ordinal whose place it takes.
	Side    plans.Side  `json:"side"`              // Side is where it takes it: source or destination.
	Node    string      `json:"node,omitempty"`    // Node is the node that the scheduler has put it on.
	Ready   bool        `json:"ready"`             // Ready reports that it proves what the plan wants proven.
	Since   metav1.Time `json:"since"`             // Since is when it was created.
	Waits   string      `json:"waits,omitempty"`   // Waits is what it waits for, and who has to act.
	Reached string      `json:"reached,omitempty"` // Reached says how much of what was asked from there was reached, such as "3 of 3".
	Clock   string      `json:"clock,omitempty"`   // Clock says how far the clock of the node is off that of its API server.
	pod     string
}

// places reads the placeholders. What cannot be read is left out: it is only shown.
func (v *View) places(ctx context.Context, w clusters.Pair, lost map[plans.Side]error, j *journal.Journal, now time.Time) {
	p := w.Plan
	if !p.Placeholder.Used() || j.Ended() || j.Leg.Direction == plans.Finalize {
		return
	}
	v.Places = &Places{Proof: p.Placeholder.Proof}
	for _, side := range plans.Sides() {
		if lost[side] != nil {
			continue
		}
		var list corev1.PodList
		if err := w.On[side].List(ctx, &list, client.InNamespace(p.On(side).Namespace), client.MatchingLabels{placeholder.Label: p.Name}); err != nil {
			continue
		}
		for o := p.End() - 1; o >= p.Start; o-- {
			at := slices.IndexFunc(list.Items, func(pod corev1.Pod) bool { return pod.Name == p.Place(side, o) && pod.DeletionTimestamp == nil })
			if at < 0 {
				continue
			}
			pod := &list.Items[at]
			proof := placeholder.Read(pod)
			one := PlaceView{Ordinal: o, Side: side, Node: proof.Node, Ready: proof.Has(p.Placeholder.Proof), Since: pod.CreationTimestamp, Reached: proof.Reached, Clock: proof.Clock, pod: p.Pod(side, o)}
			if !one.Ready {
				one.Waits = plans.Line(proof.Words())
			}
			v.Places.Taken = append(v.Places.Taken, one)
		}
	}
	v.unproven(ctx, w, lost, j.Leg.Direction)
	if step, _, more := j.Next(p); more {
		v.waitsForPlace(p, step)
	}
	v.Places.Message = plans.Line(v.placesLine(now))
}

// unproven fills in what the placeholders of a direction do not prove.
func (v *View) unproven(ctx context.Context, w clusters.Pair, lost map[plans.Side]error, direction plans.Direction) {
	to := plans.Destination
	if direction == plans.Abort {
		to = plans.Source
	}
	if lost[to] != nil {
		return
	}
	set, err := w.Set(ctx, to)
	if err != nil || set == nil {
		return
	}
	gaps, _ := placeholder.Unproven(ctx, w.On[to], set) // what cannot be read is left out, and the others are still shown
	for _, g := range gaps {
		v.Places.Unproven = append(v.Places.Unproven, g.String())
	}
}

// waitsForPlace says that a wave which has not left waits for its place, if nothing else keeps it.
func (v *View) waitsForPlace(p *plans.Plan, step plans.Step) {
	if v.Reason != "" || v.Holder == "" || !step.Op.Tightens() && !step.Op.Leaves() {
		return
	}
	for _, one := range v.Places.Taken {
		if one.Waits != "" && one.Side == step.To() && step.Ordinals.Has(one.Ordinal) {
			v.ReasonID, v.Reason = reasons.PlaceNotReady, placeholder.Waits(p, step, one.Ordinal, one.Waits)
			return
		}
	}
}

// placesLine says in one line what placeholders prove, how far those are that there are now, and what they do not prove.
func (v *View) placesLine(now time.Time) string {
	out := []string{fmt.Sprintf("%s (%s)", v.Places.Proof, plans.Placeholder{Proof: v.Places.Proof}.Proven())}
	for _, one := range v.Places.Taken {
		if one.Ready {
			ready := fmt.Sprintf("place of %s ready on %s", one.pod, one.Node)
			if seen := (plans.Placed{Reached: one.Reached, Clock: one.Clock}).Seen(); seen != "" {
				ready += ", " + seen
			}
			out = append(out, ready)
			continue
		}
		waits := fmt.Sprintf("place of %s waits since %s", one.pod, plans.Clock(one.Since.Time, now))
		if v.Unavailable != nil && *v.Unavailable == 0 && v.InFlight == nil {
			waits += ", with every ordinal up and nothing in flight"
		}
		out = append(out, waits)
	}
	if len(v.Places.Unproven) > 0 {
		out = append(out, "not proven: "+strings.Join(v.Places.Unproven, ", "))
	}
	return strings.Join(out, "; ")
}
