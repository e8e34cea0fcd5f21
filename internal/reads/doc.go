// Package reads makes the freshness of a read a type.
//
// The answers of an API server are kept for a moment, and most looks may decide on a kept one: their write is conditional
// on the object as it was read. What cannot be undone, and depends on an object that its write is not conditional on, needs
// an answer of this moment. Such a write takes a Seen, and nothing but a read by Live returns one: to forget the read does
// not compile.
package reads
