// Package access says who may do what: the rights that a plan needs on each side and the Roles that give them, and the
// consent of those whose namespaces and volumes a plan of the orchestrator touches.
package access
