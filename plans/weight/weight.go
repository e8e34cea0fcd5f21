package weight

import "errors"

// What a part of a document becomes at most. Lists grow by copying, so that an element takes more than its own size. The
// items of a list are the largest: whole objects.
const (
	item    = 5120 // an element of a list right in the document
	element = 1536 // an element of any other list
	object  = 512  // an object within another one, which may be behind a pointer
	key     = 300  // a field, or a key of a map, its string and its value
	line    = 512  // what the tree of a YAML document has of one of its values
	perByte = 2    // the text itself, and what is copied of it
)

// maxDepth is how deep a document may be nested. Decoders call themselves for each level.
const maxDepth = 500

// ErrTooDeep is returned for a document that is nested deeper than anything of Kubernetes.
var ErrTooDeep = errors.New("it is nested deeper than 500 levels")

// JSON weighs a JSON document in pieces as they arrive, or a stream of such documents. It needs no valid one: decoders
// allocate until they find the mistake.
type JSON struct {
	// Weight is that of what was added since the last Reset, in bytes.
	Weight int64
	// Err is ErrTooDeep from the first level on that is too deep.
	Err error

	lists           []bool // of each level that is open: whether it is a list
	quoted, escaped bool
}

// Reset begins a new document.
func (j *JSON) Reset() { *j = JSON{lists: j.lists[:0]} }

// Add weighs the next piece.
func (j *JSON) Add(piece []byte) {
	j.Weight += perByte * int64(len(piece))
	for _, c := range piece {
		switch {
		case j.escaped:
			j.escaped = false
		case j.quoted:
			j.escaped, j.quoted = c == '\\', c != '"'
		default:
			j.add(c)
		}
	}
}

// add weighs a byte outside of strings.
func (j *JSON) add(c byte) {
	switch c {
	case '"':
		j.quoted = true
	case '[', '{':
		if c == '{' {
			j.Weight += object
		}
		if len(j.lists) == maxDepth {
			j.Err = ErrTooDeep
			return
		}
		if j.lists = append(j.lists, c == '['); c == '[' {
			j.Weight += j.each()
		}
	case ']', '}':
		if len(j.lists) > 0 {
			j.lists = j.lists[:len(j.lists)-1]
		}
	case ',':
		if n := len(j.lists); n > 0 && j.lists[n-1] {
			j.Weight += j.each()
		}
	case ':':
		j.Weight += key
	}
}

// each returns the weight of an element of the list that is open.
func (j *JSON) each() int64 {
	if len(j.lists) <= 2 {
		return item
	}
	return element
}

// OfJSON returns the weight of a JSON document.
func OfJSON(raw []byte) (int64, error) {
	var j JSON
	j.Add(raw)
	return j.Weight, j.Err
}

// OfYAML returns the weight of the tree that a YAML document becomes before it is converted to JSON. Aliases are counted as
// they are written.
func OfYAML(raw []byte) int64 {
	w := perByte * int64(len(raw))
	for k, c := range raw {
		switch c {
		case ',', '[', '{', '\n':
			w += line
		case ':', '-', '?':
			if k+1 == len(raw) || raw[k+1] == ' ' || raw[k+1] == '\t' || raw[k+1] == '\n' || raw[k+1] == '\r' {
				w += line
			}
		}
	}
	return w
}
