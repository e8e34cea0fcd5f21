// Package dns keeps every pod of a set resolvable under its old and its new name while the set is on two
// sides (plan mode bridge). In plan mode mcs, the clusters' own Multi-Cluster Services do it (Export).
//
// A headless Service lists only the pods of its own namespace. For the pods of the other side, this package
// adds EndpointSlices to the same Service, beside those of the control plane: a DNS server answers from both.
// They are derived from the pods and nothing else, so the journal records nothing about them. A Syncer is the
// only writer while a process runs the plan. Remove deletes the slices once the Syncer has stopped.
package dns
