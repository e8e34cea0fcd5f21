// Package engine executes a plan, from one write to the next. It is the only place where journal
// and clusters meet: it reads the journal, looks at the next step, journals its intent, and sends
// the writes of that look.
//
// A pass sends the writes of one look, and at most one that prepares the next wave. A write is journaled before it is
// sent, is conditional on what was observed, and is judged by the next look alone. The engine deletes
// no pod of a set's range, and it stops, with a reason, at anything it did not expect. Takeover makes a second
// process harmless (TakeOver).
//
// If the process dies, the next process reads the journal, raises its epoch, and
// looks at the same step again.
package engine
