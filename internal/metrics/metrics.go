// Package metrics counts and times what the server does, for /metrics on the management listener (OB-07).
// definitions.go says all of each metric; the server, the dashboard, the alert rules and the
// documentation are made from it, so that they cannot disagree.
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

	"github.com/mcp-authd/mcp-authd/storage"
)

// Metrics are the metrics of one process. A nil *Metrics counts nothing.
type Metrics struct {
	registry *prometheus.Registry
	families map[string]*family
}

// New returns the metrics, with those of the runtime beside them.
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

// Handler serves them.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Request counts a request to the authorization server, with the time until it was answered.
func (m *Metrics) Request(endpoint string, status int, took time.Duration) {
	label := strconv.Itoa(status)
	if !slices.Contains(statuses, label) {
		label = strconv.Itoa(status/100) + "xx"
	}
	m.observe(requestDuration, took, endpoint, label)
}

// Guard counts a decision of a guard, with the time that it took.
func (m *Metrics) Guard(outcome string, took time.Duration) { m.observe(guardDuration, took, outcome) }

// ToolCall counts a tool call that the gateway has let through, with the time until its answer was
// complete.
func (m *Metrics) ToolCall(resource, outcome string, took time.Duration) {
	m.observe(callDuration, took, resource, outcome)
}

// Provider counts a request to a provider, with the time until its answer, or until there was an err.
func (m *Metrics) Provider(connector string, took time.Duration, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	m.observe(providerDuration, took, connector, outcome)
}

// Store counts a verb of the store, with the time that it took. err is a failure of the store unless
// the contract has it.
func (m *Metrics) Store(verb string, took time.Duration, err error) {
	m.observe(storeDuration, took, verb)
	if storage.Failed(err) {
		m.count(storeFailures, verb)
	}
}

// Cache counts a question that a cache has answered, or not.
func (m *Metrics) Cache(cache string, hit bool) {
	result := "miss"
	if hit {
		result = "hit"
	}
	m.count(cacheLookups, cache, result)
}

// Step counts a person who got so far.
func (m *Metrics) Step(step string) { m.count(signInSteps, step) }

// Backlog sets what waits for receivers of security events.
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

// AuditLog sets how many entries of the audit log wait, and how many were lost since the start.
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

// Spans counts spans of traces, by what became of them.
func (m *Metrics) Spans(result string, n int) {
	if m != nil {
		m.families[traceSpans].of(result).(prometheus.Counter).Add(float64(n))
	}
}

// AuditSigned sets how many entries of the audit log are signed.
func (m *Metrics) AuditSigned(size int64) { m.set(auditSigned, float64(size)) }

// AuditUnsigned sets for how long this server has not been able to sign the audit log, 0 while it is.
func (m *Metrics) AuditUnsigned(since time.Duration) { m.set(auditUnsigned, since.Seconds()) }

// AuditSink sets what waits for a sink of the audit log, for how long the oldest entry has, and how many
// entries it will never have.
func (m *Metrics) AuditSink(sink string, waiting int64, oldest time.Duration, lost int64) {
	m.set(sinkWaiting, float64(waiting), sink)
	m.set(sinkOldest, oldest.Seconds(), sink)
	m.set(sinkLost, float64(lost), sink)
}

// SigningKey sets for how long the signing key has signed, and after how long it should be replaced.
func (m *Metrics) SigningKey(age, rotation time.Duration) {
	m.set(keyAge, age.Seconds())
	m.set(keyRotation, rotation.Seconds())
}

// Certificate sets how long the certificate of a domain is still good, and how long it is in all. Zero times: there is
// none.
func (m *Metrics) Certificate(domain string, notBefore, notAfter, now time.Time) {
	left := 0.0
	if !notAfter.IsZero() {
		left = notAfter.Sub(now).Seconds()
	}
	m.set(certificateLeft, left, domain)
	m.set(certificateTime, notAfter.Sub(notBefore).Seconds(), domain)
}

// CertificateFailed sets whether the last attempt of this server to get a certificate failed.
func (m *Metrics) CertificateFailed(domain string, failed bool) {
	value := 0.0
	if failed {
		value = 1
	}
	m.set(certificateFailed, value, domain)
}

// StatusList sets how long ago it was last possible to make a status list.
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
