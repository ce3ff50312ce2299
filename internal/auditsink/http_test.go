package auditsink

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	collect "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mcp-authd/mcp-authd/internal/auditformat"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
)

// taken is a request that a receiver has answered.
type taken struct {
	header http.Header
	body   string
}

// httpReceiver records requests, and answers with status and answer.
type httpReceiver struct {
	*httptest.Server
	mu       sync.Mutex // guards the following fields
	requests []taken
	status   int
	answer   []byte
}

func newHTTPReceiver(t *testing.T) *httpReceiver {
	t.Helper()
	r := &httpReceiver{status: http.StatusOK}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.status < 300 {
			r.requests = append(r.requests, taken{req.Header.Clone(), string(body)})
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(r.status)
		w.Write(r.answer)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *httpReceiver) answers(status int, answer []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.answer = status, answer
}

func (r *httpReceiver) endpoint() Endpoint {
	return Endpoint{
		URL:     r.URL + "/audit/path-secret",
		Headers: http.Header{"Authorization": {"Bearer of-the-operator"}},
		Secret:  "what-the-operator-gave-to-both-sides",
		Roots:   r.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
		Local:   true,
	}
}

func TestWebhook(t *testing.T) {
	t.Run("OB-06: lines are posted, signed", func(t *testing.T) {
		r := newHTTPReceiver(t)
		w := newWebhook(asJSON, r.endpoint())
		if err := w.Deliver(deadline(t), entries(0, 3)); err != nil {
			t.Fatal(err)
		}
		got := r.requests[0]
		stamp, _, _ := strings.Cut(strings.TrimPrefix(got.header.Get("Mcp-Authd-Signature"), "t="), ",")
		at, err := time.ParseDuration(stamp + "s")
		if err != nil || time.Since(time.Unix(int64(at.Seconds()), 0)) > time.Minute {
			t.Errorf("the time is %q", stamp)
		}
		want := safehttp.Signature([]byte(r.endpoint().Secret), time.Unix(int64(at.Seconds()), 0), []byte(got.body))
		if got.header.Get(safehttp.SignatureHeader) != want || got.body != string(asJSON.lines(entries(0, 3))) ||
			got.header.Get("Content-Type") != "application/x-ndjson" ||
			got.header.Get("Authorization") != "Bearer of-the-operator" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("OB-06: many long lines are several requests, with each line once", func(t *testing.T) {
		r := newHTTPReceiver(t)
		batch := entries(0, 256)
		for i := range batch {
			batch[i].Fields = map[string]string{"reason": strings.Repeat("x", 5000)}
		}
		if err := newWebhook(asCEF, r.endpoint()).Deliver(deadline(t), batch); err != nil {
			t.Fatal(err)
		}
		all := ""
		for _, one := range r.requests {
			if len(one.body) > maxBody || one.header.Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("%d bytes, %v", len(one.body), one.header)
			}
			all += one.body
		}
		if len(r.requests) < 3 || all != string(asCEF.lines(batch)) {
			t.Errorf("got %d requests with %d bytes", len(r.requests), len(all))
		}
	})
	t.Run("OB-06: an answer other than 2xx takes nothing, and its error names no secret", func(t *testing.T) {
		r := newHTTPReceiver(t)
		w := newWebhook(asJSON, r.endpoint())
		for _, status := range []int{500, 400, 302} {
			r.answers(status, nil)
			err := w.Deliver(deadline(t), entries(0, 1))
			if err == nil || !strings.Contains(err.Error(), fmt.Sprint("answers ", status)) {
				t.Errorf("%d: got %v", status, err)
			}
		}
		r.Close()
		elsewhere := r.endpoint()
		elsewhere.Local = false
		private := elsewhere
		private.Networks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		for what, e := range map[string]Endpoint{"connection refused": private, "no public address": elsewhere} {
			err := newWebhook(asJSON, e).Deliver(deadline(t), entries(0, 1))
			if err == nil || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), "path-secret") {
				t.Errorf("%s: got %v", what, err)
			}
		}
	})
	t.Run("OB-06: a receiver that fails and recovers has each entry", func(t *testing.T) {
		r, to := newRig(t), newHTTPReceiver(t)
		l := r.replica(newWebhook(asJSON, to.endpoint()))
		r.append(2)
		to.answers(503, nil)
		if pause := l.step(deadline(t)); pause != firstWait || r.state().Failed != "the receiver answers 503" {
			t.Errorf("waits %s, got %+v", pause, r.state())
		}
		r.append(1)
		to.answers(204, nil)
		l.step(deadline(t))
		if s := r.state(); s != (State{ID: "siem"}) || len(to.requests) != 1 ||
			strings.Count(to.requests[0].body, "\n") != 3 {
			t.Errorf("got %+v, %+v", s, to.requests)
		}
	})
}

func TestOTLP(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	sink := func(r *httpReceiver) *otlp { return newOTLP(asJSON, r.endpoint(), func() time.Time { return now }) }
	t.Run("OB-06: a collector gets log records with the fields as attributes", func(t *testing.T) {
		r := newHTTPReceiver(t)
		batch := entries(7, 2)
		batch[0].Fields = map[string]string{"user": "usr_1", "tool": "delete", "grant": "grt_1"}
		batch[1].Event = "token.reuse"
		if err := sink(r).Deliver(deadline(t), batch); err != nil {
			t.Fatal(err)
		}
		var got collect.ExportLogsServiceRequest
		if err := proto.Unmarshal([]byte(r.requests[0].body), &got); err != nil || len(got.ResourceLogs) != 1 {
			t.Fatalf("got %v, %v", &got, err)
		}
		if h := r.requests[0].header; h.Get("Content-Type") != "application/x-protobuf" ||
			h.Get("Authorization") != "Bearer of-the-operator" {
			t.Errorf("got %v", h)
		}
		attributes := map[string]any{}
		for _, a := range got.ResourceLogs[0].Resource.Attributes {
			attributes[a.Key] = a.Value.GetStringValue()
		}
		records := got.ResourceLogs[0].ScopeLogs[0].LogRecords
		for _, a := range records[0].Attributes {
			attributes[a.Key] = a.Value.GetStringValue()
		}
		for name, want := range map[string]any{
			"service.name": "mcp-authd", "user.id": "usr_1", "gen_ai.tool.name": "delete", "mcp_authd.grant": "grt_1",
			"mcp_authd.issuer": "https://auth.example.com", "mcp_authd.leaf": batch[0].Leaf.String(),
		} {
			if attributes[name] != want {
				t.Errorf("%s is %v, want %v", name, attributes[name], want)
			}
		}
		if r := records[0]; r.EventName != "login.succeeded" || r.ObservedTimeUnixNano != uint64(now.UnixNano()) ||
			r.Body.GetStringValue() != string(asJSON.line(batch[0])) || r.Attributes[0].Value.GetIntValue() != 7 ||
			r.SeverityNumber != logs.SeverityNumber_SEVERITY_NUMBER_INFO {
			t.Errorf("got %v", r)
		}
		if records[1].SeverityNumber != logs.SeverityNumber_SEVERITY_NUMBER_ERROR {
			t.Errorf("got %v", records[1])
		}
	})
	t.Run("OB-06: what a collector refuses for good is counted, and holds up nothing", func(t *testing.T) {
		r, to := newRig(t), newHTTPReceiver(t)
		l := r.replica(sink(to))
		answer, err := proto.Marshal(&collect.ExportLogsServiceResponse{
			PartialSuccess: &collect.ExportLogsPartialSuccess{RejectedLogRecords: 2, ErrorMessage: "too old"},
		})
		if err != nil {
			t.Fatal(err)
		}
		to.answers(200, answer)
		r.append(3)
		l.step(deadline(t))
		if s := r.state(); s.Lost != 2 || s.Waiting != 0 || !strings.Contains(r.Log.String(), "too old") {
			t.Errorf("got %+v, %s", s, r.Log)
		}
	})
	t.Run("OB-06: an answer that is none of OTLP says nothing", func(t *testing.T) {
		for _, answer := range []string{"", "{}", "<html>", "\x0a\xff", "\x0a\x02\x08", "\x0a\x00", "\x08\x01"} {
			if err := partial([]byte(answer), 3); err != nil {
				t.Errorf("%q: got %v", answer, err)
			}
		}
		var refused *refusedError
		if err := partial([]byte("\x0a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), 3); !errors.As(err, &refused) ||
			refused.entries != 3 {
			t.Errorf("more than was sent: got %v", err)
		}
	})
	t.Run("OB-06: a collector that is away takes nothing", func(t *testing.T) {
		r := newHTTPReceiver(t)
		r.Close()
		if err := sink(r).Deliver(deadline(t), entries(0, 1)); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("got %v", err)
		}
	})
}

// TestCertificates checks that a file without certificates is an error at start (OB-06).
func TestCertificates(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{file: "has no certificates", file + ".gone": "no such file"} {
		_, err := New(Options{
			Log:   slog.New(slog.DiscardHandler),
			Sinks: []Config{{ID: "siem", Kind: Syslog, Format: auditformat.CEF, CAFile: name}},
		})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "audit sink siem: ") {
			t.Errorf("got %v", err)
		}
	}
}
