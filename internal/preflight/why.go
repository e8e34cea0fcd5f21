package preflight

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:embed why.yaml
var whys []byte

// Why is the reason for a check.
type Why struct {
	Why string `json:"why"`
	// More is the page that says more, or "".
	More string `json:"more,omitempty"`
}

// Whys returns the reason for every check, by its name.
func Whys() (map[string]Why, error) {
	out := map[string]Why{}
	if err := yaml.UnmarshalStrict(whys, &out); err != nil {
		return nil, fmt.Errorf("why.yaml: %w", err)
	}
	return out, nil
}
