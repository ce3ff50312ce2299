package metrics

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/audit"
)

func TestMetricsOfProviders(t *testing.T) {
	m := New()
	r := audit.New(slog.New(slog.DiscardHandler), m.Count)
	ctx := context.Background()
	r.Record(ctx, audit.ProviderSignedIn, slog.String("connector", "corp"), slog.String("user", "usr_secret"))
	r.Record(ctx, audit.ProviderEnded, slog.String("connector", "corp"), slog.String("reason", "revoked"))
	r.Record(ctx, audit.ProviderRefused, slog.String("connector", "corp"), slog.String("error", "access_denied"),
		slog.String("reason", "Prose about Corp."))
	r.Record(ctx, audit.TokenExchanged, slog.String("client_id", "tools"), slog.String("connector", "corp"))
	r.Record(ctx, audit.TokenIssued, slog.String("reason", "prose"))
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`mcp_authd_provider_events_total{connector="corp",event="provider.signed_in",reason=""} 1`,
		`mcp_authd_provider_events_total{connector="corp",event="provider.ended",reason="revoked"} 1`,
		`mcp_authd_provider_events_total{connector="corp",event="provider.refused",reason="access_denied"} 1`,
		`mcp_authd_upstream_events_total{connector="corp",event="token.exchanged",reason=""} 1`,
		`mcp_authd_events_total{error="access_denied",event="provider.refused"} 1`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("missing %s", want)
		}
	}
	for _, no := range []string{"Prose", "prose", "usr_secret", `provider_events_total{connector=""`} {
		if strings.Contains(w.Body.String(), no) {
			t.Errorf("%q is a label", no)
		}
	}
}
