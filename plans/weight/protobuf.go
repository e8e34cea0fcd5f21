package weight

import (
	"bytes"
	"encoding/binary"
)

// magic begins what Kubernetes writes as protobuf.
const magic = "k8s\x00"

const (
	perNumber = 16 // an element of a list of numbers
	perPacked = 10 // a byte of what may be a list of numbers of one byte each
)

// maxMessages is how deep messages are looked into. No type of Kubernetes that is sent as protobuf is deeper.
const maxMessages = 40

// OfProtobuf returns the weight of an answer in protobuf. Whether bytes are a message or a string is not written in them:
// everything that can be read as a message is taken for one.
func OfProtobuf(raw []byte) int64 {
	return perPacked*int64(len(raw)) + message(raw, 0)
}

// message returns the weight of what bytes stand for as the fields of a message, up to the first mistake.
func message(raw []byte, depth int) (w int64) {
	if depth == maxMessages {
		return 0
	}
	raw = bytes.TrimPrefix(raw, []byte(magic))
	var seen [4]uint64
	for len(raw) > 0 {
		tag, n := binary.Uvarint(raw)
		if n <= 0 || tag>>3 == 0 {
			return w
		}
		raw = raw[n:]
		switch tag & 7 {
		case 0: // a number; a list of numbers may be written one by one
			if _, n = binary.Uvarint(raw); n <= 0 {
				return w
			}
			w += perNumber
		case 1:
			n, w = 8, w+perNumber
		case 2: // a string, a message, or an element of a list of either
			length, m := binary.Uvarint(raw)
			if m <= 0 || length > uint64(len(raw)-m) { //nolint:gosec // m is not above the length of raw
				// A decoder makes room for the element before it sees that it is cut.
				return w + element
			}
			w += field(&seen, tag>>3, depth) + message(raw[m:m+int(length)], depth+1) //nolint:gosec // not above the length of raw
			n = m + int(length)                                                       //nolint:gosec // the same
		case 3, 4: // groups have no length: what is in them follows
			n = 0
		case 5:
			n, w = 4, w+perNumber
		default:
			return w
		}
		if n > len(raw) {
			return w
		}
		raw = raw[n:]
	}
	return w
}

// field returns the weight of a field: of one that was there before in its message, that of an element.
func field(seen *[4]uint64, number uint64, depth int) int64 {
	if number < 256 && seen[number/64]&(1<<(number%64)) == 0 {
		seen[number/64] |= 1 << (number % 64)
		return object
	}
	if depth <= 2 { // the document, what wraps it, and the list
		return item
	}
	return element
}
