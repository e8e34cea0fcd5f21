// Package clusters accesses the two sides of a plan. It has the live clients, which translate to the
// kind of the set (a StatefulSetSlice looks like a StatefulSet), the cache of the reads of one look, the
// watches that wake whatever waits for a change, and the priority of requests.
//
// Reads decide and watches wake. What a watch has reported may answer a read (Watching), on terms that leave a late,
// silent or restored watch without a say: stored.go has them. What cannot be undone is decided on a read by package reads.
package clusters
