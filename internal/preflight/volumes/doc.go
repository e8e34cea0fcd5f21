// Package volumes has the checks of claims and volumes: whether they can be moved, are accepted on the other
// side, and outlive the cluster or namespace that they leave.
package volumes
