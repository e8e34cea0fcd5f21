// Package pdb keeps the PodDisruptionBudgets of both sides, so that what they
// allow and what is in flight never add up to more than the budget d (S3).
//
// It promises that a budget is lowered, and seen to be lowered by the disruption
// controller, BEFORE any other is raised, and that a user's budget is changed
// only after its spec is journaled. It never adds a second budget over pods that
// have one: the eviction API refuses pods with two.
package pdb
