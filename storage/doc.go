// Package storage hands the volumes of one ordinal from one side to the other:
// the looks Hold, Vacate, Release, Reserve, Claim and Settle, and the pure
// builders behind them.
//
// It promises that a volume is never without an owner in name (claimRef is
// never empty, S5), that nothing is deleted whose data is not held by the
// reclaim policy Retain, read back live (S4), and that no claim is touched while
// a pod may still use it (S1, S6). It never deletes pods, never removes a
// finalizer that is somebody else's, and never deletes a VolumeAttachment.
package storage
