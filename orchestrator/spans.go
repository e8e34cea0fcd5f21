package orchestrator

import (
	"crypto/sha256"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A plan is one trace, whichever processes carry it out: the ids are made from the plan and the
// ordinals, so that what one process tells fits to what another has told before it. A span is
// told when it is over. Attributes are names and numbers, and nothing that objects contain.

// span is one of a trace, over and done with.
type span struct {
	name     string
	id       trace.SpanID
	parent   trace.SpanID // the zero id for that of the whole plan
	from, to time.Time
	tags     []attribute.KeyValue
}

func traceOf(p *plans.Plan) (id trace.TraceID) {
	copy(id[:], digest(p, "trace"))
	return id
}

func spanOf(p *plans.Plan, of ...string) (id trace.SpanID) {
	copy(id[:], digest(p, "span", of...))
	return id
}

func digest(p *plans.Plan, what string, of ...string) []byte {
	sum := sha256.Sum256([]byte(what + "\n" + p.ID + "\n" + p.Hash + "\n" + strings.Join(of, "\n")))
	return sum[:]
}

// waveSpans are those of a wave that has arrived at that time, the whole first: for how long it was
// on neither side, and the parts of that one after the other, as the journal has them.
func waveSpans(p *plans.Plan, s plans.Step, took engine.Took, arrived time.Time) []span {
	now := arrived
	for _, d := range took {
		now = now.Add(-d)
	}
	wave := s.Ordinals.String()
	tags := []attribute.KeyValue{
		attribute.String("stsmigrate.plan", p.Name), attribute.String("stsmigrate.ordinals", wave),
		attribute.String("stsmigrate.from", p.On(s.From).String()), attribute.String("stsmigrate.to", p.On(s.To()).String()),
	}
	whole := spanOf(p, wave, string(s.To()))
	out := []span{{p.Pods(s.Ordinals) + " to the " + string(s.To()), whole, spanOf(p), now, arrived, tags}}
	for _, part := range plans.Spans() {
		end := now.Add(took[part])
		out = append(out, span{string(part), spanOf(p, wave, string(s.To()), string(part)), whole, now, end, tags})
		now = end
	}
	return out
}

// planSpan is that of a plan all of whose ordinals are where they are to be.
func planSpan(p *plans.Plan, how plans.Outcome, from, to time.Time) span {
	return span{"plan " + p.Name, spanOf(p), trace.SpanID{}, from, to, []attribute.KeyValue{
		attribute.String("stsmigrate.plan", p.Name), attribute.String("stsmigrate.outcome", string(how)),
		attribute.String("stsmigrate.from", p.Source.String()), attribute.String("stsmigrate.to", p.Destination.String()),
	}}
}
