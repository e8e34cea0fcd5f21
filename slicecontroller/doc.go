// Package slicecontroller reconciles StatefulSetSlices and StatefulSets: it brings their pods and
// claims to the state that their specs describe. Its package core decides what to do. This
// package connects core to a cluster:
//
//	kinds.go     what the kinds of sets have in common, and in what they differ
//	world.go     the read of a set from the cache
//	effects.go   the writes, each conditional and recorded in the ledger
//	ledger.go    our own writes that the cache does not have yet: nothing is decided before (SC-4)
//	wake.go      which sets an event concerns
//	slim.go      what the cache keeps of pods of other controllers
//	template.go  the pod template as it is stored, or the last usable one
//	reconcile.go one pass
//	guard.go     the search for another controller at work
//	version.go   whether this release knows the version of the API server
//	run.go       puts everything together
//
// It does not know plans, moves or other clusters. If a process dies at any point, the next process reads
// the state of the cluster and continues. Two processes at once do no harm, since every write names the
// version or the UID of its object (SC-6).
package slicecontroller
