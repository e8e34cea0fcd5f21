package trials

import (
	"context"
	"fmt"

	"github.com/stsmigrate/stsmigrate/internal/placeholder"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
)

// PlaceProven lists what the placeholders of a plan do not prove of its pods. It fails for what may keep an ordinal down
// although its placeholder has its place.
func PlaceProven(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if !i.Plan.Placeholder.Used() {
		return nil, nil
	}
	set, err := i.Receives()
	if err != nil || set == nil {
		return nil, err
	}
	gaps, err := placeholder.Unproven(ctx, i.On[i.To()], set)
	if check.IgnoreForbidden(err) != nil { // the check policies-of-namespace says it where they may not be read
		return nil, err
	}
	var out []check.Finding
	if why := placeholder.Unaskable(i.Plan, i.To(), set); why != "" {
		out = append(out, check.Finding{
			Level: check.Fail, Object: i.Name(i.To()), Saw: "what must be reached cannot be asked: " + why, Want: "to be asked before an ordinal leaves",
			Remedy: "do so: this plan would wait with every ordinal up",
		})
	}
	for _, g := range gaps {
		f := check.Finding{
			Level: check.Warn, Object: i.Name(i.To()), Saw: fmt.Sprintf("no placeholder proves %s", g), Want: "to be proven before an ordinal leaves",
			Remedy: "see to it yourself that they work there, for example with a pod like these; the move goes on",
		}
		if g.Breaks {
			f.Level, f.Remedy = check.Fail, "see to it yourself that each pod gets them, then --ignore place-proven"
		}
		out = append(out, f)
	}
	return out, nil
}
