// Package writes changes objects of a cluster without losing what this program does not know of them.
//
// An object that was read into Go types has only the fields that these types have. Sent back whole, it
// takes from the cluster what a newer API server keeps in it. So a change is sent as the difference to the
// object as it was read, and bound to the very version of it that was read (S8, S9).
package writes
