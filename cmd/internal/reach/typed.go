package reach

import "github.com/stsmigrate/stsmigrate/plans"

// Typed connects to the cluster of the plain flags, and returns the set that the user has typed.
func (r *Flags) Typed(typed string) (*End, plans.Ref, error) {
	word, name := plans.SetOf(typed)
	kind, err := plans.KindOf(word)
	if err != nil {
		return nil, plans.Ref{}, err
	}
	at, err := r.Single()
	if err != nil {
		return nil, plans.Ref{}, err
	}
	return at, plans.Ref{Namespace: at.Namespace, Name: name, Kind: kind}, nil
}
