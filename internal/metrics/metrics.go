// Package metrics counts and measures the server's actions for /metrics on the management listener
// (OB-07). definitions.go describes every metric. The server, the dashboard, the alert rules and
// the documentation are generated from it, so they cannot disagree.
package metrics

//go:generate go run ./genmonitoring ../..

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Metrics holds the metrics of one process. A nil *Metrics counts nothing.
type Metrics struct {
	registry *prometheus.Registry
	families map[string]*family
}

// New returns the metrics, including those of the Go runtime.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), families: map[string]*family{}}
	for _, d := range Definitions() {
		f := newFamily(d)
		m.families[d.Name] = f
		m.registry.MustRegister(f.vec)
	}
	m.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	return m
}

// Handler returns the handler for /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Request counts a request to the authorization server and its duration.
func (m *Metrics) Request(endpoint string, status int, took time.Duration) {
	label := strconv.Itoa(status)
	if !slices.Contains(statuses, label) {
		label = strconv.Itoa(status/100) + "xx"
	}
	m.observe(requestDuration, took, endpoint, label)
}

// Guard counts a decision of a guard and its duration.
func (m *Metrics) Guard(outcome string, took time.Duration) { m.observe(guardDuration, took, outcome) }

// ToolCall counts a tool call that the gateway has forwarded. The duration ends when the response
// is complete.
func (m *Metrics) ToolCall(resource, outcome string, took time.Duration) {
	m.observe(callDuration, took, resource, outcome)
}

// Provider counts a request to a provider. The duration ends with the response or the error.
func (m *Metrics) Provider(connector string, took time.Duration, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	m.observe(providerDuration, took, connector, outcome)
}

// Store counts a store operation and its duration. err counts as a failure of the store unless the
// contract allows it.
func (m *Metrics) Store(verb string, took time.Duration, err error) {
	m.observe(storeDuration, took, verb)
	if storage.Failed(err) {
		m.count(storeFailures, verb)
	}
}

// Cache counts a lookup in a cache and whether it was a hit.
func (m *Metrics) Cache(cache string, hit bool) {
	result := "miss"
	if hit {
		result = "hit"
	}
	m.count(cacheLookups, cache, result)
}

// Step counts a user who reached a step.
func (m *Metrics) Step(step string) { m.count(signInSteps, step) }

// Backlog sets the backlogs of receivers of security events.
func (m *Metrics) Backlog(all []storage.Backlog, now time.Time) {
	for _, b := range all {
		age := 0.0
		if !b.Oldest.IsZero() {
			age = max(now.Sub(b.Oldest).Seconds(), 0)
		}
		m.set(eventsWaiting, float64(b.Waiting), b.Receiver)
		m.set(eventsOldest, age, b.Receiver)
	}
}

// AuditLog sets how many entries of the audit log are waiting, and how many were lost since the
// start.
func (m *Metrics) AuditLog(waiting int, lost int64) {
	m.set(auditWaiting, float64(waiting))
	m.set(auditLost, float64(lost))
}

// Database sets the size of the database in bytes, its growth in a day, and how much is left on its disk, -1 for
// unknown.
func (m *Metrics) Database(used, perDay, free int64) {
	m.set(databaseUsed, float64(used))
	m.set(databaseGrowth, float64(perDay))
	if free >= 0 {
		m.set(databaseFree, float64(free))
	}
}

// Spans counts trace spans by result.
func (m *Metrics) Spans(result string, n int) {
	if m != nil {
		m.families[traceSpans].of(result).(prometheus.Counter).Add(float64(n))
	}
}

// AuditSigned sets how many entries of the audit log are signed.
func (m *Metrics) AuditSigned(size int64) { m.set(auditSigned, float64(size)) }

// AuditUnsigned sets for how long this server has been unable to sign the audit log, or 0.
func (m *Metrics) AuditUnsigned(since time.Duration) { m.set(auditUnsigned, since.Seconds()) }

// AuditSink sets the number of waiting entries of a log destination, the age of the oldest one, and
// the number of lost entries.
func (m *Metrics) AuditSink(sink string, waiting int64, oldest time.Duration, lost int64) {
	m.set(sinkWaiting, float64(waiting), sink)
	m.set(sinkOldest, oldest.Seconds(), sink)
	m.set(sinkLost, float64(lost), sink)
}

// SigningKey sets the age of the signing key, and the age at its rotation.
func (m *Metrics) SigningKey(age, rotation time.Duration) {
	m.set(keyAge, age.Seconds())
	m.set(keyRotation, rotation.Seconds())
}

// Certificate sets the remaining validity of a domain's certificate and its total validity. Zero
// times mean that the domain has no certificate.
func (m *Metrics) Certificate(domain string, notBefore, notAfter, now time.Time) {
	left := 0.0
	if !notAfter.IsZero() {
		left = notAfter.Sub(now).Seconds()
	}
	m.set(certificateLeft, left, domain)
	m.set(certificateTime, notAfter.Sub(notBefore).Seconds(), domain)
}

// CertificateFailed sets whether this server's last attempt to get a certificate failed.
func (m *Metrics) CertificateFailed(domain string, failed bool) {
	value := 0.0
	if failed {
		value = 1
	}
	m.set(certificateFailed, value, domain)
}

// StatusList sets the time since a status list was last created.
func (m *Metrics) StatusList(age time.Duration) { m.set(statusAge, age.Seconds()) }

func (m *Metrics) count(name string, labels ...string) {
	if m != nil {
		m.families[name].of(labels...).(prometheus.Counter).Inc()
	}
}

func (m *Metrics) set(name string, value float64, labels ...string) {
	if m != nil {
		m.families[name].of(labels...).(prometheus.Gauge).Set(value)
	}
}

func (m *Metrics) observe(name string, took time.Duration, labels ...string) {
	if m != nil {
		m.families[name].of(labels...).(prometheus.Observer).Observe(took.Seconds())
	}
}
