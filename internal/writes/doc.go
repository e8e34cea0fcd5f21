// Package writes changes objects of a cluster and preserves the fields that this program does not know.
//
// An object that was read into Go types has only the fields of these types. Sent back whole, it would
// remove the fields that a newer API server stores in it. So a change is sent as the difference from
// the object as it was read, and is bound to exactly that version of it (S8, S9).
package writes
