package orchestrator

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stsmigrate/stsmigrate/plans"
)

// traceFlushTimeout is how long an ending process waits for its last spans to be accepted.
const traceFlushTimeout = 3 * time.Second

// tracer sends spans; without a provider it sends none. Nothing waits for it: a span that is not
// accepted in time is dropped.
type tracer struct{ provider *sdktrace.TracerProvider }

// newTracer returns a tracer for the exporter; nil means none.
func newTracer(ctx context.Context, to sdktrace.SpanExporter) (tracer, error) {
	if to == nil {
		return tracer{}, nil
	}
	self, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attribute.String("service.name", "stsmigrate-orchestrator")), resource.WithFromEnv())
	if err != nil {
		return tracer{}, err
	}
	return tracer{sdktrace.NewTracerProvider(sdktrace.WithBatcher(&quiet{SpanExporter: to}), sdktrace.WithIDGenerator(given{}), sdktrace.WithResource(self))}, nil
}

// tell sends the spans of a plan.
func (t tracer) tell(ctx context.Context, p *plans.Plan, spans ...span) {
	if t.provider == nil {
		return
	}
	for _, s := range spans {
		ctx := context.WithValue(ctx, given{}, ids{traceOf(p), s.id})
		if s.parent.IsValid() {
			ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceOf(p), SpanID: s.parent, TraceFlags: trace.FlagsSampled}))
		}
		_, one := t.provider.Tracer("stsmigrate").Start(ctx, s.name, trace.WithTimestamp(s.from), trace.WithAttributes(s.tags...))
		one.End(trace.WithTimestamp(s.to))
	}
}

// end sends the remaining spans.
func (t tracer) end(ctx context.Context) {
	if t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceFlushTimeout)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // a receiver that does not respond now is not waited for
}

// given is an ID generator that returns the ids stored in the context.
type given struct{}

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// NewIDs implements sdktrace.IDGenerator.
func (given) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	its, _ := ctx.Value(given{}).(ids)
	return its.trace, its.span
}

// NewSpanID implements sdktrace.IDGenerator.
func (g given) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, id := g.NewIDs(ctx)
	return id
}

// quiet is an exporter that logs an outage once.
type quiet struct {
	sdktrace.SpanExporter
	failing bool
}

// ExportSpans implements sdktrace.SpanExporter. It is never called concurrently.
func (q *quiet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := q.SpanExporter.ExportSpans(ctx, spans)
	if err != nil && !q.failing {
		log.Log.WithName("traces").Info("spans are lost until the receiver accepts them; plans continue", "error", err.Error())
	}
	q.failing = err != nil
	return nil
}
