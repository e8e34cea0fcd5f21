// Package recovery makes the journal of a plan anew when it is lost, from the marks that the plan has left on its objects. It
// writes nothing: a person reads what was found, and stores it.
package recovery
