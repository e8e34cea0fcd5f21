// Package core is the StatefulSet controller without a cluster: the observed state of one set comes in as a
// World, and writes go out through Effects, one call per effect. It imports nothing but the API's types, so
// that every rule can be shown in a test without a server.
//
// One Sync is one pass, in the order of sync.go:
//
//	the spec          can it be acted on? (invalid.go)
//	revisions, pods   which of them belong to the set? (adopt.go)
//	revisions         which one is wanted, which one is current? (revisions.go)
//	claims            remove the owner from those that must be kept (keep.go)
//	living pods       create what is missing, ascending (scale.go)
//	condemned pods    delete what is outside the range, descending (scale.go)
//	update            delete what is of an old revision, descending (update.go)
//	status, history   written also when a pass has failed (status.go)
//
// No state is kept in memory between two passes: a process that dies anywhere leaves a world from which the
// next pass continues. The conclusions that a pass draws from the world are in set.go, pods.go and
// claims.go, which have no Effects in them.
//
// Rules have the names of the controller's specification (OR-1, MU-4 and so on).
package core
