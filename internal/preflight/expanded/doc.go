// Package expanded has the checks of what the namespace, the cluster, admission and the names make of a pod: it is expanded
// for both sides, and they ask for the difference.
package expanded
