// Package volumes has the checks of claims and volumes: whether they can be moved, would be accepted on the other side, and
// outlive what they leave behind.
package volumes
