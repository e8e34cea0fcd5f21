// Package pdb keeps the PodDisruptionBudgets of both sides, so that what they allow and what is in flight
// never add up to more than the budget d (S3).
//
// It lowers a budget, and waits until the disruption controller has observed that, BEFORE it raises any
// other. It changes a user's budget only after the journal has its spec. It never adds a second budget over
// pods that have one: the eviction API refuses pods with two.
package pdb
