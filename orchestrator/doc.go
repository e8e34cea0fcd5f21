// Package orchestrator carries out the plans of a namespace for as long as the process lives: many at
// once, each in a goroutine of its own and under a Lease of its own, so that several replicas
// share them and take over from one another, and a slow or dead cluster stalls only its
// own plans.
//
//	reconcile.go  decides what is to run now: a function of what is declared, journal, Lease and runs
//	declared.go   takes over from StatefulSetMigrations what people want
//	draft.go      makes the plan of one that has none
//	guard.go      keeps what is under way from being deleted
//	mirror.go     shows where a plan stands
//	run.go        one plan under way, from its clusters to its end
//	events.go     events, conditions and logs
//	metrics.go    metrics, and monitoring.go the dashboard and the alerts about them
//	spans.go      what a plan's trace has, and trace.go sends it
//	start.go      puts it all together
//
// What people want is in StatefulSetMigrations, and what of it was taken over in the journals (plans.Heard): nothing is
// remembered here that a death would lose. The engine and its safety are those of package engine; here is only the
// politeness of who does what.
package orchestrator
