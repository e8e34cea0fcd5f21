// Package access has the rights that a plan needs on each side, the Roles that grant them, and the consent of
// those whose namespaces and volumes a plan of the orchestrator touches.
package access
