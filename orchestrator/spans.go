package orchestrator

import (
	"crypto/sha256"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A plan is one trace, whichever processes carry it out. The ids are derived from the plan and the
// ordinals, so that the spans of one process fit those that another process has sent before. A span is
// sent when it is over. Attributes are names and numbers, never content of objects.

// span is one finished span of a trace.
type span struct {
	name     string
	id       trace.SpanID
	parent   trace.SpanID // the zero id for the span of the whole plan
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

// waveSpans returns the spans of a wave that arrived at that time. The first covers the whole time that
// the wave was on neither side. The others are the parts of that time in order, as the journal records
// them.
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
	for _, part := range took.Parts() {
		end := now.Add(took[part])
		out = append(out, span{string(part), spanOf(p, wave, string(s.To()), string(part)), whole, now, end, tags})
		now = end
	}
	return out
}

// planSpan returns the span of a plan whose ordinals have all arrived.
func planSpan(p *plans.Plan, how plans.Outcome, from, to time.Time) span {
	return span{"plan " + p.Name, spanOf(p), trace.SpanID{}, from, to, []attribute.KeyValue{
		attribute.String("stsmigrate.plan", p.Name), attribute.String("stsmigrate.outcome", string(how)),
		attribute.String("stsmigrate.from", p.Source.String()), attribute.String("stsmigrate.to", p.Destination.String()),
	}}
}
