//go:build unix

package bench

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/metrics"
	"slices"
	"testing"
	"time"
)

// BenchmarkFirstEvent measures the first event of a new stream through the gateway, through a bare
// proxy behind the guard, and through the bare proxy, as reference. They take turns of 25
// sequential streams, because the machine is never quiet. The ratios are medians of the rounds. The
// time includes opening the connection. The processor time is that in the whole process, including
// client and MCP server, until the streams have ended.
func BenchmarkFirstEvent(b *testing.B) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		b.Run(method, func(b *testing.B) { firstEvents(b, method) })
	}
}

// way is one of the front ends that take turns.
type way struct {
	url, token    string
	times, cpu    []float64 // µs, per turn
	objects       []float64 // allocated, per stream
	client        *http.Client
	timed, burned float64 // in this round
}

func firstEvents(b *testing.B, method string) {
	log.SetOutput(io.Discard) // the bare proxy would log each abandoned stream
	b.Cleanup(func() { log.SetOutput(os.Stderr) })
	inner := mcpServer(b)
	names := []string{"reverseproxy", "guard", "gateway"}
	ways := map[string]*way{}
	add := func(name string, h http.Handler, token string) {
		s := httptest.NewServer(inner.before(h))
		b.Cleanup(s.Close)
		ways[name] = &way{url: s.URL, token: token, client: &http.Client{Transport: &http.Transport{}}}
	}
	h, token := guarded(b, func(*rig) http.Handler { return reverseProxy(b, inner.URL) })
	add("reverseproxy", reverseProxy(b, inner.URL), token) // the same request; the proxy forwards its token
	add("guard", h, token)
	h, token = guarded(b, func(r *rig) http.Handler { return proxied(b, r, inner.URL) })
	add("gateway", h, token)
	for _, w := range ways {
		w.turn(b, method, inner.settle) // warm-up
	}
	ratios := map[string][]float64{}
	for round := 0; b.Loop(); round++ {
		for i := range names {
			ways[names[(i+round)%len(names)]].turn(b, method, inner.settle)
		}
		bare := ways["reverseproxy"]
		for _, name := range names[1:] {
			w := ways[name]
			ratios[name] = append(ratios[name], w.timed/bare.timed)
			ratios[name+"-cpu"] = append(ratios[name+"-cpu"], w.burned/bare.burned)
		}
	}
	b.ReportMetric(0, "ns/op") // the time of a round is meaningless
	for name, w := range ways {
		b.ReportMetric(median(w.times), name+"-µs")
		b.ReportMetric(slices.Min(w.times), name+"-least-µs")
		b.ReportMetric(median(w.cpu), name+"-cpu-µs")
		b.ReportMetric(slices.Min(w.cpu), name+"-cpu-least-µs")
		b.ReportMetric(median(w.objects), name+"-allocs")
	}
	for name, all := range ratios {
		b.ReportMetric(median(all), name+"-ratio")
	}
}

// turn opens streams, one after the other. The time of a turn is the median of its streams. Its
// processor time includes the end of the last stream.
func (w *way) turn(b *testing.B, method string, settle func(testing.TB)) {
	const streams = 25
	m := &meter{b: b}
	before, objects := m.read().own, allocated()
	times := make([]float64, 0, streams)
	for range streams {
		began := time.Now()
		end := firstEvent(b, w.client, method, w.url, w.token)
		times = append(times, float64(time.Since(began).Nanoseconds())/1e3)
		end()
	}
	settle(b)
	w.timed, w.burned = median(times), (m.read().own-before).Seconds()*1e6/streams
	w.times, w.cpu = append(w.times, w.timed), append(w.cpu, w.burned)
	w.objects = append(w.objects, float64(allocated()-objects)/streams)
}

// allocated returns the number of objects that this process has allocated.
func allocated() uint64 {
	all := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(all)
	return all[0].Value.Uint64()
}
