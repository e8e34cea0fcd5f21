// Package fleet knows the clusters that an orchestrator reaches: its own, and those whose
// kubeconfigs are in Secrets of its namespace.
//
//	sanitize.go  what a kubeconfig must not contain when a program uses it for others
//	strict.go    what it must not contain because nobody would read it
//	secrets.go   which Secrets hold clusters, and under which names
//	wire.go      where connections go, and with which credentials
//	answers.go   what is believed of an answer
//	lanes.go     the limit on requests to one cluster, and which are sent first
//	fleet.go     connections, made when they are asked for and again when a Secret changes
//
// No error and no log line has anything from inside a Secret but names.
package fleet
