package plans

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Flight holds the facts about the ordinals of a wave that are needed after their pods and claims are
// gone from one side. It is journaled BEFORE the first of them is removed. It grows with the window,
// not with the set.
type Flight struct {
	// Ordinals are the ordinals of the wave.
	Ordinals Slice `json:"ordinals"`
	// From is the side that the ordinals leave.
	From Side `json:"from"`
	// Pods are the pods that the ordinals had on that side.
	Pods []Pod `json:"pods,omitempty"`
	// Volumes are the volumes of the ordinals.
	Volumes []Volume `json:"volumes,omitempty"`
	// NodesGone are the nodes of which the user has vouched that they are gone (--node-gone).
	// All are nodes of the side that the ordinals leave.
	NodesGone []string `json:"nodesGone,omitempty"`
	// NodesGoneThere are those of the side that receives the ordinals: both clusters may name nodes alike.
	NodesGoneThere []string `json:"nodesGoneThere,omitempty"`
	// Seq is the number of the step by which the ordinals leave. One of an earlier leg tells that the plan has turned since.
	Seq int `json:"seq,omitempty"`
	// WaitsThere reports that only a volume that the receiving side has attached keeps the ordinals from it.
	WaitsThere bool `json:"waitsThere,omitempty"`
}

// LeavesBy reports whether it is the flight of the wave of a step, from the side that the wave leaves by this step.
func (f *Flight) LeavesBy(s Step) bool {
	return f != nil && f.Ordinals == s.Ordinals && f.From == s.From
}

// Pod is the pod of an ordinal in flight. An ordinal that had no pod when it was released has none.
type Pod struct {
	// Ordinal is the ordinal of the pod.
	Ordinal int32 `json:"ordinal"`
	// UID is the UID of the pod.
	UID types.UID `json:"uid"`
	// Node is the node of the pod; empty if it had none.
	Node string `json:"node,omitempty"`
	// NodeUID distinguishes the node from another one of the same name.
	NodeUID types.UID `json:"nodeUID,omitempty"`
	// Grace is for how many seconds its containers may run once it is being deleted.
	Grace int64 `json:"grace,omitempty"`
	// Stopped is the evidence that its containers have stopped. It is recorded as soon as it is
	// known: the node that reports it may disappear before its volumes are free.
	Stopped string `json:"stopped,omitempty"`
	// Proof is the evidence that the pod and its volumes are free (Vacate).
	Proof string `json:"proof,omitempty"`
}

// Pod returns the pod of an ordinal, or a Pod with only the ordinal if none is recorded.
func (f *Flight) Pod(ordinal int32) Pod {
	for _, p := range f.Pods {
		if p.Ordinal == ordinal {
			return p
		}
	}
	return Pod{Ordinal: ordinal}
}

// Put records a pod in place of the one recorded for its ordinal.
func (f *Flight) Put(pod Pod) {
	for i := range f.Pods {
		if f.Pods[i].Ordinal == pod.Ordinal {
			f.Pods[i] = pod
			return
		}
	}
	f.Pods = append(f.Pods, pod)
}

// Of returns the volumes of an ordinal, in the order of the claim templates.
func (f *Flight) Of(ordinal int32) []Volume {
	var out []Volume
	for _, v := range f.Volumes {
		if v.Ordinal == ordinal {
			out = append(out, v)
		}
	}
	return out
}

// Volume is one volume of an ordinal. Name is the name of the PersistentVolume object, the same on
// both sides.
type Volume struct {
	// Ordinal is the ordinal that has the volume.
	Ordinal int32 `json:"ordinal"`
	// Template is the name of the claim template of the volume.
	Template string `json:"template"`
	// Claim is the UID of the claim on the side that the ordinal leaves.
	Claim types.UID `json:"claim"`
	// Name is the name of the PersistentVolume, the same on both sides.
	Name string `json:"name"`
	// Handle identifies the disk behind the volume, whatever object names it.
	Handle string `json:"handle"`
}

// Validate returns the reason why the flight cannot be one of the plan.
func (f *Flight) Validate(p *Plan) error {
	o := f.Ordinals
	for _, pod := range f.Pods {
		if !o.Has(pod.Ordinal) || pod.Node != "" && !subdomain(pod.Node) {
			return fmt.Errorf("flight.pods has ordinal %d on node %q, expected one of %s, and the name of a node", pod.Ordinal, pod.Node, o)
		}
	}
	for _, v := range f.Volumes {
		moves := slices.ContainsFunc(p.Claims, func(c ClaimMove) bool { return c.Template == v.Template })
		if !o.Has(v.Ordinal) || !moves || !subdomain(v.Name) || v.Handle == "" {
			return fmt.Errorf("flight.volumes has %q of ordinal %d and template %q, expected volumes of %s with their handles", v.Name, v.Ordinal, v.Template, o)
		}
	}
	return nil
}
