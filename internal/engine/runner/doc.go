// Package runner executes one plan in one process, for a command that a user waits for and for the
// orchestrator alike: it takes the Lease, checks consent, runs the checks, keeps the names answered, writes
// Events, and runs the engine.
//
// It remembers nothing that a crash would lose, and no safety rule depends on it except those of consent:
// what the engine writes is fenced by its epoch.
package runner
