// Package engine executes a plan, from one write to the next. It is the only place where journal
// and clusters meet: it reads the journal, looks at the next step, journals its intent, and sends
// the one write of that look.
//
// The engine sends at most one write to a guarded object per pass. The write is journaled before it is
// sent, is conditional on what was observed, and is judged by the next look alone. The engine deletes
// no pod of a set's range, and it stops, with a reason, at anything it did not expect. Takeover makes a second
// process harmless (TakeOver).
//
// If the process dies, the next process reads the journal, raises its epoch, and
// looks at the same step again.
package engine
