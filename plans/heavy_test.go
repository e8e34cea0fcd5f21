package plans_test

import (
	"errors"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// A record of less than 900 KiB may stand for hundreds of megabytes. It is refused before it is decoded.
func TestARecordThatIsTooHeavyIsNotDecoded(t *testing.T) {
	const length, head = 899 << 10, `{"apiVersion":"stsmigrate.dev/v1alpha1","kind":"Plan",`
	for name, raw := range map[string]string{
		"containers":      head + `"gates":[{"job":{"template":{"spec":{"containers":[` + strings.Repeat("{},", length/3) + "{}]}}}}]}",
		"gates":           head + `"gates":[` + strings.Repeat("{},", length/3) + "{}]}",
		"nulls in YAML":   "kind: Plan\ngates: [" + strings.Repeat("~,", length/2) + "~]",
		"objects in YAML": "kind: Plan\ngates: [" + strings.Repeat("{},", length/3) + "{}]",
		"depth":           head + `"gates":` + strings.Repeat("[", length),
	} {
		s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(s)
		before := s[0].Value.Uint64()
		_, err := plans.DecodePlan([]byte(raw))
		_, declared := plans.DecodeDeclaration([]byte(raw))
		metrics.Read(s)
		if !errors.As(err, new(weight.ErrTooHeavy)) && !errors.Is(err, weight.ErrTooDeep) || declared == nil {
			t.Errorf("%s: %.200v; %.200v", name, err, declared)
		}
		if took := (s[0].Value.Uint64() - before) >> 20; took > 60 {
			t.Errorf("%s: %d MiB were allocated", name, took)
		}
	}
}
