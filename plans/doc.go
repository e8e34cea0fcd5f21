// Package plans holds the Plan, its Steps and the contract of a Look. It is pure: it imports API types and never a
// client, a clock or a logger, so that a plan means the same wherever it is read. It decides which step is next, and
// which slice each side has before and after it. Package build makes plans, package journal keeps the record of the
// work done, and the packages sets, storage, pdb, gates and dns carry the steps out.
package plans
