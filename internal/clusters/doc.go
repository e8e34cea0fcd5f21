// Package clusters accesses the two sides of a plan. It has the live clients, which translate to the
// kind of the set (a StatefulSetSlice looks like a StatefulSet), the cache of the reads of one look, the
// watches that wake whatever waits for a change, and the priority of requests.
//
// Reads decide and watches wake: no decision depends on the content of a watch event.
package clusters
