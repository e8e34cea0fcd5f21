// Package plainyaml reads YAML that anybody may have written.
package plainyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// maxBytes limits a document whose aliases are resolved. Thirteen kilobytes of aliases can stand for 300 MB, so that a
// limit on the text would not limit the memory.
const maxBytes = 2 << 20

// ErrAliases is returned for a document whose aliases stand for too much.
var ErrAliases = fmt.Errorf("its YAML aliases (*name) stand for more than %d MiB: write out what is meant", maxBytes>>20)

// ErrDocuments is returned for a text with a second document, which would be ignored.
var ErrDocuments = errors.New("it has more than one YAML document: keep only the first")

// ToJSON returns a document as JSON. It refuses a key that is there twice, aliases that stand for too much, and a second
// document.
func ToJSON(document []byte) (out []byte, err error) {
	err = weight.GuardYAML(document, func() error {
		out, err = toJSON(document)
		return err
	})
	return out, err
}

func toJSON(document []byte) ([]byte, error) {
	if further(document) {
		return nil, ErrDocuments
	}
	if bytes.IndexByte(document, '*') >= 0 && bytes.IndexByte(document, '&') >= 0 { // an alias needs both
		var tree yamlv3.Node
		if err := yamlv3.Unmarshal(document, &tree); err != nil {
			return nil, err
		}
		if (sizes{}).of(&tree) > maxBytes {
			return nil, ErrAliases
		}
	}
	return yaml.YAMLToJSONStrict(document)
}

// further reports whether there is anything in the text after its first document that is not empty.
func further(text []byte) bool {
	all, found := yamlv3.NewDecoder(bytes.NewReader(text)), 0
	for found < 2 {
		var one yamlv3.Node // which follows no alias
		if err := all.Decode(&one); err != nil {
			return !errors.Is(err, io.EOF) && found > 0 // what is wrong with the first document is reported by the parser
		}
		if len(one.Content) > 0 && one.Content[0].Tag != "!!null" {
			found++
		}
	}
	return true
}

// Kind returns the kind of a document, or "".
func Kind(document []byte) (string, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	raw, err := ToJSON(document)
	if err == nil {
		err = json.Unmarshal(raw, &head)
	}
	return head.Kind, err
}

// sizes has the size of each node that an alias refers to, so that each is counted only once however often it is used.
type sizes map[*yamlv3.Node]int

// of returns the bytes that a node stands for, with what its aliases stand for. Of a node that is too large it returns
// just more than maxBytes, and so it does of one that is a part of itself.
func (s sizes) of(n *yamlv3.Node) int {
	if n.Kind == yamlv3.AliasNode {
		size, known := s[n.Alias]
		if !known {
			s[n.Alias] = maxBytes + 1 // what is met again before it is known is a part of itself
			size = s.of(n.Alias)
			s[n.Alias] = size
		}
		return size
	}
	size := len(n.Value) + 16
	for _, child := range n.Content {
		if size += s.of(child); size > maxBytes {
			return maxBytes + 1
		}
	}
	return size
}
