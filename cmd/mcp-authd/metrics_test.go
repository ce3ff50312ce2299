package main

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/audit"
)

func TestMetricsOfProviders(t *testing.T) {
	m := newMetrics()
	r := audit.New(slog.New(slog.DiscardHandler), m.count)
	ctx := context.Background()
	r.Record(ctx, audit.UpstreamSignedIn, slog.String("connector", "corp"), slog.String("user", "usr_secret"))
	r.Record(ctx, audit.UpstreamEnded, slog.String("connector", "corp"), slog.String("reason", "revoked"))
	r.Record(ctx, audit.UpstreamRefused, slog.String("connector", "corp"), slog.String("error", "access_denied"), slog.String("reason", "Prose about Corp."))
	r.Record(ctx, audit.TokenExchanged, slog.String("client_id", "tools"), slog.String("connector", "corp"))
	r.Record(ctx, audit.TokenIssued, slog.String("reason", "prose"))
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`mcp_authd_upstream_events_total{connector="corp",event="upstream.signed_in",reason=""} 1`,
		`mcp_authd_upstream_events_total{connector="corp",event="upstream.ended",reason="revoked"} 1`,
		`mcp_authd_upstream_events_total{connector="corp",event="upstream.refused",reason="access_denied"} 1`,
		`mcp_authd_upstream_events_total{connector="corp",event="token.exchanged",reason=""} 1`,
		`mcp_authd_events_total{error="access_denied",event="upstream.refused"} 1`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("missing %s", want)
		}
	}
	for _, no := range []string{"Prose", "prose", "usr_secret", `upstream_events_total{connector=""`} {
		if strings.Contains(w.Body.String(), no) {
			t.Errorf("%q is a label", no)
		}
	}
}
