package check

import "testing"

// While a plan is made, a dry run that the authorizer refused is a warning. For who carries it out, and of what admission
// refuses, it is what it was.
func TestOnlyADraftForgivesWhatCouldNotBeTried(t *testing.T) {
	no := `persistentvolumeclaims is forbidden: User "lou" cannot create resource "persistentvolumeclaims" in API group "" in the namespace "mall"`
	for name, c := range map[string]struct {
		f     Finding
		draft bool
		want  Level
	}{
		"the user may not write":             {Finding{Saw: no, Passing: true}, true, Warn},
		"and carries the plan out":           {Finding{Saw: no, Passing: true}, false, ""},
		"a webhook says so":                  {Finding{Saw: `admission webhook "x" denied the request: lou cannot create resource claims`}, true, ""},
		"the API server is not ready":        {Finding{Saw: "not yet ready to handle request", Passing: true}, true, ""},
		"the user may not read what decides": {Finding{Saw: `User "lou" cannot list resource "pods"`, Passing: true}, true, ""},
	} {
		i := Inspection{Draft: c.draft}
		if got := i.Untried([]Finding{c.f}); got[0].Level != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
