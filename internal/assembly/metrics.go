package assembly

import (
	"cmp"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mcp-authd/mcp-authd/audit"
)

// Metrics counts what the audit log tells, for /metrics on the management listener. The
// labels come from closed sets: events, and the error codes of the protocol.
type Metrics struct {
	registry      *prometheus.Registry
	events        *prometheus.CounterVec
	registrations *prometheus.CounterVec
	providers     *prometheus.CounterVec
	waiting       *prometheus.GaugeVec // security events, by receiver
	oldest        *prometheus.GaugeVec // in seconds
	auditWaiting  prometheus.Gauge
	auditLost     prometheus.Gauge
	auditSigned   prometheus.Gauge       // the size of the newest checkpoint
	upstreams     *prometheus.CounterVec // providers, under the names of the version before
}

func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcp_authd_events_total",
			Help: "Audit events, by event and, for refusals, the protocol's error code.",
		}, []string{"event", "error"}),
		registrations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcp_authd_registrations_total",
			Help: "Client registrations: sealed into the id, stored in a row, replaced by the client, or refused with an error code.",
		}, []string{"outcome", "error"}),
		providers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcp_authd_provider_events_total",
			Help: "Events of providers, by event and connector; the reason is why a session ended, or the error code of a refusal.",
		}, []string{"event", "connector", "reason"}),
		upstreams: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcp_authd_upstream_events_total",
			Help: "Renamed: use mcp_authd_provider_events_total. This name goes with the next minor version.",
		}, []string{"event", "connector", "reason"}),
	}
	m.waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "mcp_authd_security_events_waiting", Help: "Security events that wait for a receiver.",
	}, []string{"receiver"})
	m.oldest = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "mcp_authd_security_events_oldest_seconds", Help: "For how long the oldest of them has waited.",
	}, []string{"receiver"})
	m.auditWaiting = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "mcp_authd_audit_waiting", Help: "Entries that wait to be appended to the audit log.",
	})
	m.auditLost = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "mcp_authd_audit_lost", Help: "Entries of the audit log that were lost since the start.",
	})
	m.auditSigned = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "mcp_authd_audit_signed", Help: "How many entries the newest checkpoint of the audit log has signed.",
	})
	m.registry.MustRegister(m.events, m.registrations, m.providers, m.upstreams, m.waiting, m.oldest,
		m.auditWaiting, m.auditLost, m.auditSigned,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	return m
}

// Count is an audit.Counter.
func (m *Metrics) Count(event string, attrs []slog.Attr) {
	code, outcome, connector, reason := "", "sealed", "", ""
	for _, a := range attrs {
		switch a.Key {
		case "error":
			code = a.Value.String()
		case "connector":
			connector = a.Value.String()
		case "reason":
			reason = a.Value.String()
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
	m.events.WithLabelValues(event, code).Inc()
	if old := audit.Formerly(event); old != "" {
		m.events.WithLabelValues(old, code).Inc()
	}
	switch event {
	case audit.ClientRegistered:
		m.registrations.WithLabelValues(outcome, "").Inc()
	case audit.ClientRefused:
		m.registrations.WithLabelValues("refused", code).Inc()
	case audit.ProviderEnded: // its reasons are a closed set, those of others prose
		m.countProvider(event, connector, reason)
	case audit.ProviderSignedIn, audit.ProviderLinked, audit.ProviderRefused, audit.ProviderAbandoned,
		audit.ProviderUnreachable, audit.TokenExchanged:
		m.countProvider(event, connector, code)
	}
}

func (m *Metrics) countProvider(event, connector, reason string) {
	m.providers.WithLabelValues(event, connector, reason).Inc()
	m.upstreams.WithLabelValues(cmp.Or(audit.Formerly(event), event), connector, reason).Inc()
}

func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
