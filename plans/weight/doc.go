// Package weight says how much memory a document becomes at most when it is decoded, before it is decoded. Three bytes of
// JSON can stand for a container of 900 bytes: a limit on the length of what strangers write is no limit on memory.
//
// A weight is in bytes. It is more than any decoder needs, by what the elements of lists, the objects and the keys of the
// types of Kubernetes take (TestNothingIsHeavierThanItsWeight holds it against the decoders).
package weight
