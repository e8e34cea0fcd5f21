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

// traceFlushTimeout is how long a process that ends waits for its last spans to be taken.
const traceFlushTimeout = 3 * time.Second

// tracer sends spans away; one without a provider sends none. Nothing waits for it: what is not
// taken in time is dropped.
type tracer struct{ provider *sdktrace.TracerProvider }

// newTracer returns one that sends to the exporter, nil for none.
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

// tell hands spans of a plan over.
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

// end sends what is left.
func (t tracer) end(ctx context.Context) {
	if t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceFlushTimeout)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // who does not answer now is not waited for
}

// given is a generator of ids that are made already.
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

// ExportSpans implements sdktrace.SpanExporter. It is never called by two at once.
func (q *quiet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := q.SpanExporter.ExportSpans(ctx, spans)
	if err != nil && !q.failing {
		log.Log.WithName("traces").Info("they are lost until somebody takes them; plans go on", "error", err.Error())
	}
	q.failing = err != nil
	return nil
}
