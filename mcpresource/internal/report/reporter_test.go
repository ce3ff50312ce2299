package report

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/reference"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/logged"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// collector is an authorization server that receives reports and answers with a preset status. It
// needs no network, so the tests can use a fake clock.
type collector struct {
	mu     sync.Mutex
	status int
	sent   []oauth.Report
	forms  []int // bytes
	lost   int64 // as reported
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := httptest.NewRecorder()
	size := int(r.ContentLength)
	if id, secret, ok := r.BasicAuth(); !ok || id != "notes" || secret != "s3cret" || r.ParseForm() != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return w.Result(), nil
	}
	var report oauth.Report
	if err := json.Unmarshal([]byte(r.PostForm.Get("report")), &report); err != nil {
		return nil, err
	}
	c.sent, c.forms = append(c.sent, report), append(c.forms, size)
	if c.status != 0 {
		w.WriteHeader(c.status)
		return w.Result(), nil
	}
	c.lost += report.Lost
	_, _ = w.WriteString(`{"taken":1}`)
	return w.Result(), nil
}

func (c *collector) answers(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

func (c *collector) reports() []oauth.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]oauth.Report(nil), c.sent...)
}

const reportsTo = "https://auth.example.com"

func reporterTo(t *testing.T, c *collector) *Reporter {
	t.Helper()
	r, err := NewReporter(ReporterConfig{
		Issuer: reportsTo, Endpoint: reportsTo + "/reports", ClientID: "notes", ClientSecret: "s3cret",
		HTTPClient: &http.Client{Transport: c},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func aCall() oauth.Call {
	return oauth.Call{At: time.Now(), Tool: "t", Outcome: "ok", Issuer: reportsTo, TokenID: "j", GrantID: "grt_1"}
}

func TestReporterRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{status: http.StatusServiceUnavailable}
		r := reporterTo(t, c)
		r.Called(t.Context(), aCall())
		wait.Advance(20 * time.Second)
		sent := c.reports()
		if len(sent) < 3 || len(sent) > 6 {
			t.Errorf("OB-04: %d reports in 20 seconds", len(sent))
		}
		r.Called(t.Context(), aCall()) // waits behind the first
		c.answers(0)
		wait.Advance(2 * time.Minute)
		all := c.reports()
		last := all[len(all)-2]
		if last.ID != sent[0].ID || len(last.Calls) != 1 || all[len(all)-1].ID == last.ID {
			t.Errorf("OB-04: a report that comes again has another name: %+v", all)
		}
		if !last.SentAt.After(sent[0].SentAt) {
			t.Error("OB-04: a report says when it was sent first")
		}
		if s := r.Stats(); s != (ReporterStats{Taken: 2}) {
			t.Errorf("got %+v", s)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestReporterLoses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{status: http.StatusBadGateway}
		r := reporterTo(t, c)
		r.Called(t.Context(), aCall())
		wait.Advance(time.Hour)
		if s := r.Stats(); s != (ReporterStats{Lost: 1}) || len(c.reports()) > 30 {
			t.Errorf("OB-04: after an hour: %+v in %d reports", s, len(c.reports()))
		}
		for range maxCalls + 2*oauth.MaxReported + 7 {
			r.Called(t.Context(), aCall())
		}
		s := r.Stats()
		if s.Waiting > maxCalls+oauth.MaxReported || s.Lost+s.Waiting != maxCalls+2*oauth.MaxReported+8 {
			t.Errorf("OB-04: in memory: %+v", s)
		}
		c.answers(0)
		wait.Advance(5 * time.Minute)
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if c.lost != s.Lost || r.Stats().Lost != s.Lost || r.Stats().Waiting != 0 {
			t.Errorf("OB-04: the authorization server got a count of %d lost reports: %+v", c.lost, r.Stats())
		}
	})
	t.Run("OB-04 what is refused is not repeated", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &collector{status: http.StatusBadRequest}
			r := reporterTo(t, c)
			r.Called(t.Context(), aCall())
			wait.Advance(time.Hour)
			if s := r.Stats(); s != (ReporterStats{Lost: 1}) || len(c.reports()) != 1 {
				t.Errorf("got %+v in %d reports", s, len(c.reports()))
			}
			_ = r.Close(t.Context())
		})
	})
	t.Run("OB-04 Close sends once what waits, and says what is lost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &collector{status: http.StatusBadGateway}
			r := reporterTo(t, c)
			for range 250 {
				r.Called(t.Context(), aCall())
			}
			err := r.Close(t.Context())
			if err == nil || !strings.Contains(err.Error(), "250 ") || r.Stats().Lost != 250 {
				t.Errorf("got %v, %+v", err, r.Stats())
			}
			if err := r.Close(t.Context()); err != nil {
				t.Error(err)
			}
			r.Called(t.Context(), aCall())
			if r.Stats().Lost != 251 {
				t.Errorf("after Close: %+v", r.Stats())
			}
		})
	})
}

// TestReportIsBounded: whatever the requests look like, the report is accepted.
func TestReportIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		r := reporterTo(t, c)
		req := httptest.NewRequest(http.MethodPost, "https://mcp.example.com/mcp", nil)
		long := strings.Repeat("\x01é", 2000)
		req.Header.Set("User-Agent", long)
		req.Header.Set("Authorization", "Bearer "+unsigned(t, map[string]any{
			"iss": reportsTo, "jti": long, "gid": long, "client_id": long, "aud": []string{long}, "exp": 1.7e9,
		}))
		for range 70 {
			req.Header.Set("X-"+strings.Repeat("h", 30)+reference.New(), "1")
		}
		for range 200 {
			r.Refused(req, oauth.Decision{
				Scheme: "Bearer", Outcome: "invalid_token", Reason: logged.Reason(long), Name: logged.Cut(long, 256),
				Method: logged.Cut(long, 256),
			})
		}
		wait.Advance(time.Minute)
		if err := r.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if s := r.Stats(); s.Taken != 200 {
			t.Errorf("OB-02: got %+v", s)
		}
		for _, size := range c.forms {
			if size > 64<<10 {
				t.Errorf("OB-02: a report of %d bytes", size)
			}
		}
	})
}

// TestReportHasNoToken: a report contains a token's claims but not the token, and nothing of
// another server's token.
func TestReportHasNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		r := reporterTo(t, c)
		ours := unsigned(t, map[string]any{"iss": reportsTo, "jti": "j-1", "gid": "grt_1", "sub": "usr_1"})
		theirs := unsigned(t, map[string]any{"iss": "https://other.example.com", "jti": "j-2", "sub": "bob"})
		for _, token := range []string{ours, theirs, "opaque"} {
			req := httptest.NewRequest(http.MethodPost, "https://mcp.example.com/mcp", nil)
			req.Header.Set("Authorization", "Bearer "+token)
			d := oauth.Decision{Scheme: "Bearer", Status: 401, Issuer: "https://other.example.com", Subject: "bob"}
			if name := r.Refused(req, d); !reference.IsOf(name, "notes") {
				t.Errorf("OB-02: got the reference %q", name)
			}
		}
		get := httptest.NewRequest(http.MethodGet, "https://mcp.example.com/mcp", nil)
		if r.Refused(get, oauth.Decision{Status: 401}) == "" {
			t.Error("OB-02: a browser gets no reference")
		}
		r.LetThrough(t.Context(), oauth.Decision{Issuer: "https://other.example.com", GrantID: "grt_2"})
		_ = r.Close(t.Context())
		raw, err := json.Marshal(c.reports())
		if err != nil || len(c.reports()) != 1 || len(c.reports()[0].Decisions) != 3 {
			t.Fatalf("got %s, %v", raw, err)
		}
		if !strings.Contains(string(raw), `"j-1"`) {
			t.Errorf("OB-02: got %s", raw)
		}
		for _, not := range []string{ours, strings.Split(ours, ".")[1], "j-2", "bob", "opaque"} {
			if strings.Contains(string(raw), not) {
				t.Errorf("OB-02: it has %q: %s", not, raw)
			}
		}
	})
}

// TestReporterDelaysNothing: requests do not wait for an authorization server that does not answer.
func TestReporterDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := make(chan struct{})
		r, err := NewReporter(ReporterConfig{
			Issuer: reportsTo, Endpoint: reportsTo + "/reports", ClientID: "notes", ClientSecret: "s3cret",
			HTTPClient: &http.Client{Transport: silence{silent}},
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 3 {
			r.Called(t.Context(), aCall())
			r.Refused(httptest.NewRequest(http.MethodPost, "/mcp", nil), oauth.Decision{Status: 401})
			wait.Advance(3 * time.Second)
		}
		if took := time.Since(began); took != 9*time.Second {
			t.Errorf("OB-02: %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Close(ctx); err == nil || time.Since(began) > 20*time.Second {
			t.Errorf("OB-02: Close: %v after %s", err, time.Since(began))
		}
		close(silent)
	})
}

// silence does not answer until over is closed or the request ends.
type silence struct{ over chan struct{} }

func (s silence) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-s.over:
	case <-r.Context().Done():
	}
	return nil, context.Canceled
}

// unsigned returns a JWT with claims and a meaningless signature.
func unsigned(t *testing.T, claims map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return "e30." + base64.RawURLEncoding.EncodeToString(raw) + ".c2ln"
}
