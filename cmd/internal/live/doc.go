// Package live shows a plan while it is carried out: as a view that is drawn again and again on a terminal, and as one
// line per event elsewhere.
//
// It decides nothing about the plan. A failure to show something never stops a plan.
package live
