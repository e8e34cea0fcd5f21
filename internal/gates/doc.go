// Package gates queries the application before an ordinal leaves (step Quiesce) and after it has arrived
// (step Verify). The plan's gates define the query: a command in a pod, a request to a pod, or a Job.
//
// A command or a request leaves no state that could be read afterwards, and may change something. So it is
// treated as a write: its intent is in the journal before it is sent, a process that has been replaced does
// not send it, and the next look uses its result. The results are lost with the process; then the query is
// repeated. What is answered before an ordinal leaves counts for a short time and for the process that has asked
// (age.go, S19). After an ordinal has arrived a Job keeps its own result, and is deleted once the journal has recorded it.
package gates
