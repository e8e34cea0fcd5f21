// Package slicecontroller keeps the pods and claims of StatefulSets as their specs say.
// What is to be done is decided by its package core; this one connects it to a cluster:
//
//	kinds.go     what the kinds of sets have in common, and in what they differ
//	world.go     what is seen of a set, from the cache
//	effects.go   what is written, each write conditional and noted in the ledger
//	ledger.go    our own writes that the cache does not have yet: nothing is decided before (SC-4)
//	wake.go      which sets an event is about
//	slim.go      what the cache keeps of pods of others
//	template.go  the pod template as it is stored, or the last one that could be used
//	reconcile.go one pass
//	guard.go     finds out whether another controller is at work
//	version.go   whether the API server is one that this release knows
//	run.go       puts it all together
//
// It knows nothing of plans, moves or other clusters. A process that dies anywhere is
// followed by one that sees what is there and goes on; two at once harm nothing, since
// every write names the version or the UID that it is about (SC-6).
package slicecontroller
