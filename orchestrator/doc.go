// Package orchestrator carries out the plans of a namespace for as long as the process lives. It runs
// many at once, each in its own goroutine and under its own Lease. Several replicas can therefore share
// the plans and take over from one another, and a slow or dead cluster stalls only its own plans.
//
//	memory.go     what a process remembers of each plan, and how it forgets it
//	kept.go       what a process keeps in memory of its namespace, and what it reads again
//	closed.go     what it does about plans that are over: nearly nothing
//	reconcile.go  decides what to run now: a function of declaration, journal, Lease and runs
//	declared.go   records in the journal what StatefulSetMigrations declare
//	draft.go      makes the plan of a StatefulSetMigration that has none
//	guard.go      keeps the objects of a plan under way from being deleted
//	mirror.go     writes the status of a StatefulSetMigration
//	requested.go  which plans objects of other namespaces request, and for whom these speak
//	notices.go    has the changes of states sent to a receiver (package notify), by one process of several
//	page.go       serves the page of all plans (package dashboard) to users who may list them
//	room.go       decides who gets the room of the process: a function of one moment, and maxplans.go does it
//	run.go        one plan under way, from its clusters to its end
//	events.go     events, conditions and logs
//	metrics.go    metrics; package monitoring has the alerts about them, and the dashboard
//	spans.go      the spans of a plan's trace, and trace.go sends them
//	pulse.go      reports whether the process works, for the kubelet
//	start.go      assembles and starts the process
//
// StatefulSetMigrations hold what users declare, and the journals hold which part of it was taken over
// (plans.Observed). This package keeps no state that the death of a process would lose. Package engine
// moves the ordinals and keeps the safety rules. This package only divides the plans among processes.
package orchestrator
