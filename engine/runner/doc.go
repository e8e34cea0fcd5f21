// Package runner carries one plan out in one process, for a command that a person waits for and for the orchestrator alike:
// it takes the Lease, asks for consent and checks, keeps the names answered, tells Events, and lets the engine run.
//
// Nothing here is remembered that a death would lose, and no rule of safety rests on it but those of consent: what the engine
// writes is fenced by its epoch.
package runner
