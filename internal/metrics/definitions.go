package metrics

import (
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// These are the metric names. A name is never reused for another metric.
const (
	requestDuration   = "mcp_authd_request_duration_seconds"
	guardDuration     = "mcp_authd_guard_duration_seconds"
	callDuration      = "mcp_authd_tool_call_duration_seconds"
	providerDuration  = "mcp_authd_provider_request_duration_seconds"
	storeDuration     = "mcp_authd_store_duration_seconds"
	storeFailures     = "mcp_authd_store_failures_total"
	signInSteps       = "mcp_authd_sign_in_steps_total"
	cacheLookups      = "mcp_authd_cache_lookups_total"
	keyAge            = "mcp_authd_signing_key_age_seconds"
	keyRotation       = "mcp_authd_signing_key_rotation_seconds"
	statusAge         = "mcp_authd_status_list_age_seconds"
	certificateLeft   = "mcp_authd_certificate_remaining_seconds"
	certificateTime   = "mcp_authd_certificate_lifetime_seconds"
	certificateFailed = "mcp_authd_certificate_attempt_failed"
	events            = "mcp_authd_events_total"
	registrations     = "mcp_authd_registrations_total"
	providerEvents    = "mcp_authd_provider_events_total"
	upstreamEvents    = "mcp_authd_upstream_events_total"
	eventsWaiting     = "mcp_authd_security_events_waiting"
	eventsOldest      = "mcp_authd_security_events_oldest_seconds"
	auditWaiting      = "mcp_authd_audit_waiting"
	auditLost         = "mcp_authd_audit_lost"
	auditSigned       = "mcp_authd_audit_signed"
	auditUnsigned     = "mcp_authd_audit_unsigned_seconds"
	databaseUsed      = "mcp_authd_database_bytes"
	databaseGrowth    = "mcp_authd_database_growth_bytes"
	databaseFree      = "mcp_authd_database_free_bytes"
	traceSpans        = "mcp_authd_trace_spans_total"
	sinkWaiting       = "mcp_authd_audit_sink_waiting"
	sinkOldest        = "mcp_authd_audit_sink_oldest_seconds"
	sinkLost          = "mcp_authd_audit_sink_lost"
)

// These are the steps from an authorization request to a tool call.
const (
	StepStarted   = "started"
	stepSignedIn  = "signed_in"
	stepConsented = "consented"
	stepRedeemed  = "redeemed"
	StepCalled    = "called"
)

// These are the caches.
const (
	CacheTokens    = "tokens"
	CacheDocuments = "client_documents"
)

// endpoints lists the endpoints that authserver.Config.Answered reports.
var endpoints = []string{
	"authorize", "token", "introspect", "revoke", "register", "par", "device_authorization", "jwks", "status_list",
	"metadata", "events", "reports", "health", "pages",
}

var (
	// statuses lists the status classes, and 499 for a client that disconnected.
	statuses = []string{"2xx", "3xx", "4xx", "499", "5xx"}
	// quick holds the buckets for actions as fast as a query, and slow those for actions that wait
	// for others.
	quick = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}
	slow  = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
)

// decisions lists the outcomes that a guard reports.
var decisions = []string{
	string(mcpresource.OutcomeAllowed), string(mcpresource.OutcomeHost), string(mcpresource.OutcomeOrigin),
	string(mcpresource.OutcomeMisconfigured), string(mcpresource.OutcomeUnauthenticated),
	string(mcpresource.OutcomeMalformed), string(mcpresource.OutcomeInvalidToken),
	string(mcpresource.OutcomeUnavailable), string(mcpresource.OutcomeLimited), string(mcpresource.OutcomeMethod),
	string(mcpresource.OutcomeTooLarge), string(mcpresource.OutcomeTooSlow), string(mcpresource.OutcomeCrowded),
	string(mcpresource.OutcomeAmbiguous), string(mcpresource.OutcomeInsufficientScope),
	string(mcpresource.OutcomeInsufficientAuthentication), string(mcpresource.OutcomeForbidden),
	string(mcpresource.OutcomeSession), string(mcpresource.OutcomeClearanceRequired),
	string(mcpresource.OutcomeClearanceRefused),
}

// passed lists the outcomes of calls that reached the MCP server.
var passed = []string{
	string(mcpresource.OutcomeOK), string(mcpresource.OutcomeError), string(mcpresource.OutcomeAborted),
	string(mcpresource.OutcomeEnded), string(mcpresource.OutcomeStopped), string(mcpresource.OutcomeTimeout),
}

// These are the rows of the dashboard.
const (
	rowPeople   = "People"
	rowRequests = "Requests"
	rowServers  = "MCP servers"
	rowHealth   = "Store, providers and keys"
	rowEvents   = "Events"
)

// Rows returns the rows of the dashboard from top to bottom.
func Rows() []string { return []string{rowPeople, rowRequests, rowServers, rowHealth, rowEvents} }

// Definitions returns all metrics, in the order of the documentation.
func Definitions() []Definition {
	all, rules := slices.Concat(people(), requests(), health(), certificates(), counted(), delivered()), alerts()
	for i, d := range all {
		all[i].Alerts = rules[d.Name]
	}
	return all
}

func people() []Definition {
	return []Definition{{
		Name: signInSteps,
		Kind: Counter,
		Help: "How far people got: an authorization or device request that a client began, a sign-in, a consent, " +
			"a code redeemed, the first tool call within an hour.",
		Labels: []Label{{"step", []string{StepStarted, stepSignedIn, stepConsented, stepRedeemed, StepCalled}}},
		Begin:  [][]string{{StepStarted}, {stepSignedIn}, {stepConsented}, {stepRedeemed}, {StepCalled}},
		Panel:  Panel{Row: rowPeople, Title: "From the first request to the first call", By: "step", Total: true},
	}}
}

func requests() []Definition {
	return []Definition{{
		Name:    requestDuration,
		Kind:    Histogram,
		Help:    "Time to answer requests to the authorization server.",
		Labels:  []Label{{"endpoint", endpoints}, {"status", statuses}},
		Buckets: slow,
		Panel:   Panel{Row: rowRequests, Title: "Requests to the authorization server", Unit: "s", By: "endpoint"},
	}, {
		Name:    guardDuration,
		Kind:    Histogram,
		Help:    "Time until the guard of the gateway has let a request through, or refused it.",
		Labels:  []Label{{"outcome", decisions}},
		Buckets: quick,
		Panel:   Panel{Row: rowServers, Title: "Decisions of the guard", Unit: "s", By: "outcome"},
	}, {
		Name:    callDuration,
		Kind:    Histogram,
		Help:    "Time of tool calls through the gateway that the guard has let through, until their answer was complete.",
		Labels:  []Label{{"resource", nil}, {"outcome", passed}},
		Most:    500,
		Buckets: slow,
		Panel:   Panel{Row: rowServers, Title: "Tool calls", Unit: "s", By: "resource"},
	}, {
		Name:    providerDuration,
		Kind:    Histogram,
		Help:    "Time of requests to providers; failed: no answer, a status of 429 or 5xx, or an invalid answer.",
		Labels:  []Label{{"connector", nil}, {"outcome", []string{"ok", "failed"}}},
		Most:    100,
		Buckets: slow,
		Panel:   Panel{Row: rowHealth, Title: "Requests to providers", Unit: "s", By: "connector"},
	}, {
		Name:    storeDuration,
		Kind:    Histogram,
		Help:    "Time of the verbs of the store.",
		Labels:  []Label{{"verb", nil}},
		Most:    400,
		Buckets: quick,
		Panel:   Panel{Row: rowHealth, Title: "Verbs of the store", Unit: "s", By: "verb"},
	}}
}

func health() []Definition {
	return []Definition{{
		Name:   storeFailures,
		Kind:   Counter,
		Help:   "Verbs of the store that failed: the database could not be asked, or did not do it.",
		Labels: []Label{{"verb", nil}},
		Most:   400,
		Panel:  Panel{Row: rowHealth, Title: "Failures of the store", Unit: "ops", By: "verb"},
	}, {
		Name:   cacheLookups,
		Kind:   Counter,
		Help:   "Questions that a cache could answer (hit) or not (miss).",
		Labels: []Label{{"cache", []string{CacheTokens, CacheDocuments}}, {"result", []string{"hit", "miss"}}},
		Panel:  Panel{Row: rowHealth, Title: "Cache misses", Unit: "ops", By: "cache", Where: `result="miss"`},
	}, {
		Name:  keyAge,
		Kind:  Gauge,
		Help:  "For how long the signing key has signed.",
		Panel: Panel{Row: rowHealth, Title: "Age of the signing key", Unit: "s"},
	}, {
		Name: keyRotation,
		Kind: Gauge,
		Help: "After how long it should be replaced (keys.rotate_every); 0: never.",
	}, {
		Name:  statusAge,
		Kind:  Gauge,
		Help:  "How long ago a status list could last be made: revocations since are not published.",
		Panel: Panel{Row: rowHealth, Title: "Age of the status list", Unit: "s"},
	}}
}

// certificates returns the metrics of the served certificates.
func certificates() []Definition {
	domain := []Label{{"domain", nil}}
	return []Definition{{
		Name:   certificateLeft,
		Kind:   Gauge,
		Help:   "For how long the certificate that is served for a domain is still valid; 0: no certificate.",
		Labels: domain,
		Most:   20,
		Panel:  Panel{Row: rowHealth, Title: "Certificates are good for", Unit: "s", By: "domain"},
	}, {
		Name:   certificateTime,
		Kind:   Gauge,
		Help:   "For how long it is good in all. One that comes by ACME is renewed when a third is left.",
		Labels: domain,
		Most:   20,
	}, {
		Name:   certificateFailed,
		Kind:   Gauge,
		Help:   "1 when the last attempt of this server to get a certificate by ACME failed, else 0.",
		Labels: domain,
		Most:   20,
	}}
}

// counted returns the metrics that count audit events.
func counted() []Definition {
	return []Definition{{
		Name:   events,
		Kind:   Counter,
		Help:   "Audit events, by event and, for refusals, the protocol's error code.",
		Labels: []Label{{"event", nil}, {"error", nil}},
		Most:   500,
		Begin:  [][]string{{audit.SecurityEventDropped, ""}, {audit.TokenReuse, ""}, {audit.LoginThrottled, ""}},
		Panel:  Panel{Row: rowEvents, Title: "Audit events", Unit: "ops", By: "event"},
	}, {
		Name:   registrations,
		Kind:   Counter,
		Help:   "Client registrations: sealed into the id, stored in a row, replaced by the client, or refused with an error code.",
		Labels: []Label{{"outcome", []string{"sealed", "stored", "replaced", "refused"}}, {"error", nil}},
		Most:   50,
		Panel:  Panel{Row: rowEvents, Title: "Registrations", Unit: "ops", By: "outcome"},
	}, {
		Name:   providerEvents,
		Kind:   Counter,
		Help:   "Events of providers, by event and connector; the reason is why a session ended, or the error code of a refusal.",
		Labels: []Label{{"event", nil}, {"connector", nil}, {"reason", nil}},
		Most:   500,
		Panel:  Panel{Row: rowEvents, Title: "Events of providers", Unit: "ops", By: "event"},
	}, {
		Name:   upstreamEvents,
		Kind:   Counter,
		Help:   "Renamed: use mcp_authd_provider_events_total. This name goes with the next minor version.",
		Labels: []Label{{"event", nil}, {"connector", nil}, {"reason", nil}},
		Most:   500,
	}, {
		Name:   eventsWaiting,
		Kind:   Gauge,
		Help:   "Security events that wait for a receiver.",
		Labels: []Label{{"receiver", nil}},
		Most:   100,
		Panel:  Panel{Row: rowEvents, Title: "Security events that wait", By: "receiver"},
	}, {
		Name:   eventsOldest,
		Kind:   Gauge,
		Help:   "For how long the oldest of them has waited.",
		Labels: []Label{{"receiver", nil}},
		Most:   100,
		Panel:  Panel{Row: rowEvents, Title: "The oldest of them", Unit: "s", By: "receiver"},
	}, {
		Name:  auditWaiting,
		Kind:  Gauge,
		Help:  "Entries that wait to be appended to the audit log.",
		Panel: Panel{Row: rowEvents, Title: "Audit entries that wait"},
	}, {
		Name:  auditLost,
		Kind:  Gauge,
		Help:  "Entries of the audit log that were lost since the start.",
		Panel: Panel{Row: rowEvents, Title: "Audit entries that were lost"},
	}, {
		Name:  auditSigned,
		Kind:  Gauge,
		Help:  "How many entries the newest checkpoint of the audit log has signed.",
		Panel: Panel{Row: rowEvents, Title: "Audit entries that are signed"},
	}, {
		Name:  auditUnsigned,
		Kind:  Gauge,
		Help:  "For how long this server has not been able to sign the audit log; 0 while it is signed.",
		Panel: Panel{Row: rowEvents, Title: "Audit log not signed for", Unit: "s"},
	}, {
		Name:  databaseUsed,
		Kind:  Gauge,
		Help:  "Bytes that the database has.",
		Panel: Panel{Row: rowEvents, Title: "Size of the database", Unit: "bytes"},
	}, {
		Name:  databaseGrowth,
		Kind:  Gauge,
		Help:  "Bytes by which the database grows in a day, on average over 30 days at most; 0 on the first day.",
		Panel: Panel{Row: rowEvents, Title: "Growth of the database in a day", Unit: "bytes"},
	}, {
		Name:  databaseFree,
		Kind:  Gauge,
		Help:  "Bytes that are left on the disk of the database; missing with PostgreSQL.",
		Panel: Panel{Row: rowEvents, Title: "Left on the disk of the database", Unit: "bytes"},
	}, {
		Name:   traceSpans,
		Kind:   Counter,
		Help:   "Spans of traces: sent to the collector, failed to be, or dropped because too many waited for it.",
		Labels: []Label{{"result", []string{"sent", "failed", "dropped"}}},
		Panel:  Panel{Row: rowEvents, Title: "Spans that did not arrive", By: "result", Where: `result!="sent"`},
	}}
}

// delivered returns the metrics of the delivery to log destinations.
func delivered() []Definition {
	sink := []Label{{"sink", nil}}
	return []Definition{{
		Name:   sinkWaiting,
		Kind:   Gauge,
		Help:   "Entries of the audit log that a sink does not have yet. All replicas say the same.",
		Labels: sink,
		Most:   20,
		Panel:  Panel{Row: rowEvents, Title: "Audit entries that wait for a sink", By: "sink"},
	}, {
		Name:   sinkOldest,
		Kind:   Gauge,
		Help:   "For how long the oldest of them has waited.",
		Labels: sink,
		Most:   20,
		Panel:  Panel{Row: rowEvents, Title: "The oldest of them", Unit: "s", By: "sink"},
	}, {
		Name:   sinkLost,
		Kind:   Gauge,
		Help:   "Entries that a sink will never have: they were removed by their age before, or cannot be read.",
		Labels: sink,
		Most:   20,
		Panel:  Panel{Row: rowEvents, Title: "Audit entries that a sink has lost", By: "sink"},
	}}
}
