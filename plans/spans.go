package plans

// Span is a part of the time for which an ordinal is on neither side.
type Span string

// The spans, in their order.
const (
	// Terminating is from the write that removes the ordinal from one set to the end of its pod.
	Terminating Span = "terminate"
	// Detaching lasts until the node and the storage have released its volumes.
	Detaching Span = "detach"
	// HandingOver lasts until its claims are bound on the other side.
	HandingOver Span = "handOver"
	// Attaching is from the write that adds it to the other set to the start of its containers: it is created and
	// scheduled, its volumes are attached, and its images are pulled.
	Attaching Span = "attach"
	// Starting lasts until the pod is available there.
	Starting Span = "ready"
	// Unattended is the time in which no process carried the wave on: its user had stopped it, or it was gone. It is part
	// of no other span, and may lie within any of them.
	Unattended Span = "unattended"
)

// AllSpans returns the spans, and last the time in which no process carried the wave on.
func AllSpans() []Span { return append(Spans(), Unattended) }

// Spans returns the spans of a wave that is carried on, in their order.
func Spans() []Span { return []Span{Terminating, Detaching, HandingOver, Attaching, Starting} }
