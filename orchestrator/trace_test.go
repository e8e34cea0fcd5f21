package orchestrator

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// receiver receives spans as OTLP over HTTP.
type receiver struct {
	*httptest.Server
	lock  sync.Mutex
	spans []*tracev1.Span
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		raw, err := io.ReadAll(q.Body)
		var in collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(raw, &in)
		}
		if err != nil || q.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", q.URL.Path, err)
		}
		r.lock.Lock()
		defer r.lock.Unlock()
		for _, of := range in.ResourceSpans {
			for _, by := range of.ScopeSpans {
				r.spans = append(r.spans, by.Spans...)
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// traced returns a run of a plan in its own process, whose spans go to the URL.
func traced(t *testing.T, url string) *run {
	t.Helper()
	h, p := fixture(t)
	to, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(url+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	if h.spans, err = newTracer(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	return &run{orchestrator: h, plan: p}
}

// arrival is the progress of a wave that was on neither side for 15 seconds.
func arrival(ordinal int32, from plans.Side) engine.Progress {
	took := engine.Took{}
	for k, s := range plans.Spans() {
		took[s] = time.Duration(k+1) * time.Second
	}
	return engine.Progress{Kind: engine.Advanced, Step: plans.Step{Op: plans.Grow, From: from, Ordinals: plans.Slice{Start: ordinal, Replicas: 1}}, Took: &took}
}

// Two processes, one after the other, make one trace: the plan, its waves, and the parts of each.
func TestAPlanIsOneTraceWhoeverCarriesIt(t *testing.T) {
	to := receive(t)
	first, second := traced(t, to.URL), traced(t, to.URL)
	first.report(t.Context(), nil, arrival(2, plans.Source), nil)
	first.orchestrator.spans.end(t.Context())
	second.report(t.Context(), nil, arrival(1, plans.Source), nil)
	second.report(t.Context(), nil, arrival(1, plans.Destination), nil) // an abort
	second.ended(t.Context(), engine.Progress{Kind: engine.Finished, Outcome: plans.Aborted})
	second.orchestrator.spans.end(t.Context())

	at := map[string]*tracev1.Span{}
	below := map[string][]*tracev1.Span{}
	for _, s := range to.spans {
		if hex.EncodeToString(s.TraceId) != traceOf(first.plan).String() {
			t.Errorf("%s is of trace %x", s.Name, s.TraceId)
		}
		at[string(s.SpanId)] = s
		below[string(s.ParentSpanId)] = append(below[string(s.ParentSpanId)], s)
	}
	if len(at) != len(to.spans) || len(at) != 1+3*6 {
		t.Errorf("%d spans with %d ids", len(to.spans), len(at))
	}
	roots := below[""]
	if len(roots) != 1 || roots[0].Name != "plan web" {
		t.Fatalf("the roots are %v", roots)
	}
	var waves []string
	for _, wave := range below[string(roots[0].SpanId)] {
		waves = append(waves, wave.Name)
		whole(t, wave, below[string(wave.SpanId)])
	}
	if want := []string{"web-2 to the destination", "web-1 to the destination", "web-1 to the source"}; !slices.Equal(waves, want) {
		t.Errorf("the waves are %q, expected %q", waves, want)
	}
}

// whole checks that a wave consists of its parts, and that its attributes are only the expected ones.
func whole(t *testing.T, wave *tracev1.Span, of []*tracev1.Span) {
	t.Helper()
	now := wave.StartTimeUnixNano
	var parts []string
	for _, part := range of {
		if part.StartTimeUnixNano != now {
			t.Errorf("%s of %s begins at %d, expected %d", part.Name, wave.Name, part.StartTimeUnixNano, now)
		}
		now, parts = part.EndTimeUnixNano, append(parts, part.Name)
	}
	if now != wave.EndTimeUnixNano || now-wave.StartTimeUnixNano != uint64(15*time.Second) || strings.Join(parts, " ") != "terminate detach handOver attach ready" {
		t.Errorf("%s has %v and lasts %d", wave.Name, parts, now-wave.StartTimeUnixNano)
	}
	var tags []string
	for _, tag := range wave.Attributes {
		tags = append(tags, tag.Key)
	}
	if want := []string{"stsmigrate.plan", "stsmigrate.ordinals", "stsmigrate.from", "stsmigrate.to"}; !slices.Equal(tags, want) {
		t.Errorf("%s tells %v, expected %v", wave.Name, tags, want)
	}
}

// A receiver of spans that does not respond stalls no plan, and delays the end of no process.
func TestNothingWaitsForSpans(t *testing.T) {
	stuck := make(chan struct{})
	to := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	t.Cleanup(to.Close)
	t.Cleanup(func() { close(stuck) })
	r := traced(t, to.URL)
	begun := time.Now() //nolint:forbidigo // it is about real time
	for range 2000 {    // six spans each: more than any queue holds
		r.orchestrator.spans.tell(t.Context(), r.plan, waveSpans(r.plan, arrival(1, plans.Source).Step, engine.Took{}, begun)...)
	}
	if took := time.Since(begun); took > traceFlushTimeout {
		t.Errorf("a plan waits for %s", took)
	}
	r.orchestrator.spans.end(t.Context())
	if took := time.Since(begun); took > 3*traceFlushTimeout {
		t.Errorf("the process ends after %s", took)
	}
}
