// Package clusters is how the two sides of a plan are talked to: live clients in the words of the plan (a StatefulSetSlice
// looks like a StatefulSet), the reads of one look that are made once, the watches that wake whoever waits for what was read,
// and which requests go first.
//
// Reads decide and watches wake: nothing is decided by what a watch has told.
package clusters
