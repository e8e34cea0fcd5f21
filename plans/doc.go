// Package plans holds what was promised and what has been done: the Plan, its
// Steps, the Journal, and the contract of a Look. It is pure: it imports API
// types and never a client, a clock or a logger, so that a plan means the same
// wherever it is read. It decides which step comes next and which slice each
// side has before and after it; how a step is carried out is the business of
// the packages storage, pdb and orchestrator.
package plans
