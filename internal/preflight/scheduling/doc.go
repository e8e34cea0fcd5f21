// Package scheduling answers for pods that come one after the other what kube-scheduler would: does each get a node,
// whichever of the nodes open to it the scheduler chooses for those before? It is pure: the caller brings what there is in
// the cluster. It knows the scheduler's default filters. Each says no to a node, and none compares nodes: which of those
// that are left is taken is a choice, so all are tried.
package scheduling
