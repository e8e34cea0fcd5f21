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
	// Attaching is from the write that adds it to the other set to the start of its containers: it is
	// scheduled, and its volumes are attached.
	Attaching Span = "attach"
	// Starting lasts until the pod is available there.
	Starting Span = "ready"
)

// Spans returns all spans in their order.
func Spans() []Span { return []Span{Terminating, Detaching, HandingOver, Attaching, Starting} }
