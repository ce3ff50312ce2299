package attempt

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TokenState is the state of a token in a request that a resource server refused.
type TokenState string

// The states.
const (
	TokenNone    TokenState = "none"    // the request had no Authorization
	TokenForeign TokenState = "foreign" // not issued by this server
	TokenExpired TokenState = "expired"
	TokenEnded   TokenState = "ended" // revoked before it expired
	TokenActive  TokenState = "active"
)

var tokenStates = []TokenState{TokenNone, TokenForeign, TokenExpired, TokenEnded, TokenActive}

// Parameters of a call. No endpoint has parameters with these names.
const (
	paramMethod = "mcp_method"
	paramTool   = "mcp_tool"
	paramToken  = "token_state"
)

// Presented describes the token of the request.
type Presented struct {
	State    TokenState
	Keys     Keys   // client, user and grant
	Audience string // the MCP server that the token is for
}

const (
	// holdExpired is how long a refusal of an expired token is held back. Most clients learn from
	// it that they must refresh, and do. It is stored only if they do not.
	holdExpired = 30 * time.Second
	maxHeld     = 4096
	maxNetworks = 10_000 // networks whose calls are counted
)

// callsPerNetwork limits the refused calls that each server stores per network. They have a
// separate limit, so that a client that repeats a call does not displace its own sign-in.
var callsPerNetwork = bounded.PerSecond(0.2, 60)

// perReporter limits the steps stored from one resource server in another process, because it can
// attribute them to any network.
var perReporter = bounded.PerSecond(0.2, 600)

// held is a step that may turn out to be routine.
type held struct {
	step    Step
	until   time.Time
	settled func(context.Context) bool
}

// Refused records a request that a resource server refused. settled is called later and reports
// whether the client has since got a new token, which makes the refusal of an expired one routine.
func (r *Recorder) Refused(req *http.Request, from netip.Addr, d oauth.Decision, t Presented,
	settled func(context.Context) bool,
) {
	switch {
	case r == nil, t.State == TokenNone && !asksForMCP(req), r.c.Probes.Signed(req):
		return
	case d.Error == oauth.UseDPoPNonce:
		return // the client retries with the nonce (RFC 9449 §9)
	}
	s := r.called(req, from, d)
	s.At = r.c.Now()
	r.refused(s, d, t, settled)
}

// Reported records a request that a resource server in another process reported. by is its client
// ID. A decision without a status was let through. Facts about the token come only from t.
func (r *Recorder) Reported(by string, d oauth.Decision, t Presented, settled func(context.Context) bool) {
	if r == nil || d.Error == oauth.UseDPoPNonce {
		return
	}
	var from oauth.Sender
	if d.Sender != nil {
		from = *d.Sender
	}
	addr, _ := netip.ParseAddr(from.Address)
	s := r.called(from.Request(d.HTTPMethod), addr, d)
	s.At, s.Keys.ReportedBy = d.At, cut(by, maxValue)
	if d.Status == 0 {
		r.letThrough(s, d, t.Keys)
		return
	}
	r.refused(s, d, t, settled)
}

// refused records a step whose request is filled in, but not its answer.
func (r *Recorder) refused(s Step, d oauth.Decision, t Presented, settled func(context.Context) bool) {
	s.Reference, s.Keys.Client, s.Keys.Person, s.Keys.Grant = d.Reference, t.Keys.Client, t.Keys.Person, t.Keys.Grant
	s.Request.Params = append(s.Request.Params, Param{paramToken, string(t.State)})
	s.Answer = Answer{
		Status:      d.Status,
		Error:       cut(string(d.Error), maxValue),
		Description: Described(d.Description),
		Reason:      Described(d.Reason),
		Outcome:     cut(d.Outcome, maxValue),
	}
	if d.Scope != "" {
		s.Answer.Params = []Param{{"scope", cut(d.Scope, maxValue)}}
	}
	if t.Audience != "" && t.Audience != d.Resource {
		s.Expected = []Expected{{
			Name:       "audience",
			Values:     []string{cut(oauth.Redacted(d.Resource), maxValue)},
			Difference: compared(t.Audience, []string{d.Resource}),
		}}
		s.Request.Params = append(s.Request.Params, Param{"audience", cut(oauth.Redacted(t.Audience), maxValue)})
	}
	if t.State == TokenExpired {
		r.hold(held{s, s.At.Add(holdExpired), settled})
		return
	}
	r.takeCall(s)
}

// LetThrough records a request of a grant that a resource server let through.
func (r *Recorder) LetThrough(d oauth.Decision) {
	if r == nil {
		return
	}
	s := r.called(nil, netip.Addr{}, d)
	s.At = r.c.Now()
	r.letThrough(s, d, Keys{Client: d.ClientID, Person: d.Subject, Grant: d.GrantID})
}

func (r *Recorder) letThrough(s Step, d oauth.Decision, k Keys) {
	s.Reference, s.Keys.Client, s.Keys.Person, s.Keys.Grant = NewReference(), k.Client, k.Person, k.Grant
	s.Answer = Answer{Status: http.StatusOK, Outcome: cut(d.Outcome, maxValue)}
	r.takeCall(s)
}

// called builds the common part of a call step. req is nil if the request is unknown.
func (r *Recorder) called(req *http.Request, from netip.Addr, d oauth.Decision) Step {
	var s Step
	if req != nil {
		s = Digester(r.c.Key).arrived(d.Reference, req, from, d.At)
		s.Request.Header = append(s.Request.Header, sentBy(req, passedOn)...)
	}
	s.Kind, s.Keys.Resource = Call, cut(oauth.Redacted(d.Resource), maxValue)
	s.Request.Method, s.Request.Path = cut(d.HTTPMethod, 10), cut(pathOf(d.Resource), maxValue)
	if d.Method != "" {
		s.Request.Params = append(s.Request.Params, Param{paramMethod, named(d.Method)})
	}
	if d.Name != "" && d.Method == methodCallTool {
		s.Request.Params = append(s.Request.Params, Param{paramTool, named(d.Name)})
	}
	return s
}

const methodCallTool = "tools/call"

// passedOn lists headers that proxies add.
var passedOn = []string{"Forwarded", "Via", "X-Forwarded-For"}

// names matches the tool names that MCP recommends, and its method names. A client may send
// anything else, which is not stored.
var names = regexp.MustCompile(`^[A-Za-z0-9_./$-]{1,64}$`)

func named(s string) string {
	if names.MatchString(s) {
		return s
	}
	return "(not a name)"
}

func pathOf(address string) string {
	_, rest, _ := strings.Cut(oauth.Redacted(address), "://")
	_, path, _ := strings.Cut(rest, "/")
	return "/" + path
}

// asksForMCP reports whether a request without a token looks like an MCP client's, and not like a
// browser's or a search engine's. Such a request starts an attempt.
func asksForMCP(r *http.Request) bool {
	return r.Method == http.MethodPost || r.Header.Get("Mcp-Protocol-Version") != "" ||
		strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

func textOf(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.Unmap().WithZone("").String()
}

func (r *Recorder) takeCall(s Step) {
	addr, _ := netip.ParseAddr(s.Keys.Address)
	key := "calls " + cmp.Or(network.Blocks(addr)[0], s.Keys.Grant)
	draws := []bounded.Draw[string]{{Key: key, Rate: callsPerNetwork}}
	if by := s.Keys.ReportedBy; by != "" {
		draws[0].Key += " reported by " + by // reports do not use up the network's own allowance
		draws = append(draws, bounded.Draw[string]{Key: "reported by " + by, Rate: perReporter})
	}
	within := r.calls.Take(draws...) == 0
	step := storage.AttemptStep{At: s.At, KeptUntil: s.At.Add(r.c.Keep)}
	if within {
		step.Keys, step.Body = s.all(), s.encode()
	}
	r.enqueue(step, within)
}

func (r *Recorder) hold(h held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.held) == maxHeld {
		r.lost++
		return
	}
	r.held = append(r.held, h)
}

// release records the held steps that are due, or all of them.
func (r *Recorder) release(ctx context.Context, all bool) {
	r.mu.Lock()
	now, due := r.c.Now(), []held(nil)
	r.held = slices.DeleteFunc(r.held, func(h held) bool {
		if !all && now.Before(h.until) {
			return false
		}
		due = append(due, h)
		return true
	})
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for _, h := range due {
		if !h.settled(ctx) {
			r.takeCall(h.step)
		}
	}
}
