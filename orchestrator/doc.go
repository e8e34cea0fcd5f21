// Package orchestrator carries a plan out. It holds the engine, the only place
// where journal and clusters meet; the looks Shrink and Grow that resize the two
// sets, and Freeze, Retire and Thaw around them; the checks before the first
// write; the store of plan and journal in ConfigMaps; and the takeover that makes
// a second process harmless.
//
// It promises at most one write to a guarded object per pass, journaled before
// it is sent, conditional on what was seen, and judged by the next look alone. It
// never deletes pods, and it stops, with a reason, at anything it did not expect.
package orchestrator
