// Package collector is an in-process OpenTelemetry collector. It receives spans over OTLP/HTTP and
// shows them to tests.
package collector

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	service "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a received span.
type Span struct {
	Trace, ID, Parent string
	Name              string
	Kind              string // such as "SPAN_KIND_SERVER"
	Scope             string
	Service           string
	Failed            bool
	Message           string // of the status
	Attributes        map[string]string
	Links             []string // trace IDs
	Millis            float64
}

// Collector receives spans.
type Collector struct {
	URL string

	mu     sync.Mutex
	spans  []Span
	header http.Header
	status int
}

// New returns a collector that listens until the test ends.
func New(t testing.TB) *Collector {
	c := &Collector{status: http.StatusOK}
	s := httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

// Answer sets the HTTP status of its responses.
func (c *Collector) Answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

// Spans returns the received spans.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Header returns the header of the last request.
func (c *Collector) Header() http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.header
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	var in io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		in = z
	}
	body, err := io.ReadAll(in)
	var m service.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &m) != nil {
		http.Error(w, "these are no spans", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header = r.Header
	if c.status == http.StatusOK {
		for _, rs := range m.ResourceSpans {
			about := attributes(rs.Resource.GetAttributes())
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					c.spans = append(c.spans, read(s, ss.Scope.GetName(), about["service.name"]))
				}
			}
		}
	}
	w.WriteHeader(c.status)
}

func read(s *wire.Span, scope, name string) Span {
	out := Span{
		Trace:      hex.EncodeToString(s.TraceId),
		ID:         hex.EncodeToString(s.SpanId),
		Parent:     hex.EncodeToString(s.ParentSpanId),
		Name:       s.Name,
		Kind:       s.Kind.String(),
		Scope:      scope,
		Service:    name,
		Failed:     s.Status.GetCode() == wire.Status_STATUS_CODE_ERROR,
		Message:    s.Status.GetMessage(),
		Attributes: attributes(s.Attributes),
		Millis:     float64(s.EndTimeUnixNano-s.StartTimeUnixNano) / 1e6,
	}
	for _, l := range s.Links {
		out.Links = append(out.Links, hex.EncodeToString(l.TraceId))
	}
	return out
}

func attributes(in []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range in {
		switch v := kv.Value.GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[kv.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			out[kv.Key] = fmt.Sprint(v.IntValue)
		default:
			out[kv.Key] = kv.Value.String()
		}
	}
	return out
}
