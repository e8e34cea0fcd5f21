// Package gates asks the application before an ordinal leaves (step Quiesce) and
// once it has arrived (step Verify), with what the plan's gates say: a command in a
// pod, a request to a pod, or a Job.
//
// A command or a request leaves nothing behind that could be read, and may change
// something. So it is treated as a write: its intent is in the journal before it is
// sent, a process that has been replaced does not send it, and its answer is what
// the next look knows. What is known is gone with the process: then it is asked
// again. A Job says itself how it went, and is deleted once the journal says so too.
package gates
