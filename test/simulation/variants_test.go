package simulation

import (
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// apart returns options with which the budgets are open between any two waves.
func apart(sc options) options {
	sc.Without = []engine.Acceleration{engine.SkipRelax}
	return sc
}

// shapes returns the options in which every write is tried with every fault: ordinal by ordinal, in waves, and
// with gates, in both modes.
func shapes() map[string]options {
	out := map[string]options{}
	for _, mode := range modes() {
		out[string(mode)] = threeOrdinals(mode)
		out[string(mode)+", in waves"] = inWaves(mode)
		out[string(mode)+", with gates"] = withGates(threeOrdinals(mode))
	}
	return out
}

// whole reports whether everything is tried in a shape. In the others a part is, unless the long runs are
// requested.
func whole(shape string) bool { return slices.Contains(modes(), plans.Mode(shape)) }

// variants returns the options that a migration must be able to start from, in both modes.
func variants() map[string]options {
	changes := map[string]func(*options){
		"plain":               func(*options) {},
		"no claim templates":  func(s *options) { s.Templates = nil },
		"two claim templates": func(s *options) { s.Templates = []string{"data", "log"} },
		"start ordinal 3":     func(s *options) { s.Start = 3 },
		"one ordinal":         func(s *options) { s.Ordinals = 1 },
		"d of 2": func(s *options) {
			s.Ordinals, s.D, s.Budget = 5, 2, maxUnavailable(intstr.FromInt32(2))
		},
		"window of 2": func(s *options) {
			s.Ordinals, s.D, s.Window, s.Budget = 5, 2, 2, maxUnavailable(intstr.FromInt32(2))
		},
		"window of 2 of d 3": func(s *options) {
			s.Ordinals, s.D, s.Window, s.Budget, s.Parallel = 5, 3, 2, maxUnavailable(intstr.FromInt32(3)), true
		},
		"window of 3, percentage": func(s *options) {
			s.Ordinals, s.D, s.Window, s.Start, s.Templates = 7, 3, 3, 2, []string{"data", "log"}
			s.Budget = maxUnavailable(intstr.FromString("40%"))
		},
		"window wider than the set": func(s *options) {
			s.Ordinals, s.D, s.Window, s.Budget = 2, 3, 3, maxUnavailable(intstr.FromInt32(3))
		},
		"percentage": func(s *options) { s.Budget = maxUnavailable(intstr.FromString("34%")); s.D = 2 },
		"minAvailable percentage": func(s *options) {
			v := intstr.FromString("50%")
			s.Ordinals, s.Budget = 4, &policyv1.PodDisruptionBudgetSpec{MinAvailable: &v}
			s.D = 2
		},
		"no budget":                func(s *options) { s.Budget = nil },
		"existing destination":     func(s *options) { s.Existing = true },
		"existing, without budget": func(s *options) { s.Existing, s.Budget = true, nil },
		"parallel":                 func(s *options) { s.Parallel = true; s.Templates = []string{"data", "log"} },
		"minReadySeconds":          func(s *options) { s.MinReady = 10 },
		"retention policy Delete":  func(s *options) { s.Delete = true },
	}
	out := map[string]options{}
	for name, change := range changes {
		for _, mode := range modes() {
			sc := threeOrdinals(mode)
			change(&sc)
			out[name+", "+string(mode)] = sc
		}
	}
	return out
}
