// Package core is the StatefulSet controller without a cluster: what is seen of one
// set comes in as a World, what is to be done goes out through Effects, one call per
// effect. It imports nothing but the API's types, so that every rule can be shown in a
// test without a server.
//
// One Sync is one pass, in the order of sync.go:
//
//	the spec          can anything be made of it? (invalid.go)
//	revisions, pods   whose are they? (adopt.go)
//	revisions         which one is wanted, which one was? (revisions.go)
//	claims            take the owner off those that are to be kept (keep.go)
//	living pods       create what is missing, ascending (scale.go)
//	condemned pods    delete what is outside the range, descending (scale.go)
//	update            delete what is of an old revision, descending (update.go)
//	status, history   written also when a pass has failed (status.go)
//
// Nothing is remembered between two passes: a process that dies anywhere leaves a
// world from which the next pass goes on. What the passes may conclude is in the files
// set.go, pods.go and claims.go, which have no Effects in them.
//
// Rules are named as in the specification of the controller (OR-1, MU-4 and so on).
package core
