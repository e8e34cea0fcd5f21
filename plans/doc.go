// Package plans holds the Plan, its Steps, the Journal and the contract of a Look: the promise, and the
// record of the work done. It is pure: it imports API types and never a client, a clock or a logger, so that
// a plan means the same wherever it is read. It decides which step is next, and which slice each side has
// before and after it. The packages storage, pdb and orchestrator carry the steps out.
package plans
