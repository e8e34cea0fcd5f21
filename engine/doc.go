// Package engine carries a plan on, from one write to the next. It is the only place where journal and clusters meet: it
// reads the journal, looks at the step that is next, writes its intent down, and sends the one write of that look.
//
// It promises at most one write to a guarded object per pass, journaled before it is sent, conditional on what was seen, and
// judged by the next look alone. It never deletes pods, and it stops, with a reason, at anything it did not expect. Takeover
// makes a second process harmless (TakeOver).
//
// If the process dies, the next one reads the journal, raises its epoch, and looks at the same step again.
package engine
