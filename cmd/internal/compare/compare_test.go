package compare

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// diff runs the command on plans that are files here.
func diff(t *testing.T, files map[string]*plans.Plan, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := Command(&out, func(file string) ([]byte, error) {
		p, ok := files[file]
		if !ok {
			return nil, errors.New("no such file")
		}
		p.APIVersion, p.Kind, p.Budget = plans.APIVersion, plans.PlanKind, plans.Budget{Source: "web", Destination: "web"}
		if err := p.Seal(); err != nil {
			t.Fatal(err)
		}
		return plans.Encode(p)
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestTwoPlansAreCompared(t *testing.T) {
	files := map[string]*plans.Plan{"a": planstest.Three(), "b": planstest.Three(), "c": planstest.Three()}
	files["c"].Ignored = []string{"nodes-fit"}
	for args, want := range map[string]string{"a b": "The plans are the same.\n", "a c": "+ ignored[0]: nodes-fit\n", "c a": "- ignored[0]: nodes-fit\n", "a c -o name": "field/ignored[0]\n"} {
		if got, err := diff(t, files, strings.Fields(args)...); errors.Is(err, ErrDiffer) != !strings.Contains(want, "same") || got != want {
			t.Errorf("diff %s: %v %q, expected %q", args, err, got, want)
		}
	}
	for args, want := range map[string]string{"a": "takes PLANFILE PLANFILE, and got a: ", "a x": "no such file", "a b -o tree": "expected wide"} {
		if _, err := diff(t, files, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("diff %s: %v, expected %q", args, err, want)
		}
	}
}
