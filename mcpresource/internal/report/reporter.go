// Package report sends the decisions of guards to an authorization server in another process.
package report

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/reference"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/issuer"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/logged"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// ReporterConfig states the authorization server for reports and the client's credentials. Issuer,
// ClientID and ClientSecret are required.
type ReporterConfig struct {
	Issuer   string
	Endpoint string // discovered if empty
	// ClientID and ClientSecret are this resource server's own credentials, as in
	// IntrospectionConfig. The operator must have assigned the resource to that client.
	ClientID, ClientSecret string
	// Every is how long entries wait for more before a report is sent. Default: 2 seconds.
	Every      time.Duration
	HTTPClient *http.Client
	Now        func() time.Time
	Logger     *slog.Logger // default: discard
}

// Limits of a Reporter.
const (
	reportEvery = 2 * time.Second
	// maxDecisions and maxCalls limit the waiting entries. They are separate, so that a flood of
	// refused requests loses no calls.
	maxDecisions = 1000
	maxCalls     = 4096
	// maxReport is the maximum size of a report in bytes; the authorization server accepts 64 KiB
	// with credentials.
	maxReport = 60 << 10
	// After a failure, the first retry follows retryFirst later, further ones at most retryMost
	// later, until giveUp.
	retryFirst = time.Second
	retryMost  = time.Minute
	giveUp     = 15 * time.Minute
)

// Reporter reports decisions of this process's guards to an mcp-authd in another process. As
// Config.Decisions it reports requests refused with 401 and 403, so that the operator finds them by
// reference. With KeepCalls it reports tool calls for the audit log. Requests do not wait for it.
// Reports are batches, retried for up to 15 minutes; lost entries are counted. It is safe for
// concurrent use, and for several guards.
type Reporter struct {
	c        ReporterConfig
	endpoint *issuer.Endpoint
	full     chan struct{} // a report is full
	stop     chan struct{}
	stopped  chan struct{}
	closing  sync.Once

	mu        sync.Mutex // guards the fields below
	closed    bool
	decisions []oauth.Decision
	calls     []oauth.Call
	sending   int    // entries taken out for sending
	unsent    *batch // for Close
	stats     ReporterStats
	told      int64     // lost entries that were reported as lost
	warned    time.Time // when a failure was last logged
}

// ReporterStats counts decisions and calls.
type ReporterStats struct {
	Waiting int64 // in memory
	Taken   int64 // by the authorization server
	Refused int64 // by it: not of this resource server, or invalid
	Lost    int64 // too many waited, or the authorization server could not be reached for too long
}

// NewReporter returns a reporter that runs until Close. It sends no request yet.
func NewReporter(c ReporterConfig) (*Reporter, error) {
	endpoint, err := issuer.NewEndpoint(issuer.EndpointConfig{
		Name:         "resource reports endpoint",
		Issuer:       c.Issuer,
		Location:     c.Endpoint,
		Locate:       func(m issuer.Metadata) string { return m.Reports },
		ClientID:     c.ClientID,
		ClientSecret: c.ClientSecret,
		Client:       c.HTTPClient,
		Timeout:      2 * issuer.FetchTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("mcpresource: %w", err)
	}
	c.Every = cmp.Or(c.Every, reportEvery)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Reporter{
		c: c, endpoint: endpoint, full: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	go r.run()
	return r, nil
}

// Refused implements Decisions. Requests of browsers and search engines without a token get a
// reference but are not reported.
func (r *Reporter) Refused(req *http.Request, d oauth.Decision) string {
	d.Reference = reference.NewOf(r.c.ClientID)
	if d.Scheme == "" && !asksForMCP(req) || d.Error == oauth.UseDPoPNonce { // RFC 9449 §9: the client retries
		return d.Reference
	}
	if d.Issuer != r.c.Issuer {
		d.Issuer, d.ClientID, d.GrantID, d.Subject = "", "", "", ""
	}
	d.Sender, d.Claims = senderOf(req), r.claims(req)
	r.decided(d)
	return d.Reference
}

// LetThrough implements Decisions.
func (r *Reporter) LetThrough(_ context.Context, d oauth.Decision) {
	if d.Issuer == r.c.Issuer {
		r.decided(d)
	}
}

// Called implements CallKeeper.
func (r *Reporter) Called(_ context.Context, c oauth.Call) {
	if c.Issuer != r.c.Issuer {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.calls) == maxCalls {
		r.stats.Lost++
		return
	}
	r.calls = append(r.calls, c)
	r.hurry()
}

// Stats returns the current counts.
func (r *Reporter) Stats() ReporterStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Waiting = int64(len(r.decisions) + len(r.calls) + r.sending)
	return s
}

func (r *Reporter) decided(d oauth.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.decisions) == maxDecisions {
		r.stats.Lost++
		return
	}
	r.decisions = append(r.decisions, d)
	r.hurry()
}

// hurry triggers a report when it is full. The caller holds the lock.
func (r *Reporter) hurry() {
	if len(r.decisions)+len(r.calls) >= oauth.MaxReported {
		select {
		case r.full <- struct{}{}:
		default:
		}
	}
}

// claims returns the unverified claims of the token of a request, if its claimed issuer is the
// authorization server. They contain no usable token.
func (r *Reporter) claims(req *http.Request) *oauth.AccessTokenClaims {
	_, token, _ := strings.Cut(strings.TrimSpace(req.Header.Get("Authorization")), " ")
	token = strings.TrimSpace(token)
	if len(token) > issuer.MaxToken || issuer.Claimed(token) != r.c.Issuer {
		return nil
	}
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	var said struct {
		Expires  json.Number     `json:"exp"`
		IssuedAt json.Number     `json:"iat"`
		TokenID  string          `json:"jti"`
		GrantID  string          `json:"gid"`
		NodeID   string          `json:"nid"`
		ClientID string          `json:"client_id"`
		Audience issuer.Audience `json:"aud"`
	}
	if err != nil || json.Unmarshal(raw, &said) != nil {
		return nil
	}
	c := &oauth.AccessTokenClaims{
		Issuer: r.c.Issuer, TokenID: logged.Cut(said.TokenID, maxClaim), GrantID: logged.Cut(said.GrantID, maxClaim),
		NodeID: logged.Cut(said.NodeID, maxClaim), ClientID: logged.Cut(said.ClientID, maxClaim),
	}
	if len(said.Audience) > 0 {
		c.Audience = logged.Cut(said.Audience[0], maxClaim)
	}
	if at := issuer.NumericDate(said.Expires); !at.IsZero() {
		c.Expires = at.Unix()
	}
	if at := issuer.NumericDate(said.IssuedAt); !at.IsZero() {
		c.IssuedAt = at.Unix()
	}
	return c
}

const (
	maxClaim   = 512 // bytes
	maxHeaders = 40
)

// senderOf describes the sender of a request, with the names of its headers.
func senderOf(r *http.Request) *oauth.Sender {
	agent, _, _ := strings.Cut(r.UserAgent(), " ")
	s := &oauth.Sender{Address: logged.Host(r.RemoteAddr), Agent: logged.Cut(agent, 64)}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if len(name) <= 40 && len(s.Headers) < maxHeaders {
			s.Headers = append(s.Headers, name)
		}
	}
	return s
}

// asksForMCP reports whether a request without a token looks like one of an MCP client.
func asksForMCP(r *http.Request) bool {
	return r.Method == http.MethodPost || r.Header.Get("Mcp-Protocol-Version") != "" ||
		strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}
