package mcpresource

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
	"github.com/mcp-authd/mcp-authd/oauth"
)

// ReporterConfig says to which authorization server is reported, and as which client. Issuer, ClientID and
// ClientSecret are required.
type ReporterConfig struct {
	Issuer   string
	Endpoint string // found by discovery when empty
	// ClientID and ClientSecret are this resource server's own credentials, those of its
	// IntrospectionConfig. The operator has assigned the resource to that client.
	ClientID, ClientSecret string
	// Every is how long what is to be reported waits for more. Default: 2 seconds.
	Every      time.Duration
	HTTPClient *http.Client
	Now        func() time.Time
	Logger     *slog.Logger // default: discard
}

// The bounds of a Reporter.
const (
	reportEvery = 2 * time.Second
	// maxDecisions and maxCalls bound what waits in memory, apart: a flood of refused requests loses no calls.
	maxDecisions = 1000
	maxCalls     = 4096
	// maxReport bounds a report as it is sent, in bytes; the authorization server takes 64 KiB with credentials.
	maxReport = 60 << 10
	// retryFirst and retryMost are how long after a failure is tried again, and giveUp for how long.
	retryFirst = time.Second
	retryMost  = time.Minute
	giveUp     = 15 * time.Minute
)

// Reporter tells an authorization server in another process, which is mcp-authd, what guards of this one
// decide: as Config.Decisions it reports what is refused with 401 and 403, so that the operator finds it by its
// reference, and by KeepCalls the calls of tools, which become entries of the audit log. No request waits for
// that. Reports are batches that are repeated until they are taken, or for 15 minutes; what is lost is counted.
// It is safe for concurrent use, and for several guards.
type Reporter struct {
	c        ReporterConfig
	endpoint *issuer.Endpoint
	full     chan struct{} // a report is full
	stop     chan struct{}
	stopped  chan struct{}
	closing  sync.Once

	mu        sync.Mutex // guards what follows
	closed    bool
	decisions []oauth.Decision
	calls     []oauth.Call
	sending   int    // of those that were taken out to be sent
	unsent    *batch // for Close
	stats     ReporterStats
	told      int64     // of the lost ones, those that the authorization server knows of
	warned    time.Time // when a failure was last logged
}

// ReporterStats counts decisions and calls.
type ReporterStats struct {
	Waiting int64 // in memory
	Taken   int64 // by the authorization server
	Refused int64 // by it: not of this resource server, or not as it should be
	Lost    int64 // too many waited, or the authorization server could not be reached for too long
}

// NewReporter returns a reporter, which works until Close. It sends no request yet.
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

// Refused implements Decisions. A browser or search engine that comes without a token gets a reference and is
// not reported.
func (r *Reporter) Refused(req *http.Request, d oauth.Decision) string {
	d.Reference = reference.NewOf(r.c.ClientID)
	if d.Scheme == "" && !asksForMCP(req) || d.Error == oauth.UseDPoPNonce { // RFC 9449 §9: the client goes on
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

// Stats returns what became of what was to be reported.
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

// hurry has a report sent when it is full. The caller holds the lock.
func (r *Reporter) hurry() {
	if len(r.decisions)+len(r.calls) >= oauth.MaxReported {
		select {
		case r.full <- struct{}{}:
		default:
		}
	}
}

// claims are what the token of a request says, when it says that the authorization server has issued it. They
// name no token that anybody could use.
func (r *Reporter) claims(req *http.Request) *oauth.AccessTokenClaims {
	_, token, _ := strings.Cut(strings.TrimSpace(req.Header.Get("Authorization")), " ")
	token = strings.TrimSpace(token)
	if len(token) > maxToken || claimedIssuer(token) != r.c.Issuer {
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
		Issuer: r.c.Issuer, TokenID: cut(said.TokenID, maxClaim), GrantID: cut(said.GrantID, maxClaim),
		NodeID: cut(said.NodeID, maxClaim), ClientID: cut(said.ClientID, maxClaim),
	}
	if len(said.Audience) > 0 {
		c.Audience = cut(said.Audience[0], maxClaim)
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

// senderOf is how a request looks: of headers, which there are.
func senderOf(r *http.Request) *oauth.Sender {
	agent, _, _ := strings.Cut(r.UserAgent(), " ")
	s := &oauth.Sender{Address: host(r.RemoteAddr), Agent: cut(agent, 64)}
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
