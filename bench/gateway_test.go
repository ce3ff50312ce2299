package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

const toolCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search","arguments":{"query":"what there is to know about gateways","limit":10}}}`

// backend is an MCP server.
type backend struct {
	*httptest.Server
	open atomic.Int64 // running requests here and at the servers in front
}

// before wraps the handler of a server that forwards requests to s, and counts its requests.
func (s *backend) before(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.open.Add(1)
		defer s.open.Add(-1)
		h.ServeHTTP(w, r)
	})
}

// settle waits until no request is running.
func (s *backend) settle(tb testing.TB) {
	tb.Helper()
	wait.Until(tb, "no request is in progress", func() bool { return s.open.Load() == 0 })
}

// mcpServer answers calls with 2 KiB, as JSON. If the client accepts only a stream, it answers with
// a stream that stays open.
func mcpServer(b *testing.B) *backend {
	answer := append([]byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"`),
		bytes.Repeat([]byte("x"), 2<<10)...)
	answer = append(answer, `"}]}}`...)
	s := &backend{}
	s.Server = httptest.NewServer(s.before(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet || r.Header.Get("Accept") == streamsAlone {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: 1\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer)
	})))
	b.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// reverseProxy is the reference: a proxy without our code.
func reverseProxy(b *testing.B, to string) http.Handler {
	u, err := url.Parse(to)
	if err != nil {
		b.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(u) },
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
	}
}

// guarded puts the guard in front of next, as protect does. The token is looked up at the
// authorization server in the same process.
func guarded(b *testing.B, next func(r *rig) http.Handler) (http.Handler, string) {
	r := newRig(b, stores[0].open(b))
	token := r.redeem(b, r.approve(b)).AccessToken
	g, err := mcpresource.New(mcpresource.Config{
		Resource: resource, AuthorizationServers: []string{issuer},
		Validator: gateway.Remember(mcpresource.Local(r.server), time.Second, time.Now, func(bool) {}),
		Hosts:     []string{"127.0.0.1"},
		Policy:    &mcpresource.Rules{Base: []string{"mcp"}},
		Limits:    mcpresource.Limits{Calls: mcpresource.Rate{PerSecond: -1}, Concurrent: 1000},
	})
	if err != nil {
		b.Fatal(err)
	}
	h := g.Protect(next(r))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "mcp.example.com"
		h.ServeHTTP(w, r)
	}), token
}

func proxied(b *testing.B, r *rig, to string) http.Handler {
	u, err := gateway.New(gateway.Config{
		URL: to, Resource: resource, Identity: gateway.Identity{Signer: r.server.Keys(), Issuer: issuer},
	})
	if err != nil {
		b.Fatal(err)
	}
	return u
}

// fronts runs a benchmark through a bare proxy, through one behind the guard, and through the
// gateway. The second shows the guard's share of the difference.
func fronts(b *testing.B, run func(b *testing.B, url, token string, settle func(testing.TB))) {
	inner := mcpServer(b)
	front := func(name string, h http.Handler, token string) {
		b.Run(name, func(b *testing.B) {
			s := httptest.NewServer(inner.before(h))
			defer s.Close()
			run(b, s.URL, token, inner.settle)
		})
	}
	h, token := guarded(b, func(*rig) http.Handler { return reverseProxy(b, inner.URL) })
	front("reverseproxy", reverseProxy(b, inner.URL), token) // the same request; the proxy forwards its token
	front("guard+reverseproxy", h, token)
	h, token = guarded(b, func(r *rig) http.Handler { return proxied(b, r, inner.URL) })
	front("gateway", h, token)
}

// streamsAlone is the Accept header of a client whose calls are answered with a stream.
const streamsAlone = "text/event-stream"

func request(ctx context.Context, method, url, token string) *http.Request {
	var body io.Reader
	if method == http.MethodPost {
		body = bytes.NewReader([]byte(toolCall))
	}
	r, _ := http.NewRequestWithContext(ctx, method, url, body) // the URL of a test server is valid
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	return r
}

// BenchmarkGatewayCall measures tool calls over the network, 32 at a time.
func BenchmarkGatewayCall(b *testing.B) {
	fronts(b, func(b *testing.B, url, token string, _ func(testing.TB)) {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
		b.SetParallelism(16)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				resp, err := client.Do(request(context.Background(), http.MethodPost, url, token))
				if err != nil {
					b.Error(err)
					return
				}
				if n, _ := io.Copy(io.Discard, resp.Body); resp.StatusCode != 200 || n < 2<<10 {
					b.Errorf("%s, %d bytes", resp.Status, n)
				}
				resp.Body.Close()
			}
		})
	})
}

// BenchmarkGatewayFirstByte measures the time to the first event of a stream, one at a time,
// including opening the connection. BenchmarkGatewayStreams measures the end of an abandoned
// stream.
func BenchmarkGatewayFirstByte(b *testing.B) {
	fronts(b, func(b *testing.B, url, token string, settle func(testing.TB)) {
		client := &http.Client{Transport: &http.Transport{}}
		for b.Loop() {
			end := firstEvent(b, client, http.MethodGet, url, token)
			b.StopTimer()
			end()
			settle(b)
			b.StartTimer()
		}
	})
}

// BenchmarkGatewayStreams measures opening a stream, reading its first event and abandoning it,
// sequentially.
func BenchmarkGatewayStreams(b *testing.B) {
	fronts(b, func(b *testing.B, url, token string, _ func(testing.TB)) {
		client := &http.Client{Transport: &http.Transport{}}
		for b.Loop() {
			firstEvent(b, client, http.MethodGet, url, token)()
		}
	})
}

// firstEvent opens a stream and reads its first event. end abandons it.
func firstEvent(b *testing.B, client *http.Client, method, url, token string) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	r := request(ctx, method, url, token)
	r.Header.Set("Accept", streamsAlone)
	resp, err := client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || line != "data: 1\n" {
		b.Fatalf("%s %q %v", resp.Status, line, err)
	}
	return func() { cancel(); resp.Body.Close() }
}

// BenchmarkGatewayStream measures the memory of one open stream. It includes client and MCP server
// in the same process, so only differences between the variants are meaningful.
func BenchmarkGatewayStream(b *testing.B) {
	const streams = 500
	fronts(b, func(b *testing.B, url, token string, settle func(testing.TB)) {
		client := &http.Client{Transport: &http.Transport{}}
		for b.Loop() {
			before := inUse()
			ctx, cancel := context.WithCancel(context.Background())
			for range streams {
				resp, err := client.Do(request(ctx, http.MethodGet, url, token))
				if err != nil || resp.StatusCode != 200 {
					b.Fatal(fmt.Sprint(resp, err))
				}
				if _, err := io.ReadFull(resp.Body, make([]byte, 9)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(inUse()-before)/streams/1024, "KiB/stream")
			cancel()
			settle(b)
		}
	})
}

func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
