// Package storage hands the volumes of one ordinal from one side to the other. It contains the looks Protect,
// Vacate, Release, Reserve, Claim and Settle, and the pure builders behind them. How a volume gets from one side to the
// other is said by its mode (handover): rebind, reimport, or not at all.
//
// It guarantees that a volume always names its owner (claimRef is never empty, S5). It deletes nothing unless
// a live read shows that the reclaim policy Retain protects the data (S4). It touches no claim while a pod
// may still use it (S1, S6). It deletes no pods, never removes the finalizer of another writer, and never
// deletes a VolumeAttachment.
package storage
