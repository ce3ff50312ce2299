package mcpresource

import (
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/broker"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/clearance"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/report"
)

// Broker gets tokens of upstream providers, such as GitHub or Google, for the users who call this
// resource server. It sends the caller's MCP token, which only the Guard can read, to the
// authorization server, authenticated as this resource server's client. It gets a provider token
// for the same user (RFC 8693). The MCP token is never sent to the provider. The provider's token
// never reaches the MCP client, unless a tool puts it into a result (RS-202).
//
// Tokens are cached by user, grant, provider and set of scopes. A Broker is safe for concurrent
// use, and logs nothing.
type Broker = broker.Broker

// BrokerConfig configures a Broker. Issuer, ClientID and ClientSecret are required.
type BrokerConfig = broker.BrokerConfig

// NewBroker returns a broker. It sends no request yet.
func NewBroker(c BrokerConfig) (*Broker, error) {
	return broker.NewBroker(c)
}

// UpstreamToken is a token of an upstream provider. Logging and JSON encoding omit the token.
type UpstreamToken = broker.UpstreamToken

// InteractionRequiredError means that the user must first visit a page of the authorization server,
// to connect an account at the provider or to allow more access. The browser must be signed in as
// the same user (RS-200). Package gosdk turns the error into a question to the user in the MCP
// client. Elsewhere the error text contains the link.
type InteractionRequiredError = broker.InteractionRequiredError

var (

	// ErrBrokerUnavailable is wrapped by errors for a token that is not available now.
	ErrBrokerUnavailable = broker.ErrBrokerUnavailable
)

// Clearances requests approvals of tool calls from the authorization server. authserver.Server
// implements it, and NewClearances returns one for a server in another process.
type Clearances = clearance.Clearances

// ClearancesConfig configures NewClearances. Issuer, ClientID and ClientSecret are required. The
// default HTTPClient follows no redirects and has a timeout of ten seconds. The default of Now is
// time.Now.
type ClearancesConfig = clearance.ClearancesConfig

// NewClearances returns a Clearances for an authorization server in another process. It sends no
// request yet. The error names a missing member, or a URL that is not https (http on loopback).
// Clear returns an error that wraps ErrUnavailable if the server cannot be reached. It is safe for
// concurrent use, and logs nothing.
func NewClearances(c ClearancesConfig) (Clearances, error) {
	return clearance.NewClearances(c)
}

// Reporter reports decisions of this process's guards to an mcp-authd in another process. As
// Config.Decisions it reports requests refused with 401 and 403, so that the operator finds them by
// reference. With KeepCalls it reports tool calls for the audit log. Requests do not wait for it.
// Reports are batches, retried for up to 15 minutes; lost entries are counted. It is safe for
// concurrent use, and for several guards.
type Reporter = report.Reporter

// ReporterConfig states the authorization server for reports and the client's credentials. Issuer,
// ClientID and ClientSecret are required.
type ReporterConfig = report.ReporterConfig

// ReporterStats counts decisions and calls.
type ReporterStats = report.ReporterStats

// NewReporter returns a reporter that runs until Close. It sends no request yet.
func NewReporter(c ReporterConfig) (*Reporter, error) {
	return report.NewReporter(c)
}
