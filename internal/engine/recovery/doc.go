// Package recovery rebuilds the lost journal of a plan from the marks that the plan has left on its objects.
// It writes nothing: the user reviews what was found, and stores it.
package recovery
