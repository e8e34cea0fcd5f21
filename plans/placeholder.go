package plans

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// Proof is how much must be proven of the place of an ordinal on the side that receives it, before the ordinal leaves.
type Proof string

// What is proven by a placeholder: a pod that takes the place of the ordinal.
const (
	// NoProof makes no placeholder: what the checks say must do.
	NoProof Proof = "off"
	// Scheduled has the scheduler put the placeholder on a node: quotas, the admission chain and a node have said yes.
	Scheduled Proof = "schedule"
	// Chosen has one of the others chosen when the plan is made, as if nothing were said. No plan has it.
	Chosen Proof = "auto"
	// Warm also has its images pulled, and its ConfigMaps, Secrets and other volumes mounted, on that node.
	Warm Proof = "warm"
)

// UnmarshalJSON implements json.Unmarshaler. A user who writes off without quotes has said false, as YAML reads it.
func (p *Proof) UnmarshalJSON(raw []byte) error {
	if string(raw) == "false" {
		*p = NoProof
		return nil
	}
	return json.Unmarshal(raw, (*string)(p))
}

// Placeholder is how the places of ordinals are taken before they leave.
type Placeholder struct {
	// Proof is off, schedule or warm. A Migration may also have auto, or none, which is the same; a plan without one takes no places.
	Proof Proof `json:"proof,omitempty"`
	// Why, with a proof that was chosen and not given, is why it is this one.
	Why string `json:"why,omitempty"`
	// Image has the program that its containers run, which waits. Without one, or with none, they are told to run what no
	// image has.
	Image string `json:"image,omitempty"`
	// PriorityClass is a class below all others, by which whatever needs the room may take it.
	PriorityClass string `json:"priorityClass,omitempty"`
	// Reach lists what must be reached from the place of an ordinal before it leaves: HOST:PORT, or peers, or peers:PORT.
	Reach []string `json:"reach,omitempty"`
}

// Open reports whether a user leaves open how places are taken. A plan never does: one without a word takes none, as those
// that were stored before there was a choice.
func (p Placeholder) Open() bool { return p.Proof == "" || p.Proof == Chosen }

// Used reports whether placeholders are made.
func (p Placeholder) Used() bool { return p.Proof == Scheduled || p.Proof == Warm }

// Anchored reports whether the pods of the ordinals are drawn to the nodes of their placeholders, since what is there is worth
// it.
func (p Placeholder) Anchored() bool { return p.Proof == Warm }

// Anchor returns the name of the pod that draws an ordinal to the node of its placeholder.
func Anchor(p *Plan, side Side, ordinal int32) string { return p.Pod(side, ordinal) + "-anchor" }

// Proven says what is proven of the place of an ordinal before it leaves, or "".
func (p Placeholder) Proven() string {
	switch p.Proof {
	case Scheduled:
		return "a node"
	case Warm:
		return "a node, images pulled, volumes mounted"
	case NoProof, Chosen:
	}
	return ""
}

// Placed is the place of an ordinal that has left, or leaves, as its placeholder had taken it. It is only reported.
type Placed struct {
	// Ordinal is the number of the ordinal.
	Ordinal int32 `json:"ordinal"`
	// Node is the node on which the place was taken.
	Node string `json:"node"`
	// Seconds is how long it took from the creation of the placeholder until it had proven its place; 0 if that is not known.
	Seconds float64 `json:"seconds,omitempty"`
	// Reached says how much of what was asked from there was reached, such as "3 of 3"; empty if nothing was asked.
	Reached string `json:"reached,omitempty"`
	// Clock says how far the clock of the node is off that of its API server; empty if no difference was seen.
	Clock string `json:"clock,omitempty"`
}

// Seen says in words what was seen from the place.
func (p Placed) Seen() string {
	if p.Reached == "" {
		return p.Clock
	}
	return strings.TrimSuffix("reached "+p.Reached+"; "+p.Clock, "; ")
}

// said returns it as a user says it.
func (p Placeholder) said() Placeholder {
	p.Why = ""
	return p
}

// plain reports whether nothing is said of the pods that are made.
func (p Placeholder) plain() bool { return p.Image == "" && p.PriorityClass == "" && len(p.Reach) == 0 }

// NoImage is the image of a placeholder whose containers get no program.
const NoImage = "none"

// Program returns the image with the waiting program, or "".
func (p Placeholder) Program() string {
	if p.Image == NoImage {
		return ""
	}
	return p.Image
}

// Or returns it with an image for one that is not named.
func (p Placeholder) Or(image string) Placeholder {
	if p.Proof != NoProof && p.Image == "" {
		p.Image = image
	}
	return p
}

// asks reports whether a plan with the other one is what is asked for. An image that is not named may be any.
func (p Placeholder) asks(is Placeholder) bool {
	switch {
	case p.Proof == NoProof:
		return !is.Used()
	case p.Open() && !is.Used():
		return len(p.Reach) == 0
	case p.Open():
		p.Proof = is.Proof
	}
	return reflect.DeepEqual(p.Or(is.Image).said(), is.said())
}

// Misfit returns what is wrong with it, or "".
func (p Placeholder) Misfit() string {
	switch {
	case p.Proof != "" && p.Proof != NoProof && p.Proof != Chosen && !p.Used():
		return fmt.Sprintf("proof is %.20q, expected off, schedule, warm or auto", p.Proof)
	case p.Proof == NoProof && !p.plain():
		return "image, priorityClass and reach belong to a placeholder, and proof is off: none is made"
	case len(p.Image) > 512 || strings.ContainsFunc(p.Image, func(r rune) bool { return r <= ' ' || unicode.IsControl(r) }):
		return fmt.Sprintf("image is %.60q, expected the name of an image", p.Image)
	case p.PriorityClass != "" && !subdomain(p.PriorityClass):
		return fmt.Sprintf("priorityClass is %.60q, expected the name of a PriorityClass", p.PriorityClass)
	}
	return p.reachMisfit()
}

// refuse returns the reason why no plan has them.
func (p Placeholder) refuse() error {
	if p.Proof == Chosen {
		return errors.New("placeholder: proof is auto, expected what was chosen: off, schedule or warm")
	}
	if p.Proof == "" && !p.plain() {
		return errors.New("placeholder: proof is empty, so that none is made, and image, priorityClass and reach are about one: expected schedule or warm")
	}
	if why := p.Misfit(); why != "" {
		return errors.New("placeholder: " + why)
	}
	return nil
}

// PlaceholderLabel on a placeholder holds the name of its plan.
const PlaceholderLabel = "stsmigrate.dev/placeholder"
