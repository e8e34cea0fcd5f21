// Package report shows what a plan has done: when each ordinal left one side and arrived on the other, how many were
// away at once, and who asked for what. It draws from the timeline of the journal alone and reads no cluster. Nothing
// is decided by it.
//
// report.go gathers the facts, figures.go computes what is drawn of them, axis.go lays out the time, and page.go writes
// the page and its pictures.
package report
