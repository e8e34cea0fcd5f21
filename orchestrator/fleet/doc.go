// Package fleet manages the clusters that an orchestrator reaches: its own one, and those whose
// kubeconfigs are in Secrets of its namespace.
//
//	sanitize.go  what a kubeconfig must not contain when a program uses it on behalf of others
//	strict.go    what it must not contain because no parser would read it
//	secrets.go   which Secrets hold clusters, and under which names
//	wire.go      where connections go, and with which credentials
//	answers.go   which parts of a response are trusted
//	breaker.go   whether a cluster answers, asked once for all
//	lanes.go     the limit on requests to one cluster, and which are sent first
//	fleet.go     connections, made on demand and renewed when a Secret changes
//
// Errors and log lines contain nothing from inside a Secret but names.
package fleet
