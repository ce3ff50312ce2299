package span_test

import (
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/span"
	"github.com/mcp-authd/mcp-authd/internal/testkit/collector"
	"github.com/mcp-authd/mcp-authd/internal/traces"
)

// TestTransport checks that the span of an outgoing request contains only the host, and that a
// server learns nothing about a trace that does not continue there (OB-08).
func TestTransport(t *testing.T) {
	var asked []http.Header
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header)
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer other.Close()
	fetch := func(r *http.Request, carry http.RoundTripper) {
		out, err := http.NewRequestWithContext(r.Context(), "SECRET", other.URL+"/SECRET?code=SECRET", nil)
		if err != nil {
			t.Fatal(err)
		}
		out.Header.Set("Tracestate", "their=own")
		resp, err := carry.RoundTrip(out)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	c := collector.New(t)
	all, err := traces.New(t.Context(), traces.Config{
		Endpoint: c.URL, Sample: 1, Issuer: "http://localhost", Logger: slog.New(slog.DiscardHandler),
		Told: func(string, int) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	h := all.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fetch(r, span.Transport(http.DefaultTransport))
		fetch(r, span.Onward(http.DefaultTransport))
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/x", nil))
	fetch(httptest.NewRequest(http.MethodGet, "/x", nil), span.Onward(http.DefaultTransport)) // without a trace
	all.Close()
	var got []collector.Span
	for _, s := range c.Spans() {
		if s.Kind == "SPAN_KIND_CLIENT" {
			got = append(got, s)
		}
	}
	port := other.URL[strings.LastIndexByte(other.URL, ':')+1:]
	want := map[string]string{
		"http.request.method": "_OTHER", "server.address": "127.0.0.1", "server.port": port, "url.scheme": "http",
		"http.response.status_code": "502", "error.type": "502",
	}
	if len(got) != 2 || !maps.Equal(got[0].Attributes, want) || got[0].Name != "_OTHER" {
		t.Fatalf("got %+v, want %v", got, want)
	}
	if p := asked[0].Get("Traceparent"); p != "" {
		t.Errorf("a server that is asked a question learns the trace %s", p)
	}
	want1 := "00-" + got[1].Trace + "-" + got[1].ID + "-01"
	if p := asked[1].Get("Traceparent"); p != want1 || asked[1].Get("Tracestate") != "" {
		t.Errorf("got %s, want %s", p, want1)
	}
	if asked[2].Get("Traceparent") != "" || asked[2].Get("Tracestate") == "" {
		t.Errorf("got %v, want the values of the request", asked[2])
	}
}

// BenchmarkOff measures a call without a trace.
func BenchmarkOff(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, end := span.Begin(b.Context(), "sign")
		end(nil)
	}
}
