package metrics

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestBounded: OB-07: 10,000 clients with unique values for everything that a caller or a provider
// can choose do not exceed the bound on the number of series.
func TestBounded(t *testing.T) {
	m := New()
	for i := range 10_000 {
		own := fmt.Sprint("client-", i)
		m.Count(audit.TokenRefused, []slog.Attr{slog.String("client_id", own), slog.String("error", own)})
		m.Count(own, []slog.Attr{slog.String("error", own), slog.String("grant_type", own)})
		m.Count(audit.ClientRefused, []slog.Attr{slog.String("error", own)})
		m.Count(audit.ProviderEnded, []slog.Attr{slog.String("connector", own), slog.String("reason", own)})
		m.Request(own, i, time.Second)
		m.Guard(own, time.Second)
		m.ToolCall(own, own, time.Second)
		m.Provider(own, time.Second, nil)
		m.Store(own, time.Second, errors.New(own))
		m.Cache(own, i%2 == 0)
		m.Step(own)
		m.Backlog([]storage.Backlog{{Receiver: own}}, time.Now())
	}
	all, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	definitions := Definitions()
	for _, f := range all {
		i := slices.IndexFunc(definitions, func(d Definition) bool { return d.Name == f.GetName() })
		if i < 0 {
			continue // a metric of the runtime
		}
		if got, most := len(f.GetMetric()), definitions[i].Bound(); got > most || most > 600 {
			t.Errorf("%s: %d series, may have %d", f.GetName(), got, most)
		}
	}
}

// TestValues checks that a long value, or one that Prometheus would refuse, does not fail a
// request.
func TestValues(t *testing.T) {
	m := New()
	m.Count("a\xffb", []slog.Attr{slog.String("error", strings.Repeat("é", 500))})
	if _, err := m.registry.Gather(); err != nil {
		t.Error(err)
	}
	var none *Metrics
	none.Request("token", 200, time.Second)
	none.Count(audit.TokenIssued, nil)
	none.SigningKey(time.Second, time.Second)
}

// TestSteps: OB-07: it checks which events count as steps towards a token.
func TestSteps(t *testing.T) {
	for _, tt := range []struct{ event, grantType, want string }{
		{audit.DeviceRequested, "", StepStarted}, {audit.LoginSucceeded, "", stepSignedIn},
		{audit.ProviderSignedIn, "", stepSignedIn}, {audit.ConsentApproved, "", stepConsented},
		{audit.TokenIssued, "authorization_code", stepRedeemed},
		{audit.TokenIssued, "urn:ietf:params:oauth:grant-type:device_code", stepRedeemed},
		{audit.TokenIssued, "client_credentials", ""}, {audit.TokenRefreshed, "refresh_token", ""},
	} {
		m := New()
		m.Count(tt.event, []slog.Attr{slog.String("grant_type", tt.grantType)})
		all, _ := m.registry.Gather()
		got := ""
		for _, f := range all {
			for _, s := range f.GetMetric() {
				if f.GetName() == signInSteps && s.GetCounter().GetValue() == 1 {
					got += s.GetLabel()[0].GetValue()
				}
			}
		}
		if got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.event, tt.grantType, got, tt.want)
		}
	}
}

// TestFailures: OB-07: an error that the contract of the store allows does not count as a failure.
func TestFailures(t *testing.T) {
	m := New()
	m.Store("RedeemCode", time.Second, storage.ErrSpent)
	m.Store("RotateRefresh", time.Second, errors.New("disk full"))
	all, _ := m.registry.Gather()
	for _, f := range all {
		if f.GetName() == storeFailures && (len(f.GetMetric()) != 1 ||
			f.GetMetric()[0].GetLabel()[0].GetValue() != "RotateRefresh") {
			t.Errorf("got %v", f)
		}
	}
}
