// Package dns lets every pod of a set be found under its old and its new name
// while the set is on two sides (plan mode bridge), or has the clusters' own
// Multi-Cluster Services do it (plan mode mcs: Export).
//
// A headless Service lists the pods of its own namespace only. For the pods of the
// other side, EndpointSlices of our own stand beside those of the control plane, in
// the same Service: a DNS server answers from both. They are derived from the pods
// and nothing else, so nothing about them is in the journal. A Syncer is the only
// writer while a process carries the plan; Remove takes them away once it has
// stopped.
package dns
