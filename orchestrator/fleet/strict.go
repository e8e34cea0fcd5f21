package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	yamlv3 "go.yaml.in/yaml/v3"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	kjson "sigs.k8s.io/json"

	"github.com/stsmigrate/stsmigrate/plans/plainyaml"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

var errUnreadable = errors.New("it cannot be read as a kubeconfig") // the errors of parsers quote their input

// strict refuses what a lenient parser would drop: a duplicate key, an unknown or misspelled key, and a
// second document. The author would believe that these have an effect.
func strict(kubeconfig []byte) error {
	if w := weight.OfYAML(kubeconfig); w > maxWeight {
		return weight.ErrTooHeavy{Weight: w, Most: maxWeight}
	}
	documents := yamlv3.NewDecoder(bytes.NewReader(kubeconfig))
	var first, second yamlv3.Node
	if err := documents.Decode(&first); err != nil {
		return errUnreadable
	}
	if err := documents.Decode(&second); !errors.Is(err, io.EOF) {
		return plainyaml.ErrDocuments
	}
	if key := twice(&first); key != "" {
		return fmt.Errorf("%s is there twice", named(key))
	}
	raw, err := plainyaml.ToJSON(kubeconfig)
	switch {
	case errors.Is(err, plainyaml.ErrAliases):
		return err
	case err != nil:
		return errUnreadable
	}
	wrong, err := kjson.UnmarshalStrict(raw, &clientcmdv1.Config{})
	if err != nil {
		return errUnreadable
	}
	return unknown(wrong)
}

// maxWeight is what a kubeconfig of some thousand lines becomes.
const maxWeight = 8 << 20

// twice returns a key that occurs twice in one mapping, or "".
func twice(n *yamlv3.Node) string {
	seen := map[string]bool{}
	for k, child := range n.Content {
		if n.Kind == yamlv3.MappingNode && k%2 == 0 {
			if seen[child.Value] {
				return child.Value
			}
			seen[child.Value] = true
		}
		if key := twice(child); key != "" {
			return key
		}
	}
	return ""
}

// unknownField matches the strict parser's error about a key.
var unknownField = regexp.MustCompile(`^(?:unknown|duplicate) field "(.*)"$`)

// unknown returns an error that names the first unknown or duplicate key.
func unknown(wrong []error) error {
	if len(wrong) == 0 {
		return nil
	}
	key := ""
	if m := unknownField.FindStringSubmatch(wrong[0].Error()); m != nil {
		key = m[1]
	}
	return fmt.Errorf("%s means nothing there: correct its spelling, or leave it out", named(key))
}

// keyLike matches only what is certainly a key, and not a value in the wrong place.
var keyLike = regexp.MustCompile(`^[A-Za-z][A-Za-z-]*(\[[0-9]+\])?(\.[A-Za-z][A-Za-z-]*(\[[0-9]+\])?)*$`)

func named(key string) string {
	if len(key) > 100 || !keyLike.MatchString(key) {
		return "a key"
	}
	return fmt.Sprintf("the key %q", key)
}
