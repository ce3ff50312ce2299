package metrics

import (
	"cmp"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Count counts an audit event. It is an audit.Counter.
func (m *Metrics) Count(event string, attrs []slog.Attr) {
	code, outcome, connector, reason, grantType := "", "sealed", "", "", ""
	for _, a := range attrs {
		switch a.Key {
		case "error":
			code = a.Value.String()
		case "connector":
			connector = a.Value.String()
		case "reason":
			reason = a.Value.String()
		case "grant_type":
			grantType = a.Value.String()
		case "stored":
			if a.Value.Bool() && outcome == "sealed" {
				outcome = "stored"
			}
		case "replaced":
			if a.Value.Bool() {
				outcome = "replaced"
			}
		}
	}
	m.count(events, event, code)
	if old := audit.Formerly(event); old != "" {
		m.count(events, old, code)
	}
	switch event {
	case audit.ClientRegistered:
		m.count(registrations, outcome, "")
	case audit.ClientRefused:
		m.count(registrations, "refused", code)
	case audit.ProviderEnded: // its reasons are a closed set; the reasons of other events are prose
		m.countProvider(event, connector, reason)
	case audit.ProviderSignedIn, audit.ProviderLinked, audit.ProviderRefused, audit.ProviderAbandoned,
		audit.ProviderUnreachable, audit.TokenExchanged:
		m.countProvider(event, connector, code)
	}
	m.countStep(event, grantType)
}

// countStep counts the sign-in steps that events report.
func (m *Metrics) countStep(event, grantType string) {
	switch event {
	case audit.DeviceRequested:
		m.Step(StepStarted)
	case audit.LoginSucceeded, audit.ProviderSignedIn:
		m.Step(stepSignedIn)
	case audit.ConsentApproved:
		m.Step(stepConsented)
	case audit.TokenIssued:
		if grantType == oauth.GrantCode || grantType == oauth.GrantDeviceCode {
			m.Step(stepRedeemed)
		}
	}
}

func (m *Metrics) countProvider(event, connector, reason string) {
	m.count(providerEvents, event, connector, reason)
	m.count(upstreamEvents, cmp.Or(audit.Formerly(event), event), connector, reason)
}
