package preview

import (
	"maps"
	"slices"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Difference is one field in which two plans differ. A value that a plan does not have is "".
type Difference struct {
	Field string `json:"field"`
	First string `json:"first,omitempty"`
	// Second is the value of the second plan.
	Second string `json:"second,omitempty"`
}

// Diff returns the fields in which two plans differ, in order. It leaves out what differs between any two plans: the ID,
// the hash, and when and by whom they were made.
func Diff(first, second *plans.Plan) ([]Difference, error) {
	a, err := fields(first)
	if err != nil {
		return nil, err
	}
	b, err := fields(second)
	if err != nil {
		return nil, err
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	var out []Difference
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a[name] != b[name] {
			out = append(out, Difference{name, a[name], b[name]})
		}
	}
	return out, nil
}

// fields returns the values of a plan, by their path.
func fields(p *plans.Plan) (map[string]string, error) {
	q := *p
	q.ID, q.Hash, q.Made, q.Read = "", "", nil, nil
	return plans.Fields(&q)
}
